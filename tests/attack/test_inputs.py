"""Inputs that make no sense, or too much of it: understood, or refused in one line."""

import gzip
import json
import os
import random
import shutil
import sys
import threading
import time
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard import verified_files
from regard.cli import main
from regard.data import Summary, read_labelled, read_pairs
from regard.data.readers import sources
from regard.errors import RegardError
from regard.examples import example_path

ROWS = 30
TABLES = {
    "three.tsv": ["{n}\tgood number {n}\tpos", "{n}\tbad number {n}\tneg"],
    "numbers.tsv": ["{n}\tpos", "{n}5\tneg"],
    "swapped.tsv": ["pos\tThis is the good film {n}", "neg\tThis is a bad film {n}"],
    "unique.tsv": ["good film {n}\tid{n}", "bad film {n}\tno{n}"],
    "texts.tsv": ["good film {n}\tpos", "bad film\tneg"],
    "plain.txt": ["This is a line of text", "and here is another line of some words {n}"],
    "sentences.txt": ["Ada sees {n} cats", "Bob is at home"],
    "numbers_pairs.tsv": ["{n}\tein Satz {n}", "{n}7\tnoch ein Satz"],
}
"""Tables that make no sense for a task: lines by name of the file."""


@pytest.fixture
def table(tmp_path: Path):
    def write(name: str, *header: str) -> str:
        lines = [line.format(n=n) for n in range(ROWS) for line in TABLES[name]]
        (tmp_path / name).write_text("\n".join([*header, *lines]) + "\n")
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize(
    ("name", "task", "message"),
    [
        ("three.tsv", "classify", "names that are known (0, good number 0, pos): choose"),
        ("three.tsv", "translation", "choose with --source and --target, by number from 1 to 3"),
        ("numbers.tsv", "classify", "the text is a number in 60 of 60 examples (the first is '0')"),
        ("swapped.tsv", "classify", "text and label seem to be swapped (text 'pos'"),
        ("unique.tsv", "classify", "60 different labels in 60 examples"),
        ("numbers_pairs.tsv", "translation", "the source is a number in "),
        ("texts.tsv", "tag", "looks like a table of texts, one per line: expected one word and"),
        ("plain.txt", "tag", "plain.txt:2: looks like plain text (9 words, 6 in the first line)"),
        ("sentences.txt", "tag", "a blank line ends a sentence, and each line holds a word"),
    ],
)
def test_implausible_columns_are_refused(name, task, message, table, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["train", task, "--data", table(name), "--steps", "1", "--out", str(run)]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert not run.exists()


TINY = ("--steps", "1", "--width", "8", "--word-size", "8", "--encoder", "none")


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("three.tsv", ("2", "3")),
        ("numbers.tsv", ("1", "2")),
        ("unique.tsv", ("1", "2")),
        ("swapped.tsv", ("2", "1")),
    ],
)
def test_chosen_columns_are_accepted_and_reported(name, columns, table, tmp_path, capsys):
    given = ["--data", table(name), "--text", columns[0], "--label", columns[1]]
    assert main(["train", "classify", *given, *TINY, "--out", str(tmp_path / "run")]) == 0
    told = capsys.readouterr().err
    assert f"text = column {columns[0]}, label = column {columns[1]} (no header)" in told
    if name == "three.tsv":
        assert "labels      2 (neg: 30, pos: 30)" in told
    report = json.loads((tmp_path / "run" / "data" / "prepared.json").read_text())
    assert sum(report["sizes"].values()) == 2 * ROWS


def jsonl(path: Path, record: dict[str, str]) -> Path:
    path.write_text((json.dumps(record) + "\n") * 3)
    return path


def parquet(path: Path, record: dict[str, str]) -> Path:
    import pyarrow as pa
    from pyarrow.parquet import write_table

    path = path.with_suffix(".parquet")
    write_table(pa.table({name: [value] * 3 for name, value in record.items()}), path)
    return path


@pytest.mark.parametrize("write", [jsonl, parquet])
@pytest.mark.parametrize(
    "record",
    [
        {"label": "pos", "quote": "good film"},
        {"quote": "good film", "label": "pos"},
        {"sentiment_label": "pos", "quote": "good film"},
        {"id": "7", "label": "pos", "quote": "good film"},
        {"tweet_id": "7", "airline_sentiment": "pos", "text_body": "good film"},
    ],
)
def test_a_named_label_is_never_the_text(write, record, tmp_path):
    first = next(read_labelled(write(tmp_path / "a.jsonl", record)))
    assert (first.text, first.labels) == ("good film", ("pos",))


