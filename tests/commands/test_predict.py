"""`regard predict`: texts on the command line, and a conversation at a terminal."""

import os
import pty
import select
import subprocess
import sys
import time

import pytest

import regard
from regard.cli import main
from regard.training.run import train_run
from tests.training.tiny import OPTIONS, write_data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny trained translator."""
    place = tmp_path_factory.mktemp("translator")
    options = OPTIONS["translation"] | {"steps": 1, "average": 1}
    options["data"] = write_data(place, "translation")
    train_run("translation", options, place / "run")
    return str(place / "run")


def output(capfdbinary, *arguments):
    assert main(["predict", *arguments]) == 0
    return capfdbinary.readouterr().out.decode()


def test_texts_on_the_command_line(folder, tmp_path, capfdbinary):
    (tmp_path / "texts.txt").write_text("ein haus\ndas\n")
    expected = output(capfdbinary, folder, "--input", str(tmp_path / "texts.txt"))
    assert output(capfdbinary, folder, "ein haus", "das") == expected
    assert output(capfdbinary, folder, "--beam", "5", "ein haus", "das") == expected
    assert output(capfdbinary, folder, "--text", "ein haus") == expected.splitlines(True)[0]


def test_a_file_name_in_place_of_a_text_gets_a_note(folder, tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("ein haus\n")
    assert main(["predict", folder, "texts.txt"]) == 0
    note = capfdbinary.readouterr().err.decode()
    assert "note: texts.txt is read as a text; --input texts.txt reads the lines" in note


def test_a_text_needs_no_option(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for command in ("show", "explain"):
        shown = []
        for words in (["ein haus"], ["--text", "ein haus"]):
            assert main([command, folder, *words]) == 0
            shown.append(capsys.readouterr().out)
        assert shown[0] == shown[1] != ""
    assert main(["show", folder, "--to", "look.svg", "ein haus"]) == 0
    assert (tmp_path / "look.svg").read_text().startswith("<svg")


@pytest.mark.parametrize("command", ["predict", "show", "explain"])
def test_a_text_before_the_run_is_told_the_order(folder, command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([command, "ein haus", folder]) == 2
    expected = f"expected the run before the text, as in {folder} 'ein haus'"
    assert capsys.readouterr().err.strip().endswith(expected)


def test_nbest_has_a_line_per_candidate(folder, capfdbinary):
    shown = output(capfdbinary, folder, "ein haus", "", "das", "--beam", "4", "--nbest", "3")
    rows = [line.split("\t") for line in shown.splitlines()]
    assert [row[0] for row in rows] == ["1"] * 3 + ["2"] + ["3"] * 3
    scores = [float(score) for number, score, _ in rows if number == "1"]
    assert scores == sorted(scores, reverse=True)
    assert rows[3] == ["2", "", ""]
    best = output(capfdbinary, folder, "ein haus", "--beam", "4").strip()
    assert rows[0][2] == " ".join(best.split())


def test_no_command_overwrites_its_input(folder, tmp_path, capsys):
    text, link, trace = tmp_path / "k.txt", tmp_path / "link.txt", tmp_path / "trace.json"
    text.write_text("das\n")
    link.symlink_to(text)
    trace.write_text(regard.load(folder).trace("das").to_json())
    before = trace.read_bytes()
    for words in (
        ["predict", folder, "--input", str(text), "--output", str(link)],
        ["predict", folder, "das", "--prefix", str(link), "--output", str(text)],
        ["align", folder, "--data", str(text), str(text), "--output", str(text)],
        ["show", str(trace), "--to", str(trace)],
    ):
        assert main(words) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "is an input as well" in line
    assert text.read_text() == "das\n"
    assert trace.read_bytes() == before


def test_a_table_is_read_as_plain_text_and_predict_says_so(folder, tmp_path, capfdbinary):
    table = tmp_path / "reviews.csv"
    table.write_text("text,label\ndas,1\n")
    note = f"{table} is read as plain text, one text per line\n".encode()
    assert main(["predict", folder, "--input", str(table)]) == 0
    noted = capfdbinary.readouterr()
    assert noted.err == note
    assert len(noted.out.splitlines()) == 2
    assert main(["predict", folder, "--input", str(table), "--quiet"]) == 0
    assert capfdbinary.readouterr().err == b""


def test_an_empty_text_is_called_empty(folder, capsys):
    assert main(["show", folder, "--text", " "]) == 2
    assert "--text: the text is empty" in capsys.readouterr().err


def test_predict_imports_no_compiler_corpora_or_server(folder):
    script = (
        "import sys; from regard.cli import main; "
        f"main(['predict', {folder!r}, 'ein haus']); "
        "slow = {'torch._dynamo', 'sympy', 'sacrebleu', 'uvicorn', 'regard.corpora', 'rich'}; "
        "sys.exit(', '.join(slow & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.strip() == ""


def read_until(terminal, text, seconds=240.0):
    shown, end = b"", time.monotonic() + seconds
    while text.encode() not in shown:
        assert time.monotonic() < end, shown
        if select.select([terminal], [], [], 1.0)[0]:
            shown += os.read(terminal, 4096)
    return shown.decode()


def test_a_terminal_gets_an_answer_per_line(folder, capfdbinary):
    expected = output(capfdbinary, folder, "ein haus").strip()
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", "predict", folder],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        assert "One text per line; Ctrl-D ends." in read_until(ours, "> ")
        os.write(ours, b"ein haus\n")
        answer = read_until(ours, "> ")
        assert expected in answer.replace("\r\n", "\n").splitlines()
        os.write(ours, b"\n")
        read_until(ours, "> ")
        os.write(ours, b"\x04")
        assert process.wait(60) == 0
    finally:
        process.kill()
        os.close(ours)
