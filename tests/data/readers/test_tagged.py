from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import Summary, read_tagged
from regard.data.readers import conll
from regard.data.tags import Span, bio, bioes, first_fault, spans, tag_scheme, to_bio, to_bioes
from regard.errors import RegardError


def read(path: Path, **options: str) -> list[tuple[object, tuple[str, ...]]]:
    return [(x.words, x.tags) for x in read_tagged(path, **options)]


ROME = [(("Rome", "is", "old"), ("B-LOC", "O", "O")), (("Ada",), ("B-PER",))]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.conll", "Rome B-LOC\nis O\nold O\n\nAda B-PER\n"),
        ("a.txt", "Rome\tB-LOC\nis\tO\nold\tO\n\n\n\nAda\tB-PER"),
        ("a.tsv", "word\ttag\nRome\tB-LOC\nis\tO\nold\tO\n\nAda\tB-PER"),
        (
            "a.conll",
            "-DOCSTART- -X- O O\n\nRome NNP I-NP B-LOC\nis V O O\nold J O O\n\nAda N N B-PER",
        ),
        ("a.conll", "# id = 1\n# a b\nRome B-LOC\nis O\nold O\n\n# id = 2\nAda B-PER\n\n# end\n"),
        (
            "a.jsonl",
            '{"tokens": ["Rome", "is", "old"], "ner_tags": ["B-LOC", "O", "O"]}\n'
            '{"tokens": ["Ada"], "ner_tags": ["B-PER"]}',
        ),
        ("a.csv", "sentence,tags\nRome is old,B-LOC O O\nAda,B-PER\n"),
    ],
)
def test_formats(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert read(tmp_path / name) == ROME


def test_a_table_with_a_word_per_row_is_refused(tmp_path: Path) -> None:
    """Its sentences are unknown: each word would be trained on as a sentence."""
    rows = [f"{i // 5},word{i},O" for i in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["Sentence #,Word,Tag", *rows]))
    with pytest.raises(RegardError, match=r"a\.csv:31: one word per row so far: .* \.conll file"):
        read(tmp_path / "a.csv", text="Word", label="Tag")
    (tmp_path / "b.csv").write_text("\n".join(["Word,Tag", *["Rome,B-LOC"] * 29, "Ada is,B-PER O"]))
    assert len(read(tmp_path / "b.csv", text="Word", label="Tag")) == 30


def test_columns_and_universal_dependencies(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(
        "# text = du vin\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n"
        "1\tde\t_\tADP\t_\t_\t_\t_\t_\t_\n2\tle\t_\tDET\t_\t_\t_\t_\t_\t_\n"
    )
    assert read(tmp_path / "a.conllu") == [(("de", "le"), ("ADP", "DET"))]
    (tmp_path / "a.conll").write_text("Rome NNP B-LOC\n")
    assert read(tmp_path / "a.conll", label="2") == [(("Rome",), ("NNP",))]
    assert read(tmp_path / "a.conll", text="2", label="1") == [(("NNP",), ("Rome",))]


def test_a_hash_can_be_a_word(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("# O\n#tag O\n# remark\nx O\n# O\n\n#only B-X\n")
    summary = Summary()
    found = [x.words for x in read_tagged(tmp_path / "a.conll", summary=summary)]
    assert found == [("#", "#tag", "x", "#"), ("#only",)]
    assert summary.total.skipped == 1


def test_odd_spaces_belong_to_the_word(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("a\u00a0b O\n\u3000 O\n", "utf-8")
    with pytest.raises(RegardError, match=r"a.conll:2: no word"):
        read(tmp_path / "a.conll")
    (tmp_path / "a.conll").write_text("a\u00a0b  O \n", "utf-8")
    assert read(tmp_path / "a.conll") == [(("a\u00a0b",), ("O",))]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "a.conll: the file is empty"),
        ("Rome B-LOC\nis\n", {}, r"a.conll:2: 1 column: expected 2, as in the first line"),
        ("Rome\n", {}, r"a.conll:1: 1 column: expected 2 to 10"),
        ("a b c d e f g h i j k\n", {}, r"a.conll:1: looks like plain text: 11 columns"),
        ("Rome B-LOC\nAda B_PER\n", {}, r"a.conll:2: tag 'B_PER' among BIO tags"),
        ("Rome\tB-LOC\nis\t\n", {}, r"a.conll:2: no tag"),
        ("\tO\n", {}, r"a.conll:1: no word"),
        ("Rome B-LOC\n", {"label": "3"}, r"no column 3 for --label: the line has 2"),
        ("Rome B-LOC\n", {"label": "ner"}, r"--label ner: CoNLL columns have no names"),
    ],
)
def test_malformed_columns(
    tmp_path: Path, content: str, options: dict[str, str], message: str
) -> None:
    (tmp_path / "a.conll").write_text(content)
    with pytest.raises(RegardError, match=message):
        read(tmp_path / "a.conll", **options)


