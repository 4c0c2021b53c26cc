"""The verdict of a comparison: one sentence that claims no more than the tests show."""

from typing import TYPE_CHECKING

from regard.number_format import format_bare_value

if TYPE_CHECKING:
    from regard.compare.comparison_result import ComparisonResult


def verdict(result: "ComparisonResult") -> str:
    """What the tests show about the best system, and how many pairs of all differ."""
    if len(result.systems) < 2:
        return f"Only {result.systems[0].label} could be trained: there is nothing to compare."
    best = result.systems[0]
    others = [one.label for one in result.systems[1:]]
    worse = [label for label in others if result.pair(best.label, label).differs]
    unclear = [label for label in others if label not in worse]
    terms = f"{result.metric}, {result.budget} each, {result.examples:,} test examples"
    tail = _pairs(result) + _caveats(result)
    if not worse:
        others_differ = any(pair.differs for pair in result.pairs)
        among = "" if not others_differ else f" between {best.label} and the others"
        return f"No difference that this test can see{among} ({terms}){_size(result)}.{tail}"
    text = f"{best.label} is better than {_listed(worse)} ({terms})"
    if unclear:
        text += f"; between it and {_listed(unclear)} there is no difference that this test can see"
    return f"{text}.{tail}"


def _size(result: "ComparisonResult") -> str:
    """How large a difference would have been seen."""
    best = result.systems[0].label
    sizes = [
        pair.difference.detectable for pair in result.pairs if best in (pair.first, pair.second)
    ]
    known = [size for size in sizes if size > 0]
    if not known:
        return ""
    unit = " points" if result.unit in ("share", "f1", "points") else ""
    return (
        f"; a true difference of about {format_bare_value(max(known), result.unit)}{unit} would "
        "usually be detected"
    )


def _pairs(result: "ComparisonResult") -> str:
    """How many pairs differ, where that is more than a comparison of two."""
    different = sum(pair.differs for pair in result.pairs)
    if not different or len(result.systems) < 3:
        return ""
    return f" Of all {len(result.pairs)} pairs, {different} differ after Holm's correction."


def _caveats(result: "ComparisonResult") -> str:
    notes = []
    if min(one.seeds for one in result.systems) < 2:
        notes.append("With one seed, the variation between seeds is not measured.")
    if lost := [one.label for one in result.systems if one.guesses]:
        which = "None of the systems" if len(lost) == len(result.systems) else _listed(lost)
        verb = "is" if len(lost) in (1, len(result.systems)) else "are"
        no = "" if len(lost) == len(result.systems) else " not"
        notes.append(
            f"{which} {verb}{no} clearly better than always giving the same answer: try a larger "
            "--budget."
        )
    if result.failed:
        several = len(result.failed) > 1
        what = "trainings failed and are" if several else "training failed and is"
        notes.append(f"{len(result.failed)} {what} left out.")
    return "".join(f" {note}" for note in notes)


def _listed(labels: list[str]) -> str:
    if len(labels) == 1:
        return labels[0]
    return "; ".join(labels[:-1]) + " and " + labels[-1]
