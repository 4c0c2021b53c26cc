"""The project layout keeps its promises: names, homes of tasks, documentation."""

import ast
import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import regard
from regard.tasks.registry import TASKS

ROOT = Path(regard.__file__).parent
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.name != "__main__.py")

SHARED_NAMES = {
    # files that every task folder has, named after what they hold
    "task", "task_options", "trace", "explain", "serve", "log_probabilities", "decode",
    "pretrained_model",
    # a command is named after itself, and so are the package or module that it calls
    "align", "data", "evaluate", "export", "predict", "score", "show", "steps", "train",
    # a model and the task or corpus that it is for
    "algorithm", "algorithms", "language", "entities",
    # what starts a run and what uses it
    "run",
    # text generation: the command and the task's part
    "generate",
}  # fmt: skip
"""Module names that may occur more than once, with the reason."""

TASK_NAMES_ELSEWHERE = {
    "commands/demo.py": "the demo trains a translator",
    "data/readers/columns.py": "a usual name of a column",
    "data/readers/conll.py": "the word for a label of a token, in messages",
    "metrics/entities.py": "the word for a label of a token, in messages",
    "corpora/algorithms.py": "the word for what is learned, in a message",
    "serve/api/routes.py": "a field of a protocol",
    "commands/score.py": "help texts name the tasks that it is for",
    "__init__.py": "the docstring of `train` lists the built-in tasks",
    "serve/api/libretranslate.py": "speaks the protocol of a translation service",
    "pretrained": "an architecture says which task its head is for",
    "cli.py": "a command has the name of a task",
    "commands/align.py": "a command has the name of a task",
    "models": "a config says which model it builds",
    "experiments": "an experiment says which task it trains",
}
"""Files, or folders, that may name a task outside `tasks/`, with the reason."""


def test_no_two_modules_share_a_name():
    places = defaultdict(list)
    for path in MODULES:
        if path.name != "__init__.py":
            places[path.stem].append(path.relative_to(ROOT).as_posix())
    doubled = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert set(doubled) <= SHARED_NAMES, doubled


def test_folders_stay_small():
    counts = defaultdict(int)
    for path in MODULES:
        counts[path.parent] += path.name != "__init__.py"
    large = {folder.relative_to(ROOT).as_posix(): n for folder, n in counts.items() if n > 18}
    assert not large


def strings_of(path: Path) -> list[tuple[int, str]]:
    """String constants of a module, without docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documentation
    ]


def excused(path: Path) -> bool:
    place = path.relative_to(ROOT).as_posix()
    return any(place == known or place.startswith(known + "/") for known in TASK_NAMES_ELSEWHERE)


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if ROOT / "tasks" not in path.parents],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_nothing_outside_the_tasks_knows_a_task(path):
    names = {*TASKS, "classification", "tagging"}
    if not excused(path):
        known = [(line, text) for line, text in strings_of(path) if text in names]
        assert not known, f"{path}: a task by name: ask the registry instead"
    source = path.read_text("utf-8")
    imported = re.findall(r"regard\.tasks\.(\w+)", source)
    assert not {*imported} & {
        "translation",
        "language",
        "classification",
        "tagging",
        "algorithm",
        "alignment",
    }


def test_every_exception_is_needed():
    names = {*TASKS, "classification", "tagging"}
    for place in TASK_NAMES_ELSEWHERE:
        paths = [ROOT / place] if place.endswith(".py") else (ROOT / place).rglob("*.py")
        texts = [text for path in paths for _, text in strings_of(path)]
        assert any(name in text for text in texts for name in names) or place == "__init__.py", (
            place
        )


@pytest.mark.parametrize("name", sorted(m.name for m in walk_packages(regard.__path__, "regard.")))
def test_every_public_name_is_documented(name):
    if name.endswith("__main__") or name.split(".")[-1].startswith("_"):
        return
    module = import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    for public in getattr(module, "__all__", ()):
        value = getattr(module, public)
        if callable(value) and getattr(value, "__module__", "").startswith("regard"):
            assert value.__doc__, f"{name}.{public} has no docstring"


def test_javascript_knows_no_task():
    """Screens read `/v1/models` and the one list of screens."""
    for path in (ROOT / "serve/static").rglob("*.js"):
        source = path.read_text("utf-8")
        assert not re.search(r"\btask\s*===?\s*[\"']", source), path
