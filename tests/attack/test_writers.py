"""A model of the file system: every writer, with everything that may be where it writes.

A *file writer* writes a file that the user named; a *managed writer* one in a folder of Regard's
own, which may come from somebody else; a *folder writer* a folder that the user named.
"""

import errno
import json
import os
import re
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
import torch

import regard
from regard import atomic_files
from regard.atomic_files import open_to_append, write_output, write_text
from regard.cli import main
from regard.compare.comparison_folder import ComparisonFolder
from regard.compare.comparison_result import Plot
from regard.data.corpus import write_rows
from regard.data.labels import Labels
from regard.data.tokenizers.vectors import WordVectors
from regard.errors import RegardError
from regard.inference.evaluations import save_evaluation
from regard.inference.learning_curves import draw_curves
from regard.tasks.task import Evaluation
from regard.trace import from_arrays
from regard.training import RunFolder
from regard.training.state import write_tensors
from tests.attack.one_worker import one_worker_here
from tests.training.tiny import OPTIONS

OLD = b"years of work"
NOBODY = 65534


def run_command(*words: object) -> None:
    """A command in this process; its error is raised, so that all writers fail alike."""
    code = main([str(word) for word in words])
    if code:
        raise RegardError(f"exit code {code}")


def open_to_others(folder: Path) -> None:
    """Let another user reach a folder, through those that pytest made for this user alone."""
    shared = Path(tempfile.gettempdir()).resolve()
    for path in (folder, *folder.parents):
        if path == shared or not path.is_relative_to(shared):
            break
        path.chmod(0o755)


@dataclass(frozen=True)
class Source:
    """What the writers read, made once."""

    run: Path
    lines: Path
    trace: Path
    aligner: Path
    """A run that aligns, and pairs to align beside it."""
    classifier: Path
    """A run that classifies, and labelled texts beside it."""


@pytest.fixture(scope="module")
def source(translator: Path, tmp_path_factory: pytest.TempPathFactory) -> Source:
    folder = tmp_path_factory.mktemp("read")
    (folder / "lines").write_text("the film was bad\n")
    from_arrays(np.eye(2), ["a", "b"], ["a", "b"]).show(folder / "trace.json")
    pairs = ["the house", "a cat"] * 8, ["la maison", "un chat"] * 8
    for name, lines in zip(("p.en", "p.fr"), pairs, strict=True):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    data = [str(folder / name) for name in ("p.en", "p.fr")]
    aligner = regard.train("align", data, out=folder / "aligner", epochs=2).folder.path
    texts = "".join(f"film {n}\t{'pos' if n % 2 else 'neg'}\n" for n in range(20))
    (folder / "texts.tsv").write_text(texts)
    small = OPTIONS["classify"] | {"steps": 2, "average": 1}
    classifier = regard.train(
        "classify", str(folder / "texts.tsv"), out=folder / "classifier", **small
    ).folder.path
    for readable in (folder, translator.parent):
        open_to_others(readable)
    (classifier / "evaluations").mkdir(exist_ok=True)
    (classifier / "evaluations").chmod(0o777)
    trace = folder / "trace.json"
    return Source(translator, folder / "lines", trace, aligner, classifier)


def align(path: Path, source: Source) -> None:
    data = [source.run.parent / name for name in ("train.aa", "train.bb")]
    run_command("align", source.run, "--data", *data, "--output", path)


def align_softly(path: Path, source: Source) -> None:
    data = [source.aligner.parent / name for name in ("p.en", "p.fr")]
    run_command("align", source.aligner, "--data", *data, "--soft", "--output", path)


def confusion(path: Path, source: Source) -> None:
    data = source.classifier.parent / "texts.tsv"
    run_command("evaluate", source.classifier, "--data", data, "--picture", path)