@pytest.mark.parametrize("write", [jsonl, parquet])
@pytest.mark.parametrize(
    "record", [{"target": "bon", "foo": "good"}, {"foo": "good", "translated_output": "bon"}]
)
def test_a_named_target_is_never_the_source(write, record, tmp_path):
    first = next(read_pairs(write(tmp_path / "a.jsonl", record)))
    assert (first.source, first.target) == ("good", "bon")


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        (
            ["tweet_id,airline_sentiment,text_body", "1,pos,good film", "2,neg,bad", "3,pos,fine"],
            'text = column 3 "text_body", label = column 2 "airline_sentiment"',
        ),
        (
            ["quote,label", "good,pos", "bad,neg"],
            'text = column 1 "quote", label = column 2 "label"',
        ),
        (
            ["Review Text,Star Rating", "good,5", "bad,1", "ok,5"],
            'text = column 1 "Review Text", label = column 2 "Star Rating"',
        ),
        # a label that is found again is no header, nor are words that only look like names
        (["nice message,label_1", "bad,label_0", "good,label_1"], "(no header)"),
        (["text,noun", "go,verb", "house,noun"], "(no header)"),
        (["good,pos", "bad,neg", "fine,pos"], "(no header)"),
    ],
)
def test_headers_are_recognized(lines, columns, tmp_path):
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    summary = Summary()
    examples = list(read_labelled(tmp_path / "a.csv", summary=summary))
    assert columns in summary.columns()[0]
    assert len(examples) == len(lines) - (columns != "(no header)")


def test_a_header_with_columns_that_are_not_known_names_them(tmp_path):
    (tmp_path / "a.csv").write_text("key,label,remark,answer\na,b,c,d\ne,f,g,h\n")
    with pytest.raises(RegardError, match=r"Choose one with --text: key, label, remark, answer"):
        list(read_labelled(tmp_path / "a.csv"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nope.csv", "no such file in"),
        ("kagle.csv", "did you mean {folder}/kaggle.csv?"),
        ("kaggle.tsv", "did you mean {folder}/kaggle.csv?"),
        ("link.csv", "is a link to gone.csv, which does not exist"),
        ("lonk.csv", "no such file in"),
    ],
)
def test_only_a_file_that_exists_and_is_similar_is_suggested(name, message, tmp_path):
    (tmp_path / "kaggle.csv").write_text("a,b\n")
    os.symlink("gone.csv", tmp_path / "link.csv")
    with pytest.raises(RegardError) as raised:
        list(read_labelled(tmp_path / name))
    assert message.format(folder=tmp_path) in str(raised.value)


