"""The lock file agrees with what is declared, and the page of licences with the lock."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
LOCK = (ROOT / "requirements.lock").read_text()
PINS = {
    canonicalize_name(name): Version(version)
    for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", LOCK, re.MULTILINE)
}


def declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"]]
    for name in extras:
        if name not in ("ray", "bench", "deploy", "docs"):  # not in the tests of all changes
            lines += extras[name]
    constraints = (ROOT / "constraints.txt").read_text().split()
    return [Requirement(line) for line in [*lines, *constraints]]


@pytest.mark.parametrize("requirement", declared(), ids=str)
def test_the_lock_has_what_is_declared(requirement: Requirement) -> None:
    if requirement.name == "regard":
        return
    pinned = PINS.get(canonicalize_name(requirement.name))
    assert pinned is not None, f"{requirement} is not in requirements.lock: run `make lock`"
    assert requirement.specifier.contains(pinned, prereleases=True), (requirement, pinned)


def test_every_locked_file_has_a_hash_and_no_address() -> None:
    entries = re.split(r"^(?=[\w.-]+==)", LOCK, flags=re.MULTILINE)[1:]
    assert len(entries) == len(PINS) > 50
    for entry in entries:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry.split()[0]
    assert "://" not in LOCK
    assert "--index" not in LOCK


def test_the_page_of_licences_lists_the_locked_packages() -> None:
    page = (ROOT / "docs" / "licences.md").read_text()
    listed = re.findall(r"^\| \**([\w.-]+)\** \| (\S+) \| (.+) \|$", page, re.MULTILINE)
    rows = {name: Version(version) for name, version, _ in listed if name not in ("package", "---")}
    assert rows == PINS, "run `make lock`"