def test_a_file_without_blank_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conll, "MAX_SENTENCE_LINES", 30)
    (tmp_path / "a.conll").write_text("a O\n\n" + "a O\n" * 31)
    with pytest.raises(RegardError, match=r"a.conll:3: no blank line in 30 lines"):
        read(tmp_path / "a.conll")


def test_tables_of_lists_that_do_not_match(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"tokens": ["a", "b"], "tags": ["O"]}')
    with pytest.raises(RegardError, match=r"a.jsonl:1: 2 words but 1 tags"):
        read(tmp_path / "a.jsonl")


def test_vectors(tmp_path: Path) -> None:
    values = np.arange(2 * 5 * 3).reshape(2, 5, 3)
    np.save(tmp_path / "x.npy", values)
    (tmp_path / "tags.txt").write_text("A B\nA A A B B\n")
    found = list(read_tagged([tmp_path / "x.npy", tmp_path / "tags.txt"]))
    assert [np.asarray(x.words).shape for x in found] == [(2, 3), (5, 3)]
    np.testing.assert_array_equal(np.asarray(found[0].words), values[0, :2])
    (tmp_path / "tags.txt").write_text("A B A B A B\nA\n")
    with pytest.raises(RegardError, match=r"tags.txt:1: 5 vectors but 6 tags"):
        list(read_tagged([tmp_path / "x.npy", tmp_path / "tags.txt"]))
    np.save(tmp_path / "0.npy", values[0])
    (tmp_path / "a.tsv").write_text("0.npy\tA A B B B\n")
    assert next(iter(read_tagged(tmp_path / "a.tsv"))).tags == ("A", "A", "B", "B", "B")


@st.composite
def some_spans(draw: st.DrawFn) -> tuple[list[Span], int]:
    found, at = [], 0
    for gap, size, kind in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(["A", "B-C"])))
    ):
        found.append(Span(kind, at + gap, at + gap + size))
        at += gap + size
    return found, at + draw(st.integers(0, 2))


@given(some_spans())
def test_spans_survive_every_scheme(case: tuple[list[Span], int]) -> None:
    found, length = case
    assert spans(bio(found, length)) == found
    assert spans(bioes(found, length)) == found
    bilou = [
        ("L" if t[0] == "E" else "U") + t[1:] if t[0] in "ES" else t for t in bioes(found, length)
    ]
    assert spans(bilou) == found
    assert to_bio(bioes(found, length)) == bio(found, length)
    assert to_bioes(bio(found, length)) == bioes(found, length)
    assert first_fault(bio(found, length)) is None
    assert first_fault(bioes(found, length)) is None
    iob1 = list(bio(found, length))
    for one, kind in ((s.start, s.kind) for s in found):
        touching = any(s.end == one and s.kind == kind for s in found)
        iob1[one] = f"{'B' if touching else 'I'}-{kind}"
    assert spans(iob1) == found


def test_schemes_and_faults() -> None:
    assert tag_scheme(["O"]) == "plain"
    assert first_fault(["B-A", "I-B"]) == (1, "I-B begins a span: expected B-B")
    assert first_fault(["B-A", "O", "S-A"]) == (0, "B-A does not fit its neighbours: expected S-A")
    with pytest.raises(RegardError, match="tag 'PER': expected O, B-kind"):
        tag_scheme(["O", "B-PER", "PER"])
