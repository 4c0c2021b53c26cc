"""Many files with several workers: the output of one process, also after workers were killed."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from regard.cli import main
from regard.data.readers.columns import SOURCE, TEXT
from regard.data.readers.lines import raw_lines
from regard.errors import RegardError
from regard.inference.bulk import local_workers, many_files
from regard.inference.bulk.line_work import LineWork
from regard.inference.bulk.many_files import Engine, input_files, process_files
from regard.inference.bulk.shards import divide
from regard.progress import reporting
from regard.training.run import train_run
from tests.training.tiny import OPTIONS, WORDS, write_data

LINES = 90


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    """A tiny classifier, translator and language model."""
    folders = {}
    for task in ("classify", "translation", "language"):
        place = tmp_path_factory.mktemp(task)
        options = OPTIONS[task] | {"steps": 1, "average": 1, "data": write_data(place, task)}
        folders[task] = train_run(task, options, place / "run")[0].path
    return folders


@pytest.fixture
def corpus(tmp_path) -> Path:
    """A plain file, one with other newlines, a compressed one and an empty one."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    texts = [
        " ".join(WORDS[(i * 7 + j * j) % len(WORDS)] for j in range(1 + i % 6)) + f" {i}"
        for i in range(LINES)
    ]
    texts[17] = ""
    (folder / "plain.txt").write_text("\n".join(texts), "utf-8")
    (folder / "mixed.txt").write_bytes("\r\n".join(texts[:50]).encode() + b"\rlast\n\n")
    (folder / "packed.txt.gz").write_bytes(gzip.compress("\n".join(texts[::-1]).encode()))
    (folder / "empty.txt").write_bytes(b"")
    return folder


def work(run: Path, kind: str = "predictions", **options) -> LineWork:
    texts = ("input",) if kind == "predictions" else ("source", "target")
    return LineWork(kind, str(run), texts, options)


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def plain_outputs(run: Path, corpus: Path, out: Path, *options: str) -> dict[str, bytes]:
    """What the plain command writes, file by file."""
    out.mkdir()
    for path in corpus.iterdir():
        name = path.name.removesuffix(".gz")
        arguments = ["--input", str(path), "--output", str(out / name), "--quiet", *options]
        assert main(["predict", str(run), *arguments]) == 0
    return outputs(out)


@pytest.mark.parametrize("lines", [1, 7, 50, 1000])
def test_shards_divide_a_file_at_its_lines(corpus, runs, lines):
    (corpus / "long.txt").write_bytes(b"a\n" + b"x" * (3 << 20) + b"\nb\r\rc\n\xff\nd")
    for file in input_files(str(corpus / "*"), work(runs["classify"]), None):
        with file.source.open() as stream:
            every = list(raw_lines(stream))
        found = []
        for shard in divide(file, lines):
            assert shard.count <= lines or file.compressed
            assert shard.first == len(found) + 1
            with file.source.open() as stream:
                stream.seek(shard.offset)
                rows = list(raw_lines(stream))
            skipped = 0 if shard.offset else shard.first - 1
            found += rows[skipped : skipped + shard.count]
        assert found == every, file.path


@pytest.mark.parametrize(("jobs", "lines"), [(1, 1000), (2, 20), (3, 33)])
def test_the_output_is_that_of_the_plain_command(runs, corpus, tmp_path, jobs, lines):
    expected = plain_outputs(runs["translation"], corpus, tmp_path / "plain")
    engine = Engine(jobs=jobs, shard_lines=lines)
    out = tmp_path / "out"
    summary, _ = process_files(work(runs["translation"]), str(corpus / "*"), out, engine)
    assert outputs(out) == expected
    assert summary["lines"] == 2 * LINES + 52
    assert summary["failed"] == 0
    assert not list(out.rglob("*.part"))


def test_the_command_and_its_second_run(runs, corpus, tmp_path, capsys, monkeypatch):
    run, out = str(runs["translation"]), tmp_path / "out"
    nbest = ["--beam", "3", "--nbest", "2"]
    expected = plain_outputs(runs["translation"], corpus, tmp_path / "plain", *nbest)
    command = ["predict", run, "--input", str(corpus / "*"), "--output", str(out), *nbest]
    assert main([*command, "--jobs", "2", "--quiet"]) == 0
    assert outputs(out) == expected
    monkeypatch.setattr(many_files, "process_locally", None)  # there is nothing left for it
    assert main([*command, "--jobs", "1"]) == 0
    assert "4 of 4 files were finished before" in capsys.readouterr().err
    assert main(["predict", run, "--input", str(corpus / "*"), "--output", str(out)]) == 2
    assert "holds the output of another command" in capsys.readouterr().err


