"""`Look.plot`: matplotlib where it is installed, a clear error where it is not."""

import builtins
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from regard.trace import from_arrays

LOOK = from_arrays(
    [[0.9, 0.1, 0.0]],
    ["chat"],
    ["cat", "the", "."],
    layer=1,
    query_side="target",
    key_side="source",
)


class RecordedAxes:
    """Stands for the axes of matplotlib: keeps the arguments of every call by method."""

    def __init__(self) -> None:
        self.calls: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    def __getattr__(self, method: str) -> Any:
        return lambda *args, **options: self.calls.update({method: (args, options)})


@pytest.fixture
def stub(monkeypatch):
    """A matplotlib whose figures have recorded axes."""
    package, pyplot, axes = (
        ModuleType("matplotlib"),
        ModuleType("matplotlib.pyplot"),
        RecordedAxes(),
    )
    pyplot.subplots = lambda **_: (None, axes)
    package.pyplot = pyplot
    monkeypatch.setitem(sys.modules, "matplotlib", package)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    return axes


def test_rows_are_queries_and_columns_are_keys(stub):
    assert LOOK.plot() is stub
    (weights,), options = stub.calls["imshow"]
    np.testing.assert_array_equal(weights, [[0.9, 0.1, 0.0]])
    assert options["vmin"] == 0.0
    assert stub.calls["set_xticks"][0] == (range(3), ("cat", "the", "."))
    assert stub.calls["set_yticks"][0] == (range(1), ("chat",))
    assert stub.calls["set_xlabel"][0] == ("source",)
    assert stub.calls["set_ylabel"][0] == ("target",)
    assert stub.calls["set_title"][0] == ("attention · layer 1",)


def test_axes_and_options_of_the_caller_are_used(stub):
    own = RecordedAxes()
    assert LOOK.plot(own, cmap="Greens") is own
    assert own.calls["imshow"][1]["cmap"] == "Greens"
    assert not stub.calls


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    real_import = builtins.__import__

    def refuse(name: str, *args: Any, **options: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'regard\[plot\]'"):
        LOOK.plot()


def test_with_matplotlib_itself():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = LOOK.plot()
    np.testing.assert_array_equal(axes.images[-1].get_array(), LOOK.weights)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["cat", "the", "."]
