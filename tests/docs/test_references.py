"""Reference pages say what the code has."""

import ast
import importlib.util
import re
from typing import Any

from tests.docs.code_blocks import ROOT

REFERENCE = ROOT / "docs/reference"
WRITTEN_FOR_USERS = [
    *(ROOT / "docs" / f"{name}.md" for name in ("first-model", "faq", "from-other-tools")),
    *(ROOT / "docs/train").glob("*.md"),
]
FENCE = re.compile(r"^```(?:text|bash|python).*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"```sh.*?```|`[^`]+`", re.DOTALL)


def _document_commands() -> Any:
    """`scripts/document_commands.py` as a module."""
    script = ROOT / "scripts/document_commands.py"
    spec = importlib.util.spec_from_file_location("document_commands", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_line_reference_is_up_to_date() -> None:
    module = _document_commands()
    assert module.command_page() == module.PAGE.read_text("utf-8"), (
        "run python scripts/document_commands.py"
    )


def test_every_package_with_public_names_has_a_reference_page() -> None:
    """scripts/check_site.py checks that each of its names is on the built page."""
    pages = {page.stem for page in REFERENCE.glob("*.md")}
    for package in (ROOT / "regard").glob("*/__init__.py"):
        tree = ast.parse(package.read_text("utf-8"))
        names = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ]
        if any(names):
            assert package.parent.name in pages


def test_options_that_pages_mention_exist() -> None:
    """In the tutorial, the pages of docs/train, the FAQ and the page for users of other tools."""
    script = _document_commands()
    known = {
        option
        for parser in script.parsers(script.make_parser(None))
        for action in parser._actions
        for option in action.option_strings
    }
    for page in WRITTEN_FOR_USERS:
        text = FENCE.sub("", page.read_text("utf-8"))
        mentioned = set(re.findall(r"(?<=[`\s])--[a-z][a-z-]+", " ".join(CODE.findall(text))))
        assert mentioned <= known, f"{page.name}: {mentioned - known}"
