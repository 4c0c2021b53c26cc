"""Prepares docstrings for the site: a Griffe extension, named in mkdocs.yml.

Doctests become code (Markdown reads `>>>` as three nested quotations), a named tuple shows its
fields as a signature, as a dataclass does, and a function that a package exports from a module of
the same name (`regard.attention.attend`) is shown although Griffe sees only the module there.
"""

import re
from typing import Any

import griffe

# A prompt and every line after it up to an empty one: the extent that doctest gives an example.
EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *$).+)*", re.MULTILINE)


def fence_doctests(text: str) -> str:
    """Put each run of examples into a fence of its own, at its indentation.

    >>> print(fence_doctests("Adds.\\n\\n>>> 1 + 1\\n2\\n\\nDone."))
    Adds.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    Done.
    """
    return EXAMPLE.sub(
        lambda match: f"{match['indent']}```pycon\n{match[0]}\n{match['indent']}```", text
    )


def named_tuple_constructor(class_: griffe.Class) -> griffe.Function:
    """The constructor that `typing.NamedTuple` makes of the fields of a class."""
    fields = [
        griffe.Parameter(
            name,
            annotation=field.annotation,
            default=field.value,
            kind=griffe.ParameterKind.positional_or_keyword,
        )
        for name, field in class_.attributes.items()
        if field.annotation is not None
    ]
    return griffe.Function("__init__", parameters=griffe.Parameters(*fields), parent=class_)


def show_shadowed_exports(package: griffe.Module) -> None:
    """Add what a package exports from modules of the same name, here and in its subpackages.

    The key is one that no Python name can have: under its own name the module must stay, because
    Griffe follows imports through it.
    """
    for module in list(package.modules.values()):
        show_shadowed_exports(module)
    for name in package.exports or ():
        module = package.members.get(str(name))
        if isinstance(module, griffe.Module) and str(name) in module.members:
            target = module.members[str(name)]
            package.members[f"{name}()"] = griffe.Alias(str(name), target, parent=package)


class Docstrings(griffe.Extension):
    """Rewrites what Griffe collects, before mkdocstrings renders it."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Fence the doctests of one module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = fence_doctests(obj.docstring.value)

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Give a named tuple its constructor."""
        if any(str(base).endswith("NamedTuple") for base in cls.bases):
            cls.set_member("__init__", named_tuple_constructor(cls))

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Show exports that modules of the same name hide."""
        show_shadowed_exports(pkg)
