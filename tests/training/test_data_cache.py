"""Prepared data that runs share: the same bytes as preparing it, verified, of limited size."""

import multiprocessing
import os
import time
from pathlib import Path

import pytest
import torch

from regard.cli import main
from regard.progress import reporting
from regard.training.run import train_run
from regard.training.stored_runs import data_cache
from regard.training.stored_runs.data_cache import DataCache
from tests.training.tiny import OPTIONS, write_data


@pytest.fixture(autouse=True)
def _small_data(monkeypatch):
    monkeypatch.setattr(data_cache, "LEAST", 0)


@pytest.fixture
def files(tmp_path) -> list[str]:
    return write_data(tmp_path, "translation", 60)


def train(files, out: Path, cache: Path | bool, **options) -> tuple[list[str], bool]:
    """The lines that training logs, and whether the data was read."""
    lines: list[str] = []
    stages: list[str] = []
    with reporting(lambda stage: stages.append(stage.label)):
        given = OPTIONS["translation"] | {"steps": 1, "average": 1, "data": files} | options
        train_run("translation", given, out, log=lines.append, data_cache=cache)
    return lines, "reading data" in stages


def contents(run: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted((run / "data").iterdir())}


def test_a_second_run_gets_the_same_bytes_without_reading(files, tmp_path):
    cache = tmp_path / "cache"
    plain, read = train(files, tmp_path / "plain", False)
    assert read
    assert not cache.exists()
    first, read = train(files, tmp_path / "first", cache)
    assert read
    second, read = train(files, tmp_path / "second", cache)
    assert not read
    assert contents(tmp_path / "first") == contents(tmp_path / "plain")
    assert contents(tmp_path / "second") == contents(tmp_path / "plain")
    report = [line for line in second if not line.startswith("prepared data reused")]
    assert report == first
    assert len(plain) == len(first)


def test_other_content_options_and_seeds_are_other_data(files, tmp_path):
    cache = tmp_path / "cache"
    train(files, tmp_path / "first", cache)
    assert train(files, tmp_path / "seed", cache, seed=7)[1]  # other examples are held out
    assert train(files, tmp_path / "size", cache, vocabulary=280)[1]
    assert not train(files, tmp_path / "width", cache, width=12)[1]
    before = os.stat(files[0])
    text = Path(files[0]).read_text()
    Path(files[0]).write_text(text.replace("great", "tiny!"))  # as long, and as old
    os.utime(files[0], ns=(before.st_atime_ns, before.st_mtime_ns))
    assert train(files, tmp_path / "content", cache)[1]


def test_seeds_share_data_whose_validation_part_is_given(files, tmp_path):
    cache = tmp_path / "cache"
    train(files, tmp_path / "first", cache, valid=files)
    assert not train(files, tmp_path / "second", cache, valid=files, seed=7)[1]


def test_damaged_entries_are_prepared_again(files, tmp_path):
    cache = tmp_path / "cache"
    train(files, tmp_path / "first", cache)
    expected = contents(tmp_path / "first")
    (path,) = cache.rglob("train.arrow")
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.unlink()
    path.write_bytes(damaged)
    assert train(files, tmp_path / "second", cache)[1]
    assert contents(tmp_path / "second") == expected
    assert not train(files, tmp_path / "third", cache)[1]
    (path,) = cache.rglob("entry.json")
    path.write_text("{")
    assert train(files, tmp_path / "fourth", cache)[1]
    assert contents(tmp_path / "fourth") == expected


def test_the_least_recently_used_goes_first(files, tmp_path):
    cache = DataCache(tmp_path / "cache")
    for seed in (1, 2):
        train(files, tmp_path / f"run-{seed}", cache.folder, seed=seed)
        time.sleep(0.02)
    size = max(entry.size for entry in cache.entries())
    train(files, tmp_path / "again", cache.folder, seed=1)  # which is now the last one used
    cache.set_limit(size + size // 2)
    assert len(cache.entries()) == 1
    assert not train(files, tmp_path / "kept", cache.folder, seed=1)[1]
    assert train(files, tmp_path / "removed", cache.folder, seed=2)[1]
    cache.set_limit(0)
    assert not cache.entries()
    assert train(files, tmp_path / "none", cache.folder)[1]  # nothing is kept
    assert not cache.entries()


def _train_at_once(files, out, cache, gate) -> None:
    data_cache.LEAST = 0
    gate.wait()
    train(files, out, cache)


def test_two_processes_at_once(files, tmp_path):
    train(files, tmp_path / "plain", False)
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(2)
    outs = [tmp_path / "one", tmp_path / "two"]
    processes = [
        context.Process(target=_train_at_once, args=(files, out, tmp_path / "cache", gate))
        for out in outs
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    for out in outs:
        assert contents(out) == contents(tmp_path / "plain")
    assert len(DataCache(tmp_path / "cache").entries()) == 1
    assert not list((tmp_path / "cache").rglob("*.part"))


def test_a_cache_that_cannot_be_used_costs_nothing(files, tmp_path):
    (tmp_path / "file").write_text("")
    lines, read = train(files, tmp_path / "run", tmp_path / "file" / "cache")
    assert read
    assert any("cannot be used" in line or "not cached" in line for line in lines)


def test_small_data_and_vectors_are_not_kept(files, tmp_path, monkeypatch):
    monkeypatch.setattr(data_cache, "LEAST", 2**20)
    train(files, tmp_path / "run", tmp_path / "cache")
    assert not DataCache(tmp_path / "cache").entries()


def test_the_command(files, tmp_path, capsys, monkeypatch):
    cache = str(tmp_path / "cache")
    train(files, tmp_path / "run", Path(cache))
    capsys.readouterr()
    assert main(["data", "cache", "--folder", cache]) == 0
    shown = capsys.readouterr().out
    assert "translation " in shown
    assert f"of 10.00 GiB in {cache}" in shown
    assert main(["data", "cache", "--folder", cache, "--limit", "-1"]) == 2
    assert "--limit -1: expected 0 or more" in capsys.readouterr().err
    assert main(["data", "cache", "--folder", cache, "--limit", "2.5"]) == 0
    assert "of 2.50 GiB" in capsys.readouterr().out
    assert main(["data", "cache", "--folder", cache, "--clear"]) == 0
    assert "removed 0.00 GiB" in capsys.readouterr().out
    assert not DataCache(Path(cache)).entries()


def test_runs_share_the_data_of_a_pretrained_model_until_it_changes(tmp_path):
    from tests.pretrained.checkpoints import write_checkpoint

    model, _ = write_checkpoint(tmp_path / "hf", "bert", "Model")
    files, cache = write_data(tmp_path, "classify"), tmp_path / "cache"
    tuned = {"data": files, "pretrained": str(tmp_path / "hf"), "steps": 1}
    inputs = []
    for name in ("first", "second"):
        lines = []
        folder, _ = train_run(
            "classify", tuned, tmp_path / name, log=lines.append, data_cache=cache
        )
        assert (name == "second") == any(line.startswith("prepared data reused") for line in lines)
        inputs.append(folder.data / "initial.safetensors")
    assert os.path.samefile(*inputs)
    with torch.no_grad():
        model.embeddings.LayerNorm.bias.add_(1)
    model.save_pretrained(tmp_path / "hf")
    folder, _ = train_run("classify", tuned, tmp_path / "changed", data_cache=cache)
    changed = folder.data / "initial.safetensors"
    assert changed.read_bytes() != inputs[0].read_bytes()