FILE_WRITERS: dict[str, Callable[[Path, Source], object]] = {
    "predict": lambda path, source: run_command(
        "predict", source.run, "--input", source.lines, "--output", path
    ),
    "align": align,
    "align --soft": align_softly,
    "align --lexicon": lambda path, source: run_command(
        "align", source.aligner, "--lexicon", "--output", path
    ),
    "evaluate --picture": confusion,
    "Plot.save": lambda path, source: Plot("<svg/>").save(path),
    "show svg": lambda path, source: run_command("show", source.trace, "--to", path),
    "steps": lambda path, source: run_command("steps", "--picture", path),
    "Look.show": lambda path, source: from_arrays(np.eye(2), ["a", "b"], ["a", "b"]).show(path),
    "write_output": lambda path, source: write_output(path, lambda stream: stream.write(b"new")),
}


def curves(path: Path) -> None:
    line = {"step": 1, "main": "accuracy", "metrics": {"accuracy": {"value": 1.0}}, "loss": 1.0}
    metrics = path.parent / "metrics.jsonl"
    if not metrics.exists():
        metrics.write_text(json.dumps(line) + "\n")
    draw_curves(path.parent)


def evaluation(path: Path) -> None:
    folder = RunFolder(path.parent.parent)
    save_evaluation(folder, path.stem, Evaluation({}, "accuracy", True, (), {}, ()))


MANAGED_WRITERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "write_text": ("config.json", lambda path: write_text(path, "new")),
    "tensors": ("model.safetensors", lambda path: write_tensors(path, {"a": torch.ones(2)}, {})),
    "labels": ("labels.json", lambda path: Labels.of(["a", "b"]).save(path)),
    "corpus": ("train.arrow", lambda path: write_rows(path, [{"ids": [1, 2]}])),
    "vectors": (
        "vectors.safetensors",
        lambda path: WordVectors(np.ones((1, 2), np.float32), np.ones(1, bool)).save(path),
    ),
    "curves": ("curves.svg", curves),
    "evaluation": ("evaluations/test.json", evaluation),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that another user may use too."""
    open_to_others(tmp_path)
    inner = tmp_path / "folder"
    inner.mkdir()
    inner.chmod(0o777)
    return inner


def device(path: Path, minor: int) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        with path.open("wb"):
            pass
    except OSError as error:
        path.unlink(missing_ok=True)
        pytest.skip(f"devices cannot be made here ({error.strerror})")


def written(path: Path) -> bytes:
    """The content of a file that was just made."""
    assert stat.S_ISREG(path.lstat().st_mode)
    return path.read_bytes()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, who may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture(params=FILE_WRITERS)
def writer(request: pytest.FixtureRequest, source: Source) -> Callable[[Path], object]:
    write = FILE_WRITERS[request.param]
    return lambda path: write(path, source)


def test_a_missing_and_a_regular_file_get_the_whole_content(writer, folder):
    path, other = folder / "a.svg", folder / "b.svg"
    writer(path)
    other.write_bytes(OLD)
    other.chmod(0o600)
    writer(other)
    assert written(other) == written(path) != OLD
    assert stat.S_IMODE(other.stat().st_mode) == 0o600
    assert names(folder) == {"a.svg", "b.svg"}


@pytest.mark.parametrize("exists", [True, False])
def test_links_are_followed(writer, exists, folder):
    target, link, chain = folder / "target.svg", folder / "link.svg", folder / "chain.svg"
    if exists:
        target.write_bytes(OLD)
    link.symlink_to("target.svg")
    chain.symlink_to(link)
    writer(chain)
    assert os.readlink(link) == "target.svg"
    assert chain.is_symlink()
    assert written(target) != OLD
    assert names(folder) == {"target.svg", "link.svg", "chain.svg"}


def test_the_reader_of_a_pipe_gets_everything(writer, folder):
    path, received = folder / "pipe.svg", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()), daemon=True)
    reader.start()
    writer(path)
    reader.join(20)
    assert stat.S_ISFIFO(path.lstat().st_mode)
    writer(folder / "file.svg")
    assert received == [written(folder / "file.svg")]


def test_devices_stay_devices(writer, folder, capsys):
    null, full = folder / "null.svg", folder / "full.svg"
    device(null, 3)
    device(full, 7)
    writer(null)
    with pytest.raises(RegardError) as raised:
        writer(full)
    assert "No space left on device" in str(raised.value) + capsys.readouterr().err
    for path, minor in ((null, 3), (full, 7)):
        assert stat.S_ISCHR(path.lstat().st_mode)
        assert path.lstat().st_rdev == os.makedev(1, minor)
    assert names(folder) == {"null.svg", "full.svg"}


def _folder(path: Path) -> None:
    path.mkdir()


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _link_to_nowhere(path: Path) -> None:
    path.symlink_to("nowhere/file")


@pytest.mark.parametrize("arrange", [_folder, _loop, _link_to_nowhere])
def test_what_cannot_be_written_is_one_error(writer, arrange, folder, capsys):
    path = folder / "a.svg"
    arrange(path)
    before = path.lstat()
    with pytest.raises(RegardError) as raised:
        writer(path)
    assert f"{path}: cannot be written (" in str(raised.value) + capsys.readouterr().err
    assert os.path.samestat(path.lstat(), before)
    assert names(folder) == {"a.svg"}


def test_a_read_only_file_and_a_full_disk_keep_their_content(writer, folder, monkeypatch, capsys):
    path = folder / "a.svg"
    path.write_bytes(OLD)
    path.chmod(0o444)
    with as_nobody(), pytest.raises(RegardError) as raised:
        writer(path)
    message = f"{path}: cannot be written (Permission denied)"
    assert message in str(raised.value) + capsys.readouterr().err
    path.chmod(0o644)
    assert written(path) == OLD

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RegardError):
        writer(path)
    assert written(path) == OLD
    assert names(folder) == {"a.svg"}


def test_an_open_file_is_appended_to_and_not_replaced(folder):
    log = folder / "log"
    log.write_bytes(OLD)
    with log.open("ab") as stream:
        for name in (f"/dev/fd/{stream.fileno()}", f"/proc/self/fd/{stream.fileno()}"):
            write_output(Path(name), lambda opened: opened.write(b"!"))
    assert log.read_bytes() == OLD + b"!!"


def test_no_link_is_followed_to_a_temporary_file(folder):
    """Somebody who guesses its name cannot have another file written."""
    (folder / "precious").write_bytes(OLD)
    (folder / f"a.{os.getpid()}.part").symlink_to("precious")
    write_output(folder / "a", lambda stream: stream.write(b"new"))
    assert (folder / "precious").read_bytes() == OLD
    assert names(folder) == {"a", "precious"}


@pytest.fixture(params=MANAGED_WRITERS)
def managed(request: pytest.FixtureRequest, folder: Path) -> tuple[Path, Callable[[], Any]]:
    """The path of a file in a folder of Regard's own, and its writer."""
    name, write = MANAGED_WRITERS[request.param]
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    return path, lambda: write(path)


