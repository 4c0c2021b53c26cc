"""Help, completion and mistakes answer at once: nothing slow is imported before it is needed."""

import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from types import FunctionType, ModuleType

import pytest

from regard.tasks.registry import TASKS

CALLS_WITHOUT_TORCH = """
import contextlib, io, sys
from regard.cli import COMMANDS, main
from regard.tasks.registry import TASKS

calls = [["--help"], ["--version"], ["predct"], ["predict", "nowhere", "--bem", "3"]]
calls += [[command, "--help"] for command in COMMANDS]
calls += [["train", task, "--help"] for task in TASKS]
calls += [["data", verb, "--help"] for verb in ("make", "describe", "split")]
calls += [["train", "translation", "--attention", "addtive"], ["train", "tag", "--heads", "x"]]
for call in calls:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            main(call)
        except SystemExit:
            pass
    slow = {"torch", "numpy", "pyarrow", "jaxtyping", "tokenizers", "rich"} & set(sys.modules)
    assert printed.getvalue(), call
    assert not slow, (call, slow)
"""


def test_help_and_mistakes_import_nothing_slow():
    done = subprocess.run(
        [sys.executable, "-c", CALLS_WITHOUT_TORCH], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_training_does_not_import_the_compiler(tmp_path):
    """torch's optimizers and custom operators import torch._dynamo, which takes a second or two."""
    script = (
        "import sys, regard\n"
        "data = [(f'{word} film {i}', word) for i in range(8) for word in ('good', 'bad')]\n"
        f"regard.train('classify', data=data, steps=2, width=8, out={str(tmp_path / 'run')!r})\n"
        "assert 'torch' in sys.modules and 'torch._dynamo' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["regard", "regard.attention", "regard.data", "regard.models"])
def test_lazy_names_are_what_they_are_called(name):
    package = import_module(name)
    for public in package.__all__:
        value = getattr(package, public)
        assert not isinstance(value, ModuleType) or value.__name__ == f"{name}.{public}"
        assert public in dir(package)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


def test_a_submodule_does_not_replace_the_function_that_it_is_called_like():
    script = (
        "import regard.check.runner, regard.attention.attend, regard\n"
        "assert callable(regard.check) and callable(regard.attention.attend)\n"
        "from regard.attention import attend, masks\n"
        "assert attend is regard.attend and masks.causal\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("task", list(TASKS))
def test_every_deferred_function_of_a_task_exists(task):
    spec = TASKS[task]
    owners = [spec, *([spec.generation] if spec.generation else [])]
    found = [getattr(owner, field.name) for owner in owners for field in fields(owner)]
    references = [
        f.reference for f in found if isinstance(f, FunctionType) and hasattr(f, "reference")
    ]
    assert len(references) >= 4
    for reference in references:
        module, _, name = reference.partition(":")
        assert callable(getattr(import_module(module), name)), reference
