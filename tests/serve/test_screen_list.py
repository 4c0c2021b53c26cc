"""The list of screens: every entry has its module and the fields that the app reads."""

import json
from importlib.resources import files

from regard.serve.static_files import SCREENS

STATIC = files("regard.serve") / "static"


def test_every_screen_has_a_module_that_defines_its_element():
    for name in SCREENS:
        source = (STATIC / "screens" / f"{name}.js").read_text("utf-8")
        assert f'define("rg-screen-{name}"' in source


def test_entries_have_the_fields_that_the_app_reads():
    entries = json.loads((STATIC / "screens.json").read_text("utf-8"))
    assert len({entry["name"] for entry in entries}) == len(entries)
    for entry in entries:
        assert set(entry) == {"name", "title", "lead", "group", "train"}