def test_managed_files_replace_links_and_never_follow_them(managed, tmp_path):
    path, write = managed
    write()
    new = written(path)
    for target in (tmp_path / "precious", tmp_path / "missing"):
        (tmp_path / "precious").write_bytes(OLD)
        path.unlink()
        path.symlink_to(target)
        write()
        assert written(path) == new
        assert (tmp_path / "precious").read_bytes() == OLD
        assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("kind", ["pipe", "null", "full", "folder"])
def test_managed_files_are_regular_or_an_error(managed, kind):
    path, write = managed
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        device(path, {"null": 3, "full": 7}[kind])
    before = path.lstat()
    with pytest.raises(RegardError, match=r"cannot be written .it is a .*, not a regular file"):
        write()
    assert os.path.samestat(path.lstat(), before)
    assert not list(path.parent.glob("*.part"))


def test_managed_files_keep_their_content_if_they_cannot_be_written(managed, monkeypatch):
    """Read-only files, read-only folders and a full disk."""
    path, write = managed
    write()
    path.write_bytes(OLD)
    before = names(path.parent)
    for read_only, mode, usual in ((path, 0o444, 0o644), (path.parent, 0o555, 0o777)):
        read_only.chmod(mode)
        with (
            as_nobody(),
            pytest.raises(RegardError, match=r"cannot be written \(Permission denied"),
        ):
            write()
        read_only.chmod(usual)
        path.parent.chmod(0o777)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RegardError, match=r"cannot be written \(No space left on device"):
        write()
    assert written(path) == OLD
    assert names(path.parent) == before


