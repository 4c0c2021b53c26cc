"""What Python callers see of training: silence, lines, a notebook's cell, or their own function."""

import sys
from types import SimpleNamespace

import pytest

import regard
from regard.errors import OptionError
from regard.models import ClassifierConfig
from regard.options import make
from regard.progress import Stage
from tests.attention.foreign_scores import HERE, LearnedDistance, distance
from tests.training.tiny import OPTIONS, write_data

SMALL = OPTIONS["classify"] | {"steps": 6, "average": 1}


def train(folder, **options):
    return regard.train("classify", write_data(folder, "classify"), out=folder / "run", **options)


def test_training_is_silent_prints_lines_or_calls_a_function(tmp_path, capsys):
    steps = []
    train(tmp_path, progress=lambda progress: steps.append(progress.position.step), **SMALL)
    assert set(steps) == {1, 2, 3, 4, 5, 6}
    train(tmp_path, **SMALL | {"steps": 9})
    assert capsys.readouterr() == ("", "")
    train(tmp_path, progress=True, **SMALL | {"steps": 12})
    assert capsys.readouterr().err.count(", accuracy ") == 1


def test_a_notebook_shows_a_bar_and_the_validations(tmp_path, monkeypatch):
    shown = []

    def first(html, display_id):
        shown.append(html)
        return SimpleNamespace(update=shown.append)

    display = SimpleNamespace(HTML=str, display=first)
    shell = SimpleNamespace(kernel=None)
    ipython = SimpleNamespace(get_ipython=lambda: shell, display=display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    train(tmp_path, **SMALL)
    assert "finished: " in shown[-1]
    assert shown[-1].count("<tr>") == 3  # the head, and the validations of steps 3 and 6
    assert "reading data" in shown[0]
    before = len(shown)
    train(tmp_path, progress=False, **SMALL | {"steps": 9})
    assert len(shown) == before


def test_stages_within_a_validation_are_not_shown():
    from regard.inference.training_progress import NotebookProgress

    shown = []
    progress = NotebookProgress(shown.append)
    progress(Stage("reading data", None))
    progress(Stage("reading data", 10, "lines", 5))
    assert len(shown) == 1
    assert "5 of 10 lines" in shown[0]


def test_an_own_score_is_saved_by_its_import_path(tmp_path):
    options = {**SMALL, "pooling": "fixed", "steps": 2}
    run = train(tmp_path, attention=LearnedDistance, **options)
    assert run.config["model"]["attention"] == f"{HERE}:LearnedDistance"
    assert any("of_query" in name for name, _ in run.model.named_parameters())
    texts = ["the film was great", "not bad"]
    again = regard.load(tmp_path / "run")
    assert (again.predict_proba(texts) == run.predict_proba(texts)).all()
    resumed = train(tmp_path, attention=LearnedDistance, **options | {"steps": 3})
    assert resumed.history[-1]["step"] == 3


def test_a_score_that_cannot_be_found_again_is_refused():
    def inner(query, key):
        return distance(query, key)

    def from_script(query, key):
        return distance(query, key)

    def renamed(query, key):
        return distance(query, key)

    from_script.__module__, from_script.__qualname__ = "__main__", "my_score"
    renamed.__module__, renamed.__qualname__ = HERE, "distance"
    move = r"move it to the top of a module \(a \.py file\) and import it from there"
    for score, message in (
        (lambda query, key: query @ key, f"is a lambda, which cannot be found again: {move}"),
        (inner, f"inner is defined inside a function, which cannot be found again: {move}"),
        (from_script, f"my_score is defined in the notebook or script that runs.*{move}"),
        (renamed, f"{HERE}:distance is another object than this one: {move}"),
        (LearnedDistance(3, 3), "has no name to import it by: expected a function or class"),
    ):
        with pytest.raises(OptionError, match=message):
            make(ClassifierConfig, {"attention": score})
