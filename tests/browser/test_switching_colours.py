"""What the frame changes under a screen: light and dark, and the width of the status line."""

import pytest

from tests.browser.screens import SIZES, TEXTS

SHADED = """() => [...document.querySelectorAll('main [style*="background"]')]
  .map(node => `${node.textContent} ${node.style.background} ${node.style.color}`)"""
CUT = """() => [...document.querySelectorAll('rg-app > footer [role=status]')].filter(node =>
  node.scrollWidth > node.clientWidth || node.scrollHeight > node.clientHeight + 2).length"""
SHADED_SCREENS = {
    "steps": {"step": "6"},
    "sentiment": {"model": "views", "text": TEXTS["sentiment"], "was": "the film was good"},
    "language": {"text": TEXTS["language"], "row": "3"},
}
LONG_STATUS = {
    "memory": {"model": "copy", "text": "3 1 4 1 5 9 2 6", "row": "9"},
    "gradient": {"output": "1"},
    "compare": {"row": "2", "column": "1"},
}


@pytest.mark.parametrize("screen", SHADED_SCREENS)
def test_all_shades_follow_light_and_dark(app, screen):
    state = SHADED_SCREENS[screen]
    dark = app(color_scheme="dark").open(screen, **state).page.evaluate(SHADED)
    window = app(color_scheme="light").open(screen, **state)
    light = window.page.evaluate(SHADED)
    assert len(light) == len(dark) > 3
    assert light != dark
    window.page.emulate_media(color_scheme="dark")
    window.ready()
    assert window.page.evaluate(SHADED) == dark


@pytest.mark.parametrize("screen", LONG_STATUS)
def test_the_status_line_is_not_cut(app, screen):
    window = app(viewport={"width": 1440, "height": 900}).open(screen, **LONG_STATUS[screen])
    assert len(window.status()) > 30
    for width, height in SIZES:
        window.page.set_viewport_size({"width": width, "height": height})
        window.ready()
        assert window.page.evaluate(CUT) == 0, (width, window.status())
