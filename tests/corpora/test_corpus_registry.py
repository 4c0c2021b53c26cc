"""The table of built-in corpora: nothing is imported before it is used; other packages add rows."""

import subprocess
import sys

from regard.corpora import CORPORA, BuiltInCorpus, make_corpus, write_corpus
from regard.data import Line

LISTING = """
import sys
import regard.data, regard.tasks.registry, regard.inference
from regard.corpora import CORPORA
print(sorted(set(CORPORA) & {name.removeprefix("regard.corpora.") for name in sys.modules}))
"""


def test_grammars_are_imported_on_demand() -> None:
    listed = subprocess.run(
        [sys.executable, "-c", LISTING], capture_output=True, text=True, check=True
    )
    assert listed.stdout.strip() == "[]"


def test_a_corpus_of_another_package(tmp_path) -> None:
    def sample(sizes, seed, mark="!"):
        for split, size in zip(sizes._fields, sizes, strict=True):
            yield from ((split, Line(f"{split} {seed} {i}{mark}")) for i in range(size))

    corpus = BuiltInCorpus(
        sample,
        size=200,
        suffixes=(".txt",),
        lines=lambda line: (line.text,),
        options={"mark": ("!", "?")},
    )
    CORPORA.register("counting", corpus)
    try:
        assert make_corpus("counting").train[-1].text == "train 0 199!"
        written = write_corpus("counting", tmp_path / "corpus", 100, seed=3, mark="?")
    finally:
        del CORPORA._rows["counting"]
    assert written.counts == {"train": 100, "valid": 10, "test": 10}
    assert (tmp_path / "corpus" / "test.txt").read_text().startswith("test 3 0?\ntest 3 1?\n")
