"""Checks a built site for what the strict build lets pass; prints each fault and exits with 1.

- a link or an image that leads to no file, or to no anchor of its page
- a page of docs/ that the navigation does not reach
- an address that a browser would fetch from elsewhere while the page loads
- a public name (in `__all__` of a package with a reference page) that the reference leaves out
"""

import ast
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Page(HTMLParser):
    """The links, the loaded files and the anchors of one HTML file."""

    def __init__(self, path: Path) -> None:
        """Read the file."""
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what one tag refers to, and its anchor."""
        values = {name: value for name, value in attrs if value}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADED and LOADED[tag] in values and values.get("rel") != "canonical":
            self.loaded.append(values[LOADED[tag]])


def broken_references(site: Path, pages: dict[Path, Page]) -> list[str]:
    """Links and files that lead nowhere, and files fetched from other hosts."""
    faults = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for address in page.loaded:
            if urlsplit(address).netloc:
                faults.append(f"{name}: loads {address} from another host")
        for address in page.links + page.loaded:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            base = site if parts.path.startswith("/") else path.parent
            target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            if not target.is_file():
                faults.append(f"{name}: {address} leads to no file")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                faults.append(f"{name}: {address} leads to no anchor")
    return faults


def unreachable_pages(site: Path, docs: Path, pages: dict[Path, Page]) -> list[str]:
    """Pages of docs/ that no link on the front page's navigation leads to."""
    index = site / "index.html"
    reached = {(site / unquote(urlsplit(link).path)).resolve() for link in pages[index].links}
    sources = {path.relative_to(docs).with_suffix(".html") for path in docs.rglob("*.md")}
    return [
        f"docs/{source.with_suffix('.md')}: not in the navigation of mkdocs.yml"
        for source in sorted(sources)
        if (site / source).resolve() not in reached | {index.resolve()}
    ]


def public_names(package: Path) -> list[str]:
    """The names in `__all__` of a package or module, without importing it."""
    source = package / "__init__.py" if package.is_dir() else package.with_suffix(".py")
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def missing_names(docs: Path, site: Path, pages: dict[Path, Page]) -> list[str]:
    """Public names of the packages with a reference page that no reference page documents."""
    sources = sorted((docs / "reference").glob("*.md"))
    documented = {
        anchor for source in sources for anchor in pages[reference_page(source, site)].anchors
    }
    documented |= {block for source in sources for block in documented_modules(source)}
    faults = []
    for source in sources:
        if source.stem == "commands":  # written from the parsers, not from a package
            continue
        package = ROOT / "regard" / ("" if source.stem == "regard" else source.stem)
        for name in public_names(package):
            if not any(path.endswith(f".{name}") for path in documented):
                faults.append(f"docs/{source.relative_to(docs)}: {name} is public but not there")
    return faults


def reference_page(source: Path, site: Path) -> Path:
    """The built page of a reference page's source."""
    return site / "reference" / f"{source.stem}.html"


def documented_modules(source: Path) -> set[str]:
    """The modules that a reference page documents whole, by a `:::` block."""
    lines = source.read_text(encoding="utf-8").splitlines()
    names = {line.removeprefix("::: ").strip() for line in lines if line.startswith("::: ")}
    return {name for name in names if (ROOT / name.replace(".", "/")).with_suffix(".py").is_file()}


def main(site: Path, docs: Path) -> int:
    """Check the site; return the exit code."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    site = site.resolve()
    pages.pop(site / "404.html", None)  # its links start at the site's future address
    faults = broken_references(site, pages) + unreachable_pages(site, docs, pages)
    faults += missing_names(docs, site, pages)
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(ROOT / "site", ROOT / "docs"))
