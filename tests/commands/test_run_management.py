"""`regard runs`, `info`, `pack`, `prune` and `doctor`."""

import json
import shutil
import zipfile

import pytest

import regard
from regard.cli import main
from regard.training.run import train_run
from tests.training.tiny import OPTIONS, write_data

TASKS = ("translation", "language", "classify", "tag")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a tiny run of each task."""
    place = tmp_path_factory.mktemp("runs")
    for task in TASKS:
        options = OPTIONS[task] | {"steps": 2, "average": 1}
        (place / "data" / task).mkdir(parents=True)
        options["data"] = write_data(place / "data" / task, task)
        train_run(task, options, place / "runs" / task)
    return place


@pytest.fixture
def runs(trained, tmp_path, monkeypatch):
    """A copy of the runs, in the current folder."""
    shutil.copytree(trained / "runs", tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def test_runs_are_listed(runs, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    (runs / "notes").mkdir()
    (runs / "tag" / "state" / "latest.safetensors").unlink()
    (runs / "tag" / "model.safetensors").unlink()
    assert main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(TASKS)
    rows = {line.split()[0]: line for line in lines[1:]}
    assert "BLEU" in rows["runs/translation"]
    assert rows["runs/translation"].endswith("finished")
    assert rows["runs/tag"].endswith("no weights")
    assert main(["runs", "runs/classify", "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert record["main"] in record["metrics"]
    files = [path for path in (runs / "classify").rglob("*") if path.is_file()]
    assert sum(record["bytes"].values()) == sum(path.stat().st_size for path in files)
    weights = regard.load("runs/classify").model.state_dict().values()
    assert record["parameters"] == sum(tensor.numel() for tensor in weights)
    assert main(["runs", "nowhere"]) == 2


def test_a_run_without_a_validation_is_interrupted_and_can_resume(runs, capsys):
    state = runs / "tag" / "state" / "latest.safetensors"
    raw = state.read_bytes()
    state.write_bytes(raw.replace(b'\\"finished\\": true', b'\\"finished\\":false', 1))
    (runs / "tag" / "model.safetensors").unlink()
    assert main(["runs", "runs/tag"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("interrupted")
    for words in (["predict", "runs/tag", "x"], ["pack", "runs/tag", "--to", "packed"]):
        assert main(words) == 2
        assert "`regard train --resume runs/tag` resumes" in capsys.readouterr().err


def test_info_describes_a_run_and_compares_two(runs, capsys):
    assert main(["info", "runs/classify"]) == 0
    card = capsys.readouterr().out
    for words in ("task        classify", "labels", "updates", "accuracy", "training state"):
        assert words in card
    config = json.loads((runs / "tag" / "config.json").read_text())
    shutil.copytree(runs / "tag", runs / "other")
    config["training"]["learning_rate"] = 0.5
    (runs / "other" / "config.json").write_text(json.dumps(config))
    assert main(["info", "runs/tag", "runs/other", "--json"]) == 0
    changed = json.loads(capsys.readouterr().out)
    assert list(changed) == ["learning_rate"]
    assert changed["learning_rate"][1] == "0.5"
    assert main(["info", "runs/tag", "runs/tag"]) == 0
    assert "do not differ" in capsys.readouterr().out
    assert main(["info", "runs/tag", "runs/classify"]) == 0
    rows = {line[:10].strip(): line[10:].split() for line in capsys.readouterr().out.splitlines()}
    assert rows["macro F1"][-1] == rows["macro F1"][0]  # of the classifier alone, without a name


@pytest.mark.parametrize("task", TASKS)
def test_a_packed_run_works_and_has_no_training_text(task, runs, trained, capsys):
    text = "the film was great"
    expected = regard.load(f"runs/{task}").predict([text])
    assert main(["pack", f"runs/{task}", "--to", "packed"]) == 0
    packed = regard.load("packed")
    assert packed.predict([text]) == expected
    files = {path.relative_to("packed").as_posix() for path in packed.folder.path.rglob("*")}
    assert {"config.json", "model.safetensors", "README.md"} <= files
    assert not {"state", "checkpoints", "data/train.arrow", "data/valid.arrow"} & files
    for source in (trained / "data" / task).iterdir():
        for line in source.read_text().splitlines():
            sentence = line.split("\t")[0].encode()
            if len(sentence.split()) > 2:
                assert not any(
                    sentence in path.read_bytes()
                    for path in packed.folder.path.rglob("*")
                    if path.is_file()
                )
        assert str(trained).encode() not in (packed.folder.path / "config.json").read_bytes()
    capsys.readouterr()
    assert main(["info", "packed"]) == 0
    assert "status      packed" in capsys.readouterr().out
    options = OPTIONS[task] | {"steps": 9, "average": 1}
    with pytest.raises(regard.RegardError, match="was packed, pruned or imported"):
        train_run(task, options, "packed")


def test_pack_writes_next_to_the_run_by_default(runs, monkeypatch, capsys):
    assert main(["pack", "runs/tag"]) == 0
    tags = regard.load("runs/tag").predict(["a b"])
    assert regard.load("runs/tag-packed").predict(["a b"]) == tags
    assert main(["pack", "runs/tag"]) == 2
    assert "runs/tag-packed: already contains other files" in capsys.readouterr().err
    assert main(["pack", "example:sentiment"]) == 0
    assert "sentiment-packed: " in capsys.readouterr().out
    monkeypatch.chdir("runs/classify")
    assert main(["pack", "."]) == 0
    assert "runs/classify-packed: " in capsys.readouterr().out


def test_pack_refuses_used_folders_and_makes_the_same_archive_twice(runs, capsys):
    assert main(["pack", "runs/tag", "--to", "runs/language"]) == 2
    assert "already contains other files" in capsys.readouterr().err
    assert main(["pack", "runs/tag", "--to", "tag.tar"]) == 2
    for name in ("one", "two"):
        (runs / name).mkdir()
        assert main(["pack", "runs/tag", "--to", f"runs/{name}/tag.zip"]) == 0
    one, two = (runs / name / "tag.zip" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as archive:
        archive.extractall("unpacked")
    assert regard.load("unpacked/tag").predict(["a b"]) == regard.load("runs/tag").predict(["a b"])


def test_weights_in_half_precision_are_declared_and_read_as_float32(runs, capsys):
    import torch
    from safetensors import safe_open

    from regard.training.tensor_files import half_precision, read_header, write_tensors

    assert main(["pack", "runs/classify", "--to", "half", "--half"]) == 0
    original, half = (regard.load(path).model.state_dict() for path in ("runs/classify", "half"))
    for name, tensor in original.items():
        assert half[name].dtype == tensor.dtype == torch.float32
        assert torch.equal(half[name], tensor.half().float())
    with safe_open("half/model.safetensors", "pt") as file:
        assert {file.get_tensor(name).dtype for name in file.keys()} == {torch.float16}  # noqa: SIM118
    header = read_header(runs.parent / "half" / "model.safetensors")
    assert {dtype for dtype, _ in header.tensors.values()} == {"F32"}
    size = [
        (runs.parent / run / "model.safetensors").stat().st_size
        for run in ("runs/classify", "half")
    ]
    assert size[1] < 0.7 * size[0]
    # what is stored is covered by the digest, and half precision that is not declared is refused
    path = runs.parent / "half" / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(regard.RegardError, match="digest does not match"):
        regard.load("half")
    path.write_bytes(content.replace(b'\\"stored\\"', b'\\"stared\\"'))
    with pytest.raises(regard.RegardError, match="are float16, expected float32"):
        regard.load("half")
    write_tensors(path, {"large": torch.tensor([1e5])})
    with pytest.raises(regard.RegardError, match="too large for half precision"):
        half_precision(path)


def test_prune_frees_what_it_says(runs, capsys):
    def size():
        return sum(path.stat().st_size for path in (runs / "translation").rglob("*"))

    before, expected = size(), regard.load("runs/translation")(["ein haus"])
    assert main(["prune", "runs/translation", "--dry-run"]) == 0
    assert "can be freed" in capsys.readouterr().out
    assert size() == before
    assert main(["prune", "runs/translation"]) == 0
    assert "freed (training state" in capsys.readouterr().out
    assert size() < before / 2
    assert regard.load("runs/translation")(["ein haus"]) == expected
    assert main(["prune", "runs/translation"]) == 0
    assert "nothing to remove" in capsys.readouterr().out
    (runs / "tag" / "model.safetensors").unlink()
    assert main(["prune", "runs/tag"]) == 2
    assert "is not finished" in capsys.readouterr().err


def test_the_doctor_says_what_to_do(capsys, monkeypatch):
    from regard.attention import additive_native

    monkeypatch.setattr(additive_native, "why_not", lambda: "the kernel was not built")
    assert main(["doctor"]) == 1
    report = capsys.readouterr().out
    assert "kernel        not in use: the kernel was not built" in report
    assert "→ attention and decoding work, but slower: install a C compiler" in report
    assert all(f"\n{name} " in report for name in ("torch", "threads", "device", "memory", "disk"))


def test_a_limit_on_threads_is_only_a_remark(capsys, monkeypatch):
    from regard.commands.installation import doctor

    limited = doctor.Finding("threads", "1 of 2 processors", "unset OMP_NUM_THREADS", remark=True)
    monkeypatch.setattr(doctor, "examine", lambda: iter([limited]))
    assert main(["doctor"]) == 0
    report = capsys.readouterr().out
    assert "→ unset OMP_NUM_THREADS" in report
    assert "everything is in order" in report


def test_serve_takes_folders_of_runs_and_none_at_all(runs, tmp_path):
    from pathlib import Path

    from regard.commands.serve import _run_folders
    from regard.serve import Server
    from tests.serve.requests import Client

    found = _run_folders([Path("runs"), Path("runs/tag"), Path("nowhere")])
    assert found == [*(Path("runs") / task for task in sorted(TASKS)), Path("nowhere")]
    with Server([]) as server:
        ask = Client(server.url)
        assert ask("GET", "/").status == 200
        assert ask("GET", "/v1/models").json["data"] == []
        assert ask("GET", "/openapi.json").status == 200
        assert ask("GET", "/healthz").status == 200
        reply = ask("GET", "/v1/models/none")
        assert (reply.status, "known: none" in reply.raw.decode()) == (404, True)
