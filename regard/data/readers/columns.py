"""Which column of a table plays which role: given by name or number, or recognized by its name."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from regard.errors import RegardError, unknown


def _names(names: str) -> tuple[str, ...]:
    return tuple(names.split())


LANGUAGES = _names(
    """ar bg bn ca cs da de el en es et eu fa fi fr ga gl he hi hr hu hy id is it ja ka kk ko lt lv
    mk mr ms mt nb ne nl nn no pl pt ro ru sk sl sq sr sv sw ta te th tl tr uk ur uz vi zh
    arabic chinese czech danish dutch english finnish french german greek hebrew hindi hungarian
    italian japanese korean norwegian polish portuguese romanian russian spanish swedish turkish
    ukrainian vietnamese"""
)


ROW_NUMBERS = ("id", "no")
"""Language codes that more often name a column of row numbers: Indonesian and Norwegian."""
IDENTIFIERS = {
    "id",
    "ids",
    "idx",
    "index",
    "guid",
    "uuid",
    "key",
    "date",
    "time",
    "timestamp",
    "url",
}
"""Words in the name of a column that holds neither a text nor a label, as in tweet_id."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a column is for: the option that chooses it, its usual names, and the user's choice."""

    option: str
    names: tuple[str, ...]
    chosen: str | None = None

    def choose(self, column: str | int | None) -> "Role":
        """The role with the column that the user chose, if any."""
        return replace(self, chosen=None if column is None else str(column))

    @property
    def number(self) -> int | None:
        """The chosen column as an index from 0, if the choice is a number (from 1)."""
        if self.chosen is None or not self.chosen.isdecimal() or len(self.chosen) > 4:
            return None
        return int(self.chosen) - 1


SOURCE = Role("source", ("source", "src", "input", "original", *LANGUAGES))
TARGET = Role(
    "target", ("target", "tgt", "trg", "translation", "reference", "ref", "output", *LANGUAGES)
)
TEXT = Role(
    "text",
    _names(
        """text sentence review comment tweet document content body message question utterance
        phrase headline description line input title"""
    ),
)
LABEL = Role(
    "label",
    _names(
        """label labels class category sentiment polarity rating stars intent topic emotion target
        gold output score y"""
    ),
)
WORDS = Role("text", ("tokens", "words", "sentence", "text"))
TAGS = Role("label", ("tags", "ner_tags", "pos_tags", "labels"))
CONDITION = Role("condition", ("condition", *LABEL.names))


def has_header(
    cells: Sequence[str], roles: Sequence[Role], following: Iterable[Sequence[str]] = ()
) -> bool:
    """Whether a first row is a header.

    It is if a column was chosen by name, or if all roles have a usual name. Names with a usual name
    in them count too, unless they are found again in their columns in the `following` rows, as a
    label would be. Other cells may hold anything. With labels one usual name is enough, if all
    cells look like names and none of them is found again.

    >>> has_header(["Text", "label"], [TEXT, LABEL]), has_header(["Go.", "Va !"], [SOURCE, TARGET])
    (True, False)
    >>> has_header(["tweet_id", "airline_sentiment", "text_body", ""], [TEXT, LABEL])
    True
    >>> has_header(["quote", "label"], [TEXT, LABEL], [["Good.", "pos"], ["Bad.", "neg"]])
    True
    """
    if any(role.chosen is not None and role.number is None for role in roles):
        return True
    names = _normalize(cells)
    rows = list(following)
    again = _found_again(cells, rows)
    for some in (roles, [role.choose(None) for role in roles]):
        if _usual_columns(names, some, words=False) is not None:
            return True
        columns = _usual_columns(names, some, words=True)
        if columns is not None and all(_is_name(cells[i]) and i not in again for i in columns):
            return True
    has_labels = any(role.option == LABEL.option for role in roles)
    return has_labels and _look_like_names(cells, rows, roles)


def may_be_header(
    cells: Sequence[str], roles: Sequence[Role], following: Iterable[Sequence[str]]
) -> bool:
    """Whether a first row without names for these roles has one that is usual for another.

    >>> may_be_header(["text", "label"], [SOURCE, TARGET], [["Go.", "Va !"], ["Run!", "Cours !"]])
    True
    """
    every = (*roles, SOURCE, TARGET, TEXT, LABEL, WORDS, TAGS, CONDITION)
    return _look_like_names(cells, list(following), every, len(roles))