def test_a_changed_and_a_new_file_are_processed(runs, corpus, tmp_path, monkeypatch):
    out, engine = tmp_path / "out", Engine(jobs=1, shard_lines=20)
    process_files(work(runs["classify"]), str(corpus / "*"), out, engine)
    (corpus / "plain.txt").write_text("great film\n")
    (corpus / "new.txt").write_text("bad plot\nbad\n")
    given = []
    process = many_files.process_locally

    def spy(settings, jobs, workers):
        given.extend(Path(job["shard"]["file"]["path"]).name for job in jobs)
        return process(settings, jobs, workers)

    monkeypatch.setattr(many_files, "process_locally", spy)
    process_files(work(runs["classify"]), str(corpus / "*"), out, engine)
    assert sorted(given) == ["new.txt", "plain.txt"]
    assert len((out / "plain.txt").read_bytes().splitlines()) == 1


def test_a_killed_worker_is_replaced(runs, corpus, tmp_path, monkeypatch):
    expected = plain_outputs(runs["translation"], corpus, tmp_path / "plain")
    started, killed = [], []
    start = local_workers._start
    monkeypatch.setattr(
        local_workers, "_start", lambda settings: started.append(start(settings)) or started[-1]
    )

    def kill(stage):
        if stage.label == "predicting" and stage.done and not killed:
            killed.append(next(worker for worker in started if worker.job is not None))
            os.kill(killed[0].process.pid, signal.SIGKILL)

    out = tmp_path / "out"
    engine = Engine(jobs=2, shard_lines=3)
    with reporting(kill):
        process_files(work(runs["translation"]), str(corpus / "*"), out, engine)
    assert killed
    assert len(started) == 3
    assert outputs(out) == expected


def test_workers_that_always_die_are_an_error(runs, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(local_workers.sys, "executable", str(tmp_path / "dies"))
    (tmp_path / "dies").write_text("#!/bin/sh\nkill -9 $$\n")
    (tmp_path / "dies").chmod(0o755)
    with pytest.raises(RegardError, match=r"plain.txt: 3 workers died at lines 1 to 90 .*SIGKILL"):
        process_files(
            work(runs["classify"]), str(corpus / "plain.txt"), tmp_path / "out", Engine(jobs=1)
        )


DRIVER = """
import sys
from pathlib import Path
from regard.inference.bulk.line_work import LineWork
from regard.inference.bulk.many_files import Engine, process_files
process_files(LineWork("predictions", sys.argv[1], ("input",)), sys.argv[2], Path(sys.argv[3]),
              Engine(jobs=2, shard_lines=2))
"""


def test_a_killed_command_resumes(runs, corpus, tmp_path, monkeypatch):
    text = (corpus / "plain.txt").read_text() + "\n"
    (corpus / "plain.txt").write_text(text * 40)
    expected = plain_outputs(runs["translation"], corpus, tmp_path / "plain")
    out, pattern = tmp_path / "out", str(corpus / "*")
    arguments = [str(runs["translation"]), pattern, str(out)]
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, *arguments])
    try:
        deadline = time.monotonic() + 300
        while len(list(out.rglob("*.part"))) < 20:
            assert time.monotonic() < deadline
            assert driver.poll() is None
            time.sleep(0.01)
    finally:
        driver.kill()
        driver.wait()
    time.sleep(1.0)  # its workers write what they were at
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.part")}
    finished = {path.name for path in out.iterdir() if path.is_file()}
    redone = []
    process = many_files.process_locally

    def spy(settings, jobs, workers):
        redone.extend(job["part"] for job in jobs if Path(job["part"]) in before)
        redone.extend(job for job in jobs if job["shard"]["file"]["output"] in finished)
        return process(settings, jobs, workers)

    monkeypatch.setattr(many_files, "process_locally", spy)
    process_files(work(runs["translation"]), pattern, out, Engine(jobs=2, shard_lines=2))
    assert before
    assert not redone
    assert outputs(out) == expected


