"""Which column of a table holds what: by name, by number, or by the names people usually give."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from regard.errors import RegardError, unknown


def _listed(names: str) -> tuple[str, ...]:
    return tuple(names.split())


LANGUAGES = _listed(
    """ar bg bn ca cs da de el en es et eu fa fi fr ga gl he hi hr hu hy id is it ja ka kk ko lt lv
    mk mr ms mt nb ne nl nn no pl pt ro ru sk sl sq sr sv sw ta te th tl tr uk ur uz vi zh
    arabic chinese czech danish dutch english finnish french german greek hebrew hindi hungarian
    italian japanese korean norwegian polish portuguese romanian russian spanish swedish turkish
    ukrainian vietnamese"""
)


NUMBERS = ("id", "no")
"""Languages whose names number rows more often."""


@dataclass(frozen=True, slots=True)
class Role:
    """A part that a column can play: the option that names it, and its usual names."""

    option: str
    names: tuple[str, ...]
    given: str | None = None

    def named(self, given: str | int | None) -> "Role":
        """The role with the column that the user gave, if any."""
        return replace(self, given=None if given is None else str(given))

    @property
    def number(self) -> int | None:
        """The column as an index from 0, if it was given as a number from 1."""
        digits = self.given is not None and self.given.isdecimal() and len(self.given) < 5
        return int(self.given or 0) - 1 if digits else None


SOURCE = Role("source", ("source", "src", "input", "original", *LANGUAGES))
TARGET = Role(
    "target", ("target", "tgt", "trg", "translation", "reference", "ref", "output", *LANGUAGES)
)
TEXT = Role(
    "text",
    _listed(
        """text sentence review comment tweet document content body message question utterance
        phrase headline description line input title"""
    ),
)
LABEL = Role(
    "label",
    _listed(
        """label labels class category sentiment polarity rating stars intent topic emotion target
        gold output score y"""
    ),
)
WORDS = Role("text", ("tokens", "words", "sentence", "text"))
TAGS = Role("label", ("tags", "ner_tags", "pos_tags", "labels"))
CONDITION = Role("condition", ("condition", *LABEL.names))


def has_header(cells: Sequence[str], roles: Sequence[Role]) -> bool:
    """Whether a first row names columns: a role was given by name, or all names are usual ones.

    >>> has_header(["Text", "label"], [TEXT, LABEL]), has_header(["Go.", "Va !"], [SOURCE, TARGET])
    (True, False)
    """
    if any(role.given is not None and role.number is None for role in roles):
        return True
    names, taken = _plain(cells), set[int]()
    for role in roles:
        if role.number is not None:
            place = role.number if role.number < len(names) else None
            if place is None or names[place] not in role.names:
                return False
        else:
            place = _usual(names, role, taken)
            if place is None:
                return False
        taken.add(place)
    return True


def by_name(columns: Sequence[str], roles: Sequence[Role], name: str) -> list[int]:
    """The column of each role in a table whose columns have names; `name` is the file's."""
    found: dict[int, int] = {}
    for at, role in enumerate(roles):
        if role.given is not None:
            found[at] = _given(columns, role, name)
    plain = _plain(columns)
    for at, role in enumerate(roles):
        if at not in found:
            place = _usual(plain, role, set(found.values()))
            spoken = [i for i, word in enumerate(plain) if word in LANGUAGES]
            spoken = [i for i in spoken if i not in found.values()]
            if place in spoken and len(spoken) > len(roles) - len(found):
                place = None
            left = [i for i in range(len(columns)) if i not in found.values()]
            if place is None and len(left) == len(roles) - len(found) and len(columns) > 1:
                place = left[0]
            if place is None:
                raise RegardError(
                    f"{name}: which column is the {role.option}? Columns: {', '.join(columns)}; "
                    f"name one with --{role.option}"
                )
            found[at] = place
    return _distinct([found[at] for at in range(len(roles))], roles, columns, name)


def by_number(width: int, roles: Sequence[Role], name: str) -> list[int]:
    """The column of each role in a table of `width` columns without names: in order, or as given.

    >>> by_number(3, [TEXT.named(2), LABEL], "a.tsv")
    [1, 0]
    """
    found: list[int] = []
    given = {role.number for role in roles}
    free = (i for i in range(width) if i not in given)
    for role in roles:
        place = role.number if role.number is not None else next(free, width)
        if not 0 <= place < width:
            raise RegardError(
                f"{name}: no column {role.given or place + 1} for the {role.option}: "
                f"the first line has {width} column{'s' * (width > 1)}"
                + (" (columns are separated by tabs)" if width == 1 else "")
            )
        found.append(place)
    return _distinct(found, roles, [str(i + 1) for i in range(width)], name)


def _plain(cells: Sequence[str]) -> list[str]:
    """Names without case; what numbers the rows of a table has none.

    >>> _plain(["ID", "de", "en"]), _plain(["id", "en"])
    (['', 'de', 'en'], ['id', 'en'])
    """
    names = [cell.strip().lower().replace(" ", "_") for cell in cells]
    return ["" if len(names) > 2 and name in NUMBERS else name for name in names]


def _usual(names: Sequence[str], role: Role, taken: set[int]) -> int | None:
    """The free column with the most usual name; languages in the order of the columns."""
    places = [i for i, n in enumerate(names) if n in role.names and i not in taken]
    last = len(role.names)

    def rank(place: int) -> tuple[int, int]:
        word = names[place]
        return (last if word in LANGUAGES else role.names.index(word)), place

    return min(places, key=rank, default=None)


def _given(columns: Sequence[str], role: Role, name: str) -> int:
    if role.given in columns:
        return columns.index(role.given)
    folded = [column.strip().casefold() for column in columns]
    if str(role.given).casefold() in folded:
        return folded.index(str(role.given).casefold())
    if role.number is not None and 0 <= role.number < len(columns):
        return role.number
    shown = [column if len(column) < 30 else column[:29] + "…" for column in columns[:20]]
    raise RegardError(f"{name}: {unknown('column', role.given, shown)}")


def _distinct(
    found: list[int], roles: Sequence[Role], columns: Sequence[str], name: str
) -> list[int]:
    if len(set(found)) < len(found):
        options = " and ".join(f"--{role.option}" for role in roles)
        twice = next(i for i in found if found.count(i) > 1)
        raise RegardError(f"{name}: {options} name the same column, {columns[twice]}")
    return found