def _look_like_names(
    cells: Sequence[str],
    rows: Sequence[Sequence[str]],
    roles: Sequence[Role],
    count: int | None = None,
) -> bool:
    """Whether all cells look like names, one of them is a usual one, and none is found again.

    Names may be missing where there are more columns than the `count` of roles.
    """
    extra = len(cells) > (len(roles) if count is None else count)
    named = all(_is_name(cell) or (extra and not cell.strip()) for cell in cells)
    usual = {name for role in roles for name in role.names} - set(LANGUAGES)
    if not named or len(rows) < 2 or usual.isdisjoint(_normalize(cells)):
        return False
    return not _found_again(cells, rows)


def _found_again(cells: Sequence[str], rows: Sequence[Sequence[str]]) -> set[int]:
    """The columns whose first cell, if it is not empty, is found in another row too."""
    return {
        column
        for row in rows
        for column, (cell, other) in enumerate(zip(cells, row, strict=False))
        if cell == other and cell.strip()
    }


def _usual_columns(names: Sequence[str], roles: Sequence[Role], words: bool) -> list[int] | None:
    """The column of each role with a usual name or, with `words`, one with a usual name in it.

    None unless all roles have one.
    """
    found: list[int] = []
    for role in roles:
        if role.number is not None:
            column = role.number if role.number < len(names) else None
            if column is not None and names[column] not in role.names:
                column = column if words and _has_usual_word(names[column], role) else None
        else:
            column = _column_with_usual_name(names, role, set(found))
            if column is None and words:
                column = _column_with_usual_word(names, role, set(found))
        if column is None:
            return None
        found.append(column)
    return found


def columns_by_name(columns: Sequence[str], roles: Sequence[Role], where: str) -> list[int]:
    """The column of each role in a table whose columns have names; `where` is for messages.

    Columns that the user chose come first. Then every role takes the free column with its most
    usual name, or else one with a usual name in it, before those that are left take what is left:
    the columns in order, if they are just as many.

    >>> columns_by_name(["label", "quote"], [TEXT, LABEL], "a.jsonl:1")
    [1, 0]
    """
    assigned: dict[int, int] = {}
    for index, role in enumerate(roles):
        if role.chosen is not None:
            assigned[index] = _chosen_column(columns, role, where)
    names = _normalize(columns)
    for find in (_column_with_usual_name, _column_with_usual_word):
        for index, role in enumerate(roles):
            if index in assigned:
                continue
            taken = set(assigned.values())
            column = find(names, role, taken)
            languages = [i for i, name in enumerate(names) if name in LANGUAGES and i not in taken]
            if column in languages and len(languages) > len(roles) - len(assigned):
                continue  # de, en and fr for two sides: which pair is meant is for the user to say
            if column is not None:
                assigned[index] = column
    free = [i for i in range(len(columns)) if i not in assigned.values()]
    left = [index for index in range(len(roles)) if index not in assigned]
    if len(free) > len(left):  # not a column of row numbers, if there is another
        free = [i for i in free if names[i] and not IDENTIFIERS & set(_words(names[i]))]
    for index in left:
        if len(free) != len(left) or len(columns) == 1:
            option = roles[index].option
            shown = ", ".join(_shorten(column) for column in columns[:20])
            choice = (
                f"There is only {shown}"
                if len(columns) < len(roles)
                else f"Choose one with --{option}: {shown}"
            )
            raise RegardError(f"{where}: which column is the {option}? {choice}")
        assigned[index] = free[left.index(index)]
    return _check_distinct([assigned[index] for index in range(len(roles))], roles, columns, where)


def columns_by_number(
    width: int, roles: Sequence[Role], where: str, first: Sequence[str] = ()
) -> list[int]:
    """The column of each role in a table of `width` unnamed columns: as chosen, else in order.

    In a table of three columns or more, order says nothing: the columns must be chosen. The message
    shows the `first` row, which may hold names that are not known.

    >>> columns_by_number(2, [TEXT.choose(2), LABEL], "a.tsv")
    [1, 0]
    """
    left = [role for role in roles if role.chosen is None]
    if width >= 3 and 0 < len(left) < width - (len(roles) - len(left)):
        options = " and ".join(f"--{role.option}" for role in left)
        shown = ", ".join(_shorten(" ".join(cell.split())) or "(empty)" for cell in first[:20])
        raise RegardError(
            f"{where}: {width} columns without names that are known"
            + (f" ({shown})" if shown else "")
            + f": choose with {options}, by number from 1 to {width}, or by name if the first line "
            "is a header"
        )
    assigned: list[int] = []
    chosen = {role.number for role in roles}
    free = (i for i in range(width) if i not in chosen)
    for role in roles:
        column = role.number if role.number is not None else next(free, width)
        if not 0 <= column < width:
            raise RegardError(
                f"{where}: no column {role.chosen or column + 1} for the {role.option}: "
                f"the first line has {width} column{'s' * (width > 1)}"
                + (" (columns are separated by tabs)" if width == 1 else "")
            )
        assigned.append(column)
    return _check_distinct(assigned, roles, [str(i + 1) for i in range(width)], where)