def test_an_evaluation_is_not_written_through_a_folder_that_becomes_a_link(folder, monkeypatch):
    """Somebody else replaces the folder after it was checked."""
    outside, run = folder / "outside", folder / "run"
    outside.mkdir()
    (outside / "test.json").write_bytes(OLD)
    run.mkdir()

    def replaced_after_the_check(self: RunFolder, *paths: Path) -> None:
        self.evaluations.symlink_to(outside)

    monkeypatch.setattr(RunFolder, "refuse_links", replaced_after_the_check)
    with pytest.raises(RegardError, match="cannot be written"):
        evaluation(run / "evaluations" / "test.json")
    assert written(outside / "test.json") == OLD
    assert names(outside) == {"test.json"}


def test_output_stays_in_the_temporary_file_that_was_made(folder):
    """Somebody who replaces the temporary file by a link has no other file written."""
    (folder / "precious").write_bytes(OLD)

    def write(stream: BinaryIO) -> None:
        (part,) = folder.glob("*.part")
        part.unlink()
        part.symlink_to("precious")
        stream.write(b"new")

    with pytest.raises(RegardError, match="cannot be written"):
        write_output(folder / "a", write)
    assert (folder / "precious").read_bytes() == OLD
    assert names(folder) == {"precious"}


@pytest.mark.parametrize("arrange", ["link", "dangling link", "gone"])
def test_managed_files_are_written_into_the_file_that_was_made(arrange, managed, monkeypatch):
    """Somebody who may rename files in the folder exchanges the temporary file at once."""
    path, write = managed
    precious, opened = path.parent.parent / "precious", os.fdopen
    precious.write_bytes(OLD)

    def exchange(descriptor: int, mode: str) -> BinaryIO:
        for part in path.parent.glob("*.part"):
            part.unlink()
            if arrange != "gone":
                part.symlink_to(precious if arrange == "link" else precious.with_name("missing"))
        return opened(descriptor, mode)

    monkeypatch.setattr(atomic_files.os, "fdopen", exchange)
    with pytest.raises(RegardError, match="somebody replaced its temporary file"):
        write()
    assert precious.read_bytes() == OLD
    assert not precious.with_name("missing").exists()
    assert not path.exists()


def comparison_lock(path: Path) -> None:
    with ComparisonFolder(path.parent).hold():
        pass


APPENDERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "metrics": ("metrics.jsonl", lambda path: open_to_append(path).close()),
    "lock of a comparison": (".lock", comparison_lock),
}


@pytest.mark.parametrize("name", APPENDERS)
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "device", "folder"])
def test_files_that_grow_are_regular_or_an_error(name, kind, folder):
    file, append = APPENDERS[name]
    (folder / "comparison.json").write_text("{}")
    path, precious = folder / file, folder.parent / "precious"
    precious.write_bytes(OLD)
    if kind == "device":
        device(path, 3)
    else:
        {
            "link": lambda: path.symlink_to(precious),
            "dangling link": lambda: path.symlink_to(folder.parent / "missing"),
            "pipe": lambda: os.mkfifo(path),
            "folder": path.mkdir,
        }[kind]()
    with pytest.raises(RegardError, match="cannot be written"):
        append(path)
    assert precious.read_bytes() == OLD
    assert not (folder.parent / "missing").exists()


WRITES = re.compile(
    r"""\.write_(?:text|bytes)\(|\.(?:save_file|touch)\(|\bnp\.save[a-z]*\(\s*(?!stream)"""
    r"""|\bopen\([^()]*(?:\([^()]*\)[^()]*)*["'][rbt+]*[wax][rbt+]*["']"""
)
"""Ways to write a file by its path."""
OTHER_WRITERS = {
    "atomic_files.py": "where files are written",
    "check/checked_file.py": "a temporary folder of its own",
    "commands/terminal/standard_streams.py": "descriptors of closed standard streams",
    "corpora/corpus_folder.py": "inside write_folder",
    "data/kneser_ney.py": "into the data folder of a run that is being prepared",
    "data/ngram_counts.py": "into the data folder of a run that is being prepared",
    "data/split.py": "inside write_folder",
    "experiments/two_processes.py": "a temporary folder of its own",
    "inference/export/ctranslate2.py": "inside write_folder",
    "inference/export/transformers_folder.py": "inside write_folder",
    "pretrained/checkpoint.py": "into the data folder of a run that is being prepared",
    "sklearn.py": "a temporary folder of its own",
    "training/stored_runs/run_packing.py": "inside write_folder",
}


