"""Write docs/licences.md: the licence of every package in requirements.lock, from its metadata.

Run it by `make lock`, in an environment with these packages; `--check` only compares.
"""

import re
import sys
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "licences.md"
STATED_ELSEWHERE = {"resvg-py": "MIT"}
"""Packages whose metadata names no licence: what the licence file in their wheel says."""
BY_CLASSIFIER = {
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
HEADER = """\
# Licences of dependencies

Regard itself is under the Apache License 2.0. These are the packages of `requirements.lock`: what
Regard needs at run time, its extras, and the tools of its tests. Only those in bold come with
`pip install regard`. The extra `ray` is not locked: its tests run where Ray (Apache-2.0) is
installed. The licences are those that the packages state; `make lock` writes this page.

| package | version | licence |
| --- | --- | --- |
"""


def locked_versions(lock: str) -> dict[str, str]:
    """Versions by package, from the text of a lock file."""
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", lock, re.MULTILINE))


def licence(about: PackageMetadata, name: str) -> str:
    """The licence that a package states: as an expression, as a classifier or in words."""
    if expression := about.get("License-Expression"):
        return str(expression)
    classifiers = [
        line.split(" :: ")[-1]
        for line in about.get_all("Classifier") or []
        if line.startswith("License :: ")
    ]
    named = [BY_CLASSIFIER.get(one, one) for one in classifiers if one != "OSI Approved"]
    if named:
        return " OR ".join(dict.fromkeys(named))
    words = (about.get("License") or "").strip().splitlines()
    if words and words[0] and words[0].upper() != "UNKNOWN":
        return words[0][:60]
    if name in STATED_ELSEWHERE:
        return STATED_ELSEWHERE[name]
    raise SystemExit(f"{name}: states no licence: add it to STATED_ELSEWHERE in {__file__}")


def normal(name: str) -> str:
    """The name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def runtime_packages(versions: dict[str, str]) -> set[str]:
    """The packages that `pip install regard` installs, directly or indirectly."""
    seen: set[str] = set()
    waiting = ["regard"]
    while waiting:
        name = waiting.pop()
        for requirement in metadata(name).get_all("Requires-Dist") or []:
            needed, _, marker = requirement.partition(";")
            wanted = re.match(r"[A-Za-z0-9._-]+", needed)
            if "extra" in marker or wanted is None or normal(wanted[0]) not in versions:
                continue
            if normal(wanted[0]) not in seen:
                seen.add(normal(wanted[0]))
                waiting.append(wanted[0])
    return seen


def page() -> str:
    """The page of all licences."""
    versions = locked_versions((ROOT / "requirements.lock").read_text())
    versions = {normal(name): version for name, version in versions.items()}
    runtime, rows = runtime_packages(versions), []
    for name, version in sorted(versions.items()):
        try:
            stated = licence(metadata(name), name)
        except PackageNotFoundError:
            raise SystemExit(f"{name}: is locked but not installed: run `make lock`") from None
        rows.append(f"| {f'**{name}**' if name in runtime else name} | {version} | {stated} |\n")
    return HEADER + "".join(rows)


def main() -> int:
    """Write the page, or with --check say whether it is as it should be."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page())
        return 0
    if PAGE.read_text() != page():
        raise SystemExit(f"{PAGE}: is out of date: run `make lock`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