def test_outputs_that_a_killed_command_had_begun_are_removed(runs, tmp_path):
    (tmp_path / "texts.txt").write_text("the film\n")
    command = work(runs["translation"]), str(tmp_path / "texts.txt"), tmp_path / "out"
    process_files(*command, Engine(jobs=1))
    (tmp_path / "out" / "texts.txt").unlink()
    for name in ("texts.txt.123.part", "texts.txt.part"):
        (tmp_path / "out" / name).write_text("half")
        if name == "texts.txt.part":  # of somebody else
            with pytest.raises(RegardError, match=r"texts\.txt\.part: is not an output"):
                process_files(*command, Engine(jobs=1))
            (tmp_path / "out" / name).unlink()
    process_files(*command, Engine(jobs=1))
    assert outputs(tmp_path / "out").keys() == {"texts.txt"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")  # Ray warns itself
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_on_ray_the_output_is_the_same_though_a_worker_and_the_command_are_killed(
    runs, corpus, tmp_path, monkeypatch
):
    pytest.importorskip("ray", reason="needs regard[ray]")
    monkeypatch.setenv("RAY_worker_register_timeout_seconds", "600")  # of a busy machine
    monkeypatch.setenv("RAY_worker_niceness", "0")
    text = (corpus / "plain.txt").read_text() + "\n"
    (corpus / "plain.txt").write_text(text * 40)
    expected = plain_outputs(runs["translation"], corpus, tmp_path / "plain")
    out, pattern = tmp_path / "out", str(corpus / "*")
    script = DRIVER.replace("Engine(", 'Engine(on="ray", ')
    arguments = [str(runs["translation"]), pattern, str(out)]
    driver = subprocess.Popen([sys.executable, "-c", script, *arguments])
    try:
        wait_for_parts(driver, out, 10)
        (killed,) = ray_actors(driver.pid)[:1]
        os.kill(killed, signal.SIGKILL)
        wait_for_parts(driver, out, 30)
        left = descendants(driver.pid)
    finally:
        driver.kill()
        driver.wait()
    deadline = time.monotonic() + 120
    while any(Path(f"/proc/{process}").exists() for process in left):  # they end with the driver
        assert time.monotonic() < deadline
        time.sleep(0.1)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.part")}
    seen = {}
    process = Engine.process

    def spy(self, settings, jobs):
        seen.update({path: path.stat().st_mtime_ns for path in before if path.exists()})
        given = [job["part"] for job in jobs]
        assert not any(Path(part) in before for part in given)
        return process(self, settings, jobs)

    monkeypatch.setattr(Engine, "process", spy)
    engine = Engine(on="ray", jobs=2, shard_lines=2)
    process_files(work(runs["translation"]), pattern, out, engine)
    assert seen == before
    assert outputs(out) == expected


def wait_for_parts(driver: subprocess.Popen, out: Path, count: int) -> None:
    deadline = time.monotonic() + 600
    while len(list(out.rglob("*.part"))) < count:
        assert time.monotonic() < deadline
        assert driver.poll() is None
        time.sleep(0.02)


def descendants(parent: int) -> list[int]:
    """All processes below one."""
    parents = {}
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdecimal():
                status = (folder / "stat").read_text().rpartition(")")[2]
                parents[int(folder.name)] = int(status.split()[1])
    found = [parent]
    for process in found:
        found += [child for child, above in parents.items() if above == process]
    return found[1:]


def ray_actors(driver: int) -> list[int]:
    """The processes of a local Ray that hold the model."""
    found = []
    for process in descendants(driver):
        with suppress(OSError):
            if b"ShardActor" in Path(f"/proc/{process}/cmdline").read_bytes():
                found.append(process)
    return found


def test_errors_are_those_of_lines(runs, tmp_path, capsys):
    (tmp_path / "corpus").mkdir()
    path = tmp_path / "corpus/bad.txt"
    path.write_bytes(b"great film\n\xff\xfe\nbad plot\n" + b"x" * (2 << 20) + b"\nvery\n")
    out = tmp_path / "out"
    arguments = ["--input", str(path), "--output", str(out), "--jobs", "1", "--quiet"]
    assert main(["predict", str(runs["classify"]), *arguments]) == 4
    lines = (out / "bad.txt").read_text().split("\n")
    assert [bool(line) for line in lines] == [True, False, True, False, True, False]
    shown = capsys.readouterr().err
    assert f"{path}:2:1: byte 0xff is not UTF-8" in shown
    assert f"{path}:4: line of more than 1,048,576 bytes" in shown
    assert "2 lines have errors" in shown
    assert len((out / ".regard/errors.txt").read_text().splitlines()) == 2
    assert main(["predict", str(runs["classify"]), *arguments]) == 4  # said again, not done again


def test_tables_keep_their_columns(runs, tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    records = [{"id": i, "text": f"great film {i}", "tags": ["a"] * (i % 3)} for i in range(25)]
    parquet.write_table(pa.Table.from_pylist(records), folder / "table.parquet", row_group_size=4)
    lines = [json.dumps(record) for record in records]
    lines[3:5] = ["{", '{"id": 4}']
    (folder / "records.jsonl").write_text("\n".join(lines) + "\n")
    engine, roles = Engine(jobs=1, shard_lines=6), [TEXT]
    labels = work(runs["classify"])
    (folder / "plain.txt").write_text("".join(f"{record['text']}\n" for record in records))
    process_files(labels, str(folder / "plain.txt"), tmp_path / "p", engine)
    expected = (tmp_path / "p/plain.txt").read_text().splitlines()

    def process(name, output_format, out):
        return process_files(
            labels, str(folder / name), out, engine, output_format=output_format, roles=roles
        )

    process("table.parquet", None, tmp_path / "a")
    table = parquet.read_table(tmp_path / "a/table.parquet")
    assert table.drop_columns(["output", "error"]) == pa.Table.from_pylist(records)
    assert table["output"].to_pylist() == expected
    assert table["error"].null_count == 25

    summary, _ = process("records.jsonl", None, tmp_path / "b")
    found = [json.loads(line) for line in (tmp_path / "b/records.jsonl").read_text().splitlines()]
    good = [i for i in range(25) if i not in (3, 4)]
    assert [found[i] for i in good] == [records[i] | {"output": expected[i]} for i in good]
    assert "records.jsonl:4: not JSON" in found[3]["error"]
    assert found[4].keys() == {"id", "error"}
    assert "records.jsonl:5: no column 'text'" in summary["errors"][1]

    process("records.jsonl", "parquet", tmp_path / "c")
    rows = parquet.read_table(tmp_path / "c/records.parquet").to_pylist()
    assert [row["output"] for row in rows] == [
        expected[i] if i in good else None for i in range(25)
    ]
    assert [row["id"] for row in rows] == [None if i == 3 else i for i in range(25)]
    process("table.parquet", "lines", tmp_path / "d")
    assert (tmp_path / "d/table.txt").read_text().splitlines() == expected


def test_scores_and_alignments(runs, tmp_path, capfdbinary):
    folder = tmp_path / "pairs"
    folder.mkdir()
    rows = [f"the film {i}\t{i} film the" for i in range(40)]
    rows[5] = "\t"
    (folder / "pairs.tsv").write_text("\n".join(rows) + "\n")
    run, pairs = str(runs["translation"]), str(folder / "*.tsv")
    for command in ("score", "align"):
        plain = [command, run, "--data", str(folder / "pairs.tsv"), "--quiet"]
        assert main(plain) == 0
        expected = capfdbinary.readouterr().out
        many = [command, run, "--data", pairs, "--output", str(tmp_path / command), "--jobs", "2"]
        assert main([*many, "--quiet"]) == 0
        assert (tmp_path / command / "pairs.tsv").read_bytes() == expected
    (folder / "odd.tsv").write_text("a\tb\nonly one\n")
    many = ["score", run, "--data", str(folder / "odd.tsv"), "--output", str(tmp_path / "odd")]
    assert main([*many, "--jobs", "1"]) == 4
    assert b"odd.tsv:2: 1 columns: expected input, tab, target" in capfdbinary.readouterr().err


def test_mistakes_are_one_line(runs, corpus, tmp_path, capsys):
    run = str(runs["classify"])
    (tmp_path / "used").mkdir()
    (tmp_path / "used/notes.txt").write_text("mine")
    (corpus / "plain.txt.gz").write_bytes(gzip.compress(b"x\n"))
    (tmp_path / "t.jsonl").write_text('{"text": "a", "output": "b"}\n')
    one = ["--input", str(corpus / "mixed.txt"), "--jobs", "1"]
    out = ["--output", str(tmp_path / "out")]
    for arguments, message in (
        (["--input", str(tmp_path / "no*"), *out], "no file matches this pattern"),
        ([*one, "--output", str(tmp_path / "used")], "notes.txt: is not an output of this command"),
        (["--input", str(corpus / "*"), *out], "would both be written as plain.txt"),
        ([*one, "--output", str(corpus)], "contains the input"),
        ([*one, "--output", str(corpus / "empty.txt")], "is a file: expected a folder"),
        (one, "--output: expected a folder"),
        ([*one, *out, "--ray-address", "x:1"], "--ray-address: needs --on ray"),
        (
            [*out, "--format", "jsonl", "--input", str(corpus / "mixed.txt")],
            "--format: needs --jobs",
        ),
        (
            ["--input", str(tmp_path / "t.jsonl"), "--jobs", "1", *out],
            "has a column 'output' already",
        ),
        ([*one, *out, "--force", "0:0"], "--force: does not apply to many files"),
        ([*out, "--jobs", "1"], "--input: expected files"),
    ):
        assert main(["predict", run, *arguments]) == 2, arguments
        shown = capsys.readouterr().err.splitlines()
        assert len(shown) == 1, shown
        assert message in shown[0], shown
        assert not (tmp_path / "out").exists()


def test_a_table_of_sources(runs, tmp_path):
    (tmp_path / "pairs.jsonl").write_text('{"source": "the film", "target": "x"}\n')
    process_files(
        work(runs["translation"]),
        str(tmp_path / "pairs.jsonl"),
        tmp_path / "out",
        Engine(jobs=1),
        roles=[SOURCE],
    )
    record = json.loads((tmp_path / "out/pairs.jsonl").read_text())
    assert record.keys() == {"source", "target", "output"}
