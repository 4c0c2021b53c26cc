"""Every tensor that is made between input and answer of a model is on the device of the input."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "regard"
CHECKED = (
    "attention",
    "layers",
    "models",
    "search",
    "tasks/alignment/chain_aligner.py",
    "tasks/language/sampled_softmax.py",
    "tasks/shared/attention_flow.py",
    "tasks/shared/explain_target.py",
    "tasks/shared/losses.py",
    "tasks/translation/guided_alignment.py",
)
FACTORIES = {
    *("arange", "as_tensor", "empty", "eye", "frombuffer", "from_numpy", "full", "linspace"),
    *("ones", "rand", "randint", "randn", "randperm", "scalar_tensor", "tensor", "tril_indices"),
    *("triu_indices", "zeros", "FloatTensor", "LongTensor", "BoolTensor"),
}
BUILDING = {"__init__", "reset_parameters"}
"""Methods that make the weights of a layer, which its owner moves."""
ON_THE_CPU = {
    ("attention/masks.py", "_whole_numbers"): "a mask moves its numbers where it is applied",
    ("attention/scores.py", "_check_foreign"): "tries a score on numbers of its own",
    ("attention/worked_attention.py", "*"): "the worked example of the app, for the CPU",
    ("attention/worked_example.py", "*"): "the worked example of the app, for the CPU",
    ("layers/dropout.py", "forward"): "the way of the CPU, after a check that it is one",
    ("layers/experts.py", "_uniform"): "makes weights",
    ("layers/memory/ntm.py", "initial_biases"): "makes weights",
    ("models/native/native_decoder.py", "*"): "the decoder in C, for the CPU",
    ("models/native/native_search.py", "*"): "the search in C, for the CPU",
    ("search/penalties.py", "penalty_table"): "a table that the search moves",
    ("search/step.py", "_prefix_table"): "a table that the search moves",
    ("search/step.py", "forbid_tokens"): "columns that each step moves",
    ("search/step.py", "pin_attention"): "masks that the search moves",
    ("tasks/language/sampled_softmax.py", "by_frequency"): "a table that each sample moves",
    ("tasks/translation/guided_alignment.py", "alignment_targets"): "a part of a batch",
}
"""Functions that make tensors on the CPU, by file and name, and why they may."""


def makes_on_the_cpu(call: ast.Call) -> bool:
    """Whether a call makes a tensor without saying where."""
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "torch"
        and function.attr in FACTORIES
        and not any(keyword.arg == "device" for keyword in call.keywords)
    )


def strays(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The function and line of each tensor that is made on the CPU and not moved at once."""

    def visit(node: ast.AST, function: str, moved: bool) -> Iterator[tuple[str, int]]:
        if isinstance(node, ast.FunctionDef) and not function:
            function = node.name
        if isinstance(node, ast.Call):
            if makes_on_the_cpu(node) and function not in BUILDING and not moved:
                yield function, node.lineno
            to = isinstance(node.func, ast.Attribute) and node.func.attr == "to"
            if to:
                yield from visit(node.func.value, function, True)  # type: ignore[attr-defined]
                return
        for child in ast.iter_child_nodes(node):
            yield from visit(child, function, False)

    yield from visit(tree, "", False)


def files() -> list[Path]:
    paths = [PACKAGE / name for name in CHECKED]
    return sorted(
        file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])
    )


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_tensors_are_made_where_the_inputs_are(file: Path) -> None:
    name = str(file.relative_to(PACKAGE))
    found = [
        f"{name}:{line} in {function}"
        for function, line in strays(ast.parse(file.read_text("utf-8")))
        if not {(name, function), (name, "*")} & ON_THE_CPU.keys()
    ]
    assert not found


def test_what_is_made_on_the_cpu_is_found() -> None:
    source = """
def forward(x):
    a = torch.zeros(3, device=x.device) + torch.eye(3).to(x)
    return a + torch.arange(3)

class Layer:
    def __init__(self):
        self.weight = torch.empty(3)
"""
    assert list(strays(ast.parse(source))) == [("forward", 4)]


def test_no_exception_is_out_of_date() -> None:
    used = {
        (str(file.relative_to(PACKAGE)), function)
        for file in files()
        for function, _ in strays(ast.parse(file.read_text("utf-8")))
    }
    everywhere = {(name, "*") for name, _ in used}
    assert ON_THE_CPU.keys() <= used | everywhere
