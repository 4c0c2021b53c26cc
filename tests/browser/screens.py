"""What the tests of all screens share: texts, addresses, and words that mean harm."""

from typing import Any

TEXT = "the film was great"
TEXTS = {
    "translation": TEXT,
    "language": "the plot is not very bad",
    "self-attention": TEXT,
    "sentiment": "the film was not bad",
    "entities": TEXT,
}
STATES: dict[str, dict[str, str]] = {
    **{screen: {"text": text} for screen, text in TEXTS.items()},
    "gradient": {"model": "views", "text": TEXT},
    "steps": {"step": "6"},
    "scores": {"mask": "causal"},
    "memory": {"model": "copy", "text": "3 1 2"},
    "experts": {"model": "names", "text": TEXT},
    "training": {"model": "pairs", "text": TEXT},
    "compare": {"model": "pairs", "other": "stack", "text": TEXT},
    "trust": {"model": "views"},
    "length": {"runs": "pairs", "bucket": "0–10"},
    "experiments": {"experiment": "permutation"},
    "comparisons": {"comparison": "tiny"},
}
"""An address of every screen at which there is something to see."""
SCREENS = tuple(STATES)
WITHOUT_TEXT = ("trust", "length", "memory", "experiments", "comparisons")
"""Screens to which no words are given, or none but symbols."""
SIZES = ((1440, 900), (1280, 720), (960, 640), (390, 844))
HOSTILE = (
    "</script><script>window.broken=1</script>",
    "<img src=x onerror=window.broken=1>",
    "\u202egnirts\u202c",
    "👩🏽‍🚀",
    "שלום",
)


def wait_for_address(window: Any, **state: str) -> None:
    """The address follows what was chosen, a little later."""
    for name, value in state.items():
        window.page.wait_for_function(
            "([name, value]) => new URLSearchParams(location.search).get(name) === value",
            arg=[name, value],
        )