_NAME = re.compile(r"[^\W\d_][^\W_]*([ _.:/-][^\W_]+){0,3}")


def _is_name(cell: str) -> bool:
    """Whether a cell looks like the name of a column, in any script.

    >>> _is_name("review text"), _is_name("Übrig"), _is_name("समीक्षा"), _is_name("Go on!")
    (True, True, True, False)
    """
    # Vowel signs and accents are marks, which are no letters in regular expressions.
    letters = (sign for sign in cell.strip() if not unicodedata.category(sign).startswith("M"))
    return _NAME.fullmatch("".join(letters)) is not None


def _words(name: str) -> list[str]:
    """The words of a column's name.

    >>> _words("airline_sentiment"), _words("text-body"), _words("review text")
    (['airline', 'sentiment'], ['text', 'body'], ['review', 'text'])
    """
    return [word for word in re.split(r"[\W_]+", name) if word]


def _normalize(cells: Sequence[str]) -> list[str]:
    """Column names in lower case; empty for a column of row numbers.

    >>> _normalize(["ID", "de", "en"]), _normalize(["id", "en"])
    (['', 'de', 'en'], ['id', 'en'])
    """
    split = [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cell.strip()) for cell in cells]  # reviewText
    names = [name.lower().replace(" ", "_") for name in split]
    return ["" if len(names) > 2 and name in ROW_NUMBERS else name for name in names]


def _column_with_usual_name(names: Sequence[str], role: Role, taken: set[int]) -> int | None:
    """The free column with the most usual name for a role; languages rank last and equal."""
    candidates = [i for i, name in enumerate(names) if name in role.names and i not in taken]
    last = len(role.names)

    def rank(column: int) -> tuple[int, int]:
        name = names[column]
        return (last if name in LANGUAGES else role.names.index(name)), column

    return min(candidates, key=rank, default=None)


def _column_with_usual_word(names: Sequence[str], role: Role, taken: set[int]) -> int | None:
    """The free column with a usual name among the words of its own, the most usual one first."""
    candidates = [
        (role.names.index(name), column)
        for column, whole in enumerate(names)
        if column not in taken
        for name in _words(whole)
        if name in role.names and _has_usual_word(whole, role)
    ]
    return min(candidates)[1] if candidates else None


def _has_usual_word(whole: str, role: Role) -> bool:
    """Whether a name has a usual name in it; codes of languages and row numbers do not count."""
    words = _words(whole)
    usual = {name for name in role.names if name not in LANGUAGES}
    return len(words) <= 3 and not IDENTIFIERS & set(words) and bool(usual & set(words))


def _shorten(name: str, most: int = 30) -> str:
    return name if len(name) < most else name[: most - 1] + "…"


def _chosen_column(columns: Sequence[str], role: Role, where: str) -> int:
    if role.chosen in columns:
        return columns.index(role.chosen)
    folded = [column.strip().casefold() for column in columns]
    if str(role.chosen).casefold() in folded:
        return folded.index(str(role.chosen).casefold())
    if role.number is not None and 0 <= role.number < len(columns):
        return role.number
    shown = [_shorten(column) for column in columns[:20]]
    numbers = (
        f" (a table without a header takes numbers: --{role.option} 1)"
        if not all(_is_name(column) for column in columns)
        else ""
    )
    raise RegardError(f"{where}: {unknown('column', role.chosen, shown)}{numbers}")


def _check_distinct(
    assigned: list[int], roles: Sequence[Role], columns: Sequence[str], where: str
) -> list[int]:
    if len(set(assigned)) < len(assigned):
        options = " and ".join(f"--{role.option}" for role in roles)
        twice = next(i for i in assigned if assigned.count(i) > 1)
        raise RegardError(
            f"{where}: {options} choose the same column, {columns[twice]}: choose different ones"
        )
    return assigned