def test_every_writer_of_the_package_is_one_of_these():
    """No module opens a file to write it on its own: the model above covers all commands."""
    package = Path(regard.__file__).parent
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if WRITES.search(path.read_text("utf-8"))
    }
    assert found == OTHER_WRITERS.keys()


def tiny_experiment(path: Path, source: Source) -> None:
    from regard.experiments.experiment_results import run_experiment

    run_experiment("permutation", path, "tiny")


def comparison(path: Path, source: Source) -> None:
    folder = ComparisonFolder(path)
    with folder.hold():
        folder.begin({"task": "tag"})


def pretrained_model(source: Source) -> Path:
    from tests.pretrained.checkpoints import write_checkpoint

    model = source.lines.parent / "bert"
    if not model.exists():
        write_checkpoint(model, "bert")
    return model


def import_model(path: Path, source: Source) -> None:
    run_command("import", pretrained_model(source), "--out", path)


def export_to_huggingface(path: Path, source: Source) -> None:
    run = source.lines.parent / "imported"
    if not run.exists():
        import_model(run, source)
    run_command("export", run, "--to", "huggingface", "--out", path)


def predict_many(path: Path, source: Source) -> None:
    with one_worker_here():
        run_command("predict", source.run, "--input", source.lines, "--jobs", 1, "--output", path)


FOLDER_WRITERS: dict[str, Callable[[Path, Source], object]] = {
    "experiment": tiny_experiment,
    "compare": comparison,
    "import": import_model,
    "export --to huggingface": export_to_huggingface,
    "predict --jobs": predict_many,
    "train align": lambda path, source: run_command(
        "train", "align", "--epochs", "1", "--out", path,
        "--data", *(source.aligner.parent / name for name in ("p.en", "p.fr")),
    ),
    "data make": lambda path, source: run_command(
        "data", "make", "classify", "--size", "100", "--out", path
    ),
    "data split": lambda path, source: run_command(
        "data", "split", *sorted(source.run.parent.glob("train.*")), "--task", "translation",
        "--valid", "0.2", "--test", "0.2", "--out", path,
    ),
    "export": lambda path, source: run_command("export", source.run, "--out", path),
    "pack": lambda path, source: run_command("pack", source.run, "--to", path),
    "train": lambda path, source: run_command(
        "train", "algorithm", "--steps", "1", "--width", "8", "--out", path
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDER_WRITERS)
def test_folders_are_new_or_empty_or_nothing_changes(name, source, folder, capsys):
    write = FOLDER_WRITERS[name]
    target, link = folder / "target", folder / "link"
    link.symlink_to("target")
    write(link, source)  # a link to nothing: the folder is made where it leads
    assert link.is_symlink()
    assert names(target)
    mine, pipe, used = folder / "mine", folder / "pipe", folder / "used"
    mine.write_bytes(OLD)
    os.mkfifo(pipe)
    used.mkdir()
    for file in ("config.json", "lock", "corpus.json"):
        (used / file).write_bytes(OLD)
    link.unlink()
    before = names(folder)
    for path in (mine, pipe, used, mine / "below"):
        capsys.readouterr()
        with pytest.raises(RegardError) as raised:
            write(path, source)
        printed = capsys.readouterr().err.splitlines() or [f"regard: {raised.value}"]
        assert printed[-1].startswith(f"regard: {path}")
    assert mine.read_bytes() == OLD
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert {path.read_bytes() for path in used.iterdir()} == {OLD}
    assert len(names(used)) == 3
    assert names(folder) == before
