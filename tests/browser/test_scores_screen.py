"""The screen of scores and masks: what is chosen changes the matrices, without any model."""

import numpy as np

from regard.serve import Server


def table(page, name):
    """The numbers of one of the two tables, NaN where a pair is masked."""
    rows = page.locator(f"table:has(caption:text('{name}:')) tbody tr")
    cells = [row.locator("td").all_inner_texts() for row in rows.all()]
    numbers = [[cell.replace("−", "-").replace("masked", "nan") for cell in row] for row in cells]
    return np.array(numbers, dtype=float)


def test_choices_change_scores_and_weights_on_a_server_without_runs(app):
    with Server([]) as empty:
        window = app(url=empty.url).open("scores")
        page = window.page
        assert window.colours("regard-matrix canvas.matrix-canvas") > 20
        assert window.status() == "‘bird’ looks at ‘early’: score +1.50, weight 0.34"
        page.get_by_label("Normalizer", exact=True).select_option("sparsemax")
        page.get_by_label("Mask", exact=True).select_option("causal window")
        page.get_by_label("Position", exact=True).select_option("linear bias")
        window.ready()
        page.get_by_label("Temperature", exact=True).fill("-1")
        window.ready()
        state = {"normalize": "sparsemax", "mask": "causal window", "position": "linear bias"}
        assert window.state().items() >= (state | {"temperature": "0.5"}).items()
        assert "sparsemax( q · k ÷ √d ÷ 0.5" in page.locator(".rg-formula").inner_text()
        window.press("t")
        window.ready()
        scores, weights = table(page, "Scores"), table(page, "Weights")
        open_ = [[0 <= i - j < 2 for j in range(6)] for i in range(6)]
        assert np.isnan(scores).tolist() == (~np.array(open_)).tolist()
        # bird: 0.5625 and 1.5 - ¼, divided by ½; sparsemax of two scores is half their difference
        np.testing.assert_allclose(scores[2, 1:3], [1.25, 0.56], atol=6e-3)
        np.testing.assert_allclose(weights[2, 1:3], [1.0, 0.0], atol=6e-3)
        np.testing.assert_allclose(np.nansum(weights, 1), np.ones(6), atol=0.02)
        page.reload()
        window.ready()
        assert table(page, "Weights")[2, 1] == weights[2, 1]
