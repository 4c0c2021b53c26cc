"""The app with a run of another package's task, encoder and score, found by entry points alone."""

from tests.extension.test_extension import TEXTS, serving, site, work  # noqa: F401 fixtures


def test_every_screen_shows_the_foreign_run(app, site, work, tmp_path):  # noqa: F811
    text = TEXTS["5"]
    with serving(site, work) as url:
        window = app(url).open("")
        window.page.locator(".rg-card.model").click()
        window.ready()
        assert window.page.url.split("?")[0].endswith("/self-attention")
        for screen in ("self-attention", "gradient", "compare", "training", "length", "trust"):
            window.open(screen, model="run", text=text).ready()
            window.page.screenshot(path=tmp_path / f"{screen}.png")
        window.open("self-attention", model="run", text=text).ready()
        assert window.page.get_by_text("wonderful").count()
        window.open("gradient", model="run", text=text).ready()
        assert window.page.locator("rg-screen-gradient").inner_text()