def test_labels_that_are_all_empty_lists_are_refused(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text": "film {n}", "labels": []}}\n' for n in range(20)))
    given = ["--data", str(path), "--several", "--out", str(tmp_path / "run")]
    assert main(["train", "classify", *given]) == 2
    told = capsys.readouterr().err
    assert "no example has a label" in told
    assert told.count("\n") == 1


def test_labels_cannot_control_the_terminal(tmp_path, capsys, shapes_unchecked):
    """Escape sequences in labels and names are shown, not obeyed."""
    path, run = tmp_path / "a\x1b[2J.tsv", tmp_path / "run\x1b[1m"
    labels = ("ne\x1b[31m\x9bg", "pos")
    path.write_text("".join(f"film {n}\t{labels[n % 2]}\n" for n in range(20)))
    small = ["--steps", "1", "--width", "4", "--word-size", "4", "--out", str(run)]
    assert main(["train", "classify", "--data", str(path), *small]) == 0
    told = capsys.readouterr().err
    for words in (
        ["data", "describe", str(path), "--task", "classify"],
        ["info", str(run)],
        ["runs", str(tmp_path)],
        ["evaluate", str(run), "--data", str(path)],
        ["explain", str(run), "--text", "film"],
        ["predict", str(run), str(path), "--beam\x1b[0m"],
        ["info", str(path)],
    ):
        main(words)
        output = capsys.readouterr()
        told += output.out + output.err
    assert "ne\\x1b[31m\\x9bg" in told
    assert not {"\x1b", "\x9b"} & set(told)


def test_a_file_name_that_is_not_utf8_is_refused(tmp_path, capsys):
    name = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.tsv")
    Path(name).write_text("good film\tpos\nbad\tneg\n")
    for given in (["--data", name], ["--data", str(tmp_path / "*.tsv")]):
        assert main(["train", "classify", *given, "--out", str(tmp_path / "run")]) == 2
        told = capsys.readouterr().err
        assert "caf\\udce9.tsv: not UTF-8: rename the file" in told
        assert told.count("\n") == 1


def test_folders_may_have_names_that_are_not_utf8(tmp_path, capsys, monkeypatch):
    """They are not named on the command line, but the current folder may be one."""
    place = tmp_path / os.fsdecode(b"caf\xe9")
    shutil.copytree(example_path(Path("example:sentiment")), place / os.fsdecode(b"r\xffn"))
    monkeypatch.chdir(place)
    assert main(["runs", ".", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["task"] == "classify"
    assert main(["doctor", "--json"]) in (0, 1)
    assert "free in" in capsys.readouterr().out
    monkeypatch.chdir(os.fsdecode(b"r\xffn"))
    assert main(["pack", ".", "--to", str(tmp_path / "packed")]) == 0
    assert "# r\\udcffn" in (tmp_path / "packed" / "README.md").read_text("utf-8")


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_input_lines_end_where_lines_of_data_do(ending, tmp_path):
    from regard.commands.line_io import open_lines
    from regard.data.readers.lines import lines
    from regard.data.readers.sources import resolve

    path = tmp_path / "a.txt"
    path.write_bytes(ending.join([b"one", b"", b"two\x0cthree", b"last"]))
    with open_lines(str(path)) as given:
        assert list(given) == [text for _, text in lines(resolve(str(path))[0])]


def test_an_input_line_has_a_longest_length(tmp_path):
    from regard.commands.line_io import open_lines

    path = tmp_path / "long.txt"
    with path.open("wb") as file:
        file.write(b"short\n")
        file.truncate(1 << 26)  # zeros in one line, which take no space
    with (
        open_lines(str(path)) as given,
        pytest.raises(RegardError, match=r"long.txt:2: line of more than 1,048,576 bytes"),
    ):
        list(given)


def test_a_line_that_never_ends_is_refused_at_once():
    """What `regard predict RUN < /dev/zero` reads."""
    from regard.data.readers.lines import BLOCK, LINE_LIMIT, raw_lines

    class OneLine(BytesIO):
        given = 0

        def read1(self, size: int | None = -1) -> bytes:
            self.given += BLOCK
            assert self.given <= LINE_LIMIT + 2 * BLOCK
            return bytes(BLOCK)

    assert next(raw_lines(OneLine())) is None


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_long_runs_of_letters_take_no_quadratic_time(kind):
    """A run of 200,000 letters took minutes; here it takes a moment, and comes back as it was."""
    from time import process_time

    from regard.data.tokenizers.tokenizer import Tokenizer

    text = "ab" * 100_000
    start = process_time()
    tokenizer = Tokenizer.train(kind, [text, "a few other words " + "x" * 63], 300)
    ids = tokenizer.ids([text])[0]
    assert process_time() - start < 20
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode(tokenizer.ids(["y" + " x" * 200])[0]) == "y" + " x" * 200


def test_unigram_learns_from_a_limited_number_of_letters_in_long_runs(monkeypatch):
    """Every piece of DNA is another word, and training passes over all different words."""
    from regard.data.tokenizers import recipes
    from regard.data.tokenizers.tokenizer import Tokenizer

    chance = random.Random(7)
    learned, beyond = ("".join(chance.choices(letters, k=600)) for letters in ("acgt", "wxyz"))
    monkeypatch.setattr(recipes, "MAX_LONG_RUNS", 600)
    texts = ["a few words", learned, [beyond, "few"], "more words", beyond + " words"]
    tokenizer = Tokenizer.train("unigram", texts, 400)
    without = ["a few words", learned, ["", "few"], "more words", " words"]
    assert tokenizer.fingerprint == Tokenizer.train("unigram", without, 400).fingerprint
    assert tokenizer.decode(tokenizer.ids([beyond])[0]) == beyond
    monkeypatch.undo()
    assert tokenizer.fingerprint != Tokenizer.train("unigram", texts, 400).fingerprint


@pytest.mark.parametrize("name", ["/proc/self/mem", "x" * 5000])
def test_input_that_cannot_be_read_is_refused(name):
    from regard.commands.line_io import open_lines

    with pytest.raises(RegardError, match="cannot be read"), open_lines(name) as given:
        list(given)
    with pytest.raises(RegardError):
        list(read_labelled(name))


def test_a_head_that_does_not_exist_is_refused_before_data_is_read(tmp_path, table, capsys):
    pairs = table("texts.tsv")
    given = ["--data", pairs, "--alignments", pairs, "--align-head", "9"]
    assert main(["train", "translation", *given, "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert "align-head: expected 0 to 0, got 9" in told.replace("_", "-")
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "classify", "--data", "/dev/zero"], "/dev/zero: is a device"),
        (["data", "describe", "/dev/urandom", "--task", "language"], "/dev/urandom: is a device"),
        (["train", "classify", "--config", "deep.toml"], "deep.toml: cannot be read as a config"),
        (["train", "classify", "--config", "deep.json"], "deep.json: cannot be read as a config"),
        (["train", "classify", "--config", "/dev/zero"], "it has more than 4,194,304 bytes"),
        (["serve", "--token-file", "/dev/zero"], "it has more than 4,096 bytes"),
    ],
)
def test_endless_and_nested_files_are_refused(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep.toml").write_text("width = " + "[" * 100_000)
    (tmp_path / "deep.json").write_text("[" * 100_000)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"deep.toml", "deep.json"}


@pytest.mark.parametrize(
    ("words", "action"),
    [
        (["train", "classify", "--data", "pipe", "--out", "run"], "nobody writes to this pipe"),
        (["train", "classify", "--config", "pipe", "--out", "run"], "nobody writes to this pipe"),
        (["data", "describe", "pipe", "--task", "language"], "nobody writes to this pipe"),
        (["predict", "example:sentiment", "--input", "pipe"], "nobody writes to this pipe"),
        (["show", "pipe"], "nobody writes to this pipe"),
        (["steps", "--picture", "pipe"], "nobody reads from this pipe"),
    ],
)
def test_a_pipe_with_nobody_at_its_other_end_is_refused(
    words, action, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verified_files, "PIPE_SECONDS", 0.05)
    os.mkfifo("pipe")
    assert main(words) == 2
    error = capsys.readouterr().err
    assert action in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_pipe_may_be_written_to_late_and_slowly(tmp_path):
    pipe = tmp_path / "pipe.tsv"
    os.mkfifo(pipe)

    def write() -> None:
        time.sleep(0.2)
        with pipe.open("w") as stream:
            for n in range(3):
                stream.write(f"film {n}\tpos\n")
                stream.flush()
                time.sleep(0.05)

    writer = threading.Thread(target=write)
    writer.start()
    texts = [example.text for example in read_labelled(pipe)]
    writer.join()
    assert texts == ["film 0", "film 1", "film 2"]


class Endless(BytesIO):
    """A standard input like that of `yes | regard …`."""

    given = 0

    def read(self, size: int | None = -1) -> bytes:
        assert size is not None
        assert size > 0
        self.given += size
        return b"y\n" * (size // 2)


@pytest.mark.parametrize(
    ("disk", "message"),
    [
        ((10**12, 0, 10**11), "-: has more than 3,000,000 bytes: save its beginning in a file"),
        ((10**12, 0, 2**30 + 10), r"-: leaves no space in .* \(after 1,048,576 bytes\)"),
        ((10**6, 0, 10**5), r"-: leaves no space in "),
    ],
)
def test_an_endless_standard_input_does_not_fill_the_disk(disk, message, monkeypatch):
    endless = Endless()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=endless))
    monkeypatch.setattr(sources, "MAX_COPY", 3_000_000)
    usage = SimpleNamespace(total=disk[0], free=disk[2])
    monkeypatch.setattr(sources.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(RegardError, match=message):
        list(read_labelled("-"))
    assert endless.given < 4_000_000


def test_a_compressed_table_that_expands_without_end_is_refused(tmp_path, monkeypatch):
    """Parquet needs random access, so its decompressed content is copied."""
    path = tmp_path / "bomb.parquet.gz"
    with gzip.open(path, "wb") as stream:
        stream.write(b"PAR1" + bytes(5_000_000))
    monkeypatch.setattr(sources, "MAX_COPY", 3_000_000)
    with pytest.raises(RegardError, match=r"bomb.parquet.gz: has more than 3,000,000 bytes"):
        list(read_labelled(path))
