"""Folders that cannot be imported end in one line, and nothing is written."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.cli import main
from regard.data.tokenizers.tokenizer_parts import is_charsmap
from tests.pretrained.checkpoints import write_checkpoint


def _edit(path: Path, change: Callable[[dict], None]) -> None:
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def _architecture(folder: Path) -> None:
    _edit(folder / "config.json", lambda c: c.update(model_type="mamba", auto_map={"a": "b.C"}))


def _sizes(folder: Path) -> None:
    _edit(folder / "config.json", lambda c: c.update(intermediate_size=99))


def _huge(folder: Path) -> None:
    _edit(folder / "config.json", lambda c: c.update(num_hidden_layers=10**9))


def _shards(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"x": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def _outside(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"x": "../other.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def _header(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes((2**60).to_bytes(8, "little") + content[8:])


def _not_finite(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["classifier.bias"][0] = float("nan")
    save_file(tensors, folder / "model.safetensors")


def _no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def _vocabulary(folder: Path) -> None:
    _edit(
        folder / "tokenizer.json",
        lambda t: t["model"]["vocab"].update({"zebra": len(t["model"]["vocab"]) + 50}),
    )


def _pattern(folder: Path) -> None:
    step = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"}
    _edit(folder / "tokenizer.json", lambda t: t.update(pre_tokenizer=step))


def _replacement(folder: Path) -> None:
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10**4}
    _edit(folder / "tokenizer.json", lambda t: t.update(normalizer=step))


def _labels(folder: Path) -> None:
    _edit(folder / "config.json", lambda c: c.update(id2label={"0": "one"}))


def _no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def _pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"x": Path("/")}, folder / "pytorch_model.bin")


CASES = {
    "'mamba' is not supported, and the code that its auto_map names is never": _architecture,
    "weights that do not fit config.json: bert.encoder.layer.0.intermediate": _sizes,
    "num_hidden_layers: expected a whole number from 1 to 65,536": _huge,
    "model-00001-of-00002.safetensors: is missing (1 of 1 files": _shards,
    "'../other.safetensors' is not a file of the folder": _outside,
    "cannot be read as safetensors (its header is not complete)": _header,
    "the weights classifier.bias are not finite": _not_finite,
    "no weights: expected model.safetensors": _no_weights,
    "it is the tokenizer of another model": _vocabulary,
    "Split: pattern": _pattern,
    "Replace: content": _replacement,
    "id2label names 1 labels, the weights have 3": _labels,
    "no tokenizer: expected tokenizer.json, vocab.txt": _no_tokenizer,
    "holds more than tensors, or is damaged, and is not loaded": _pickle,
}


@pytest.mark.parametrize("message", CASES)
@pytest.mark.filterwarnings("ignore:.*a pickled file")
def test_a_bad_folder_ends_in_one_line(
    message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_checkpoint(tmp_path / "hf", "bert", id2label={0: "a", 1: "b", 2: "c"})
    CASES[message](tmp_path / "hf")
    capsys.readouterr()
    assert main(["import", str(tmp_path / "hf"), "--out", str(tmp_path / "run")]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "warning" not in line]
    assert len(lines) == 1
    assert message in lines[0]
    assert not (tmp_path / "run").exists()


def test_an_encoder_without_a_head_says_how_to_train_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_checkpoint(tmp_path / "hf", "bert", "Model")
    capsys.readouterr()
    assert main(["import", str(tmp_path / "hf"), "--out", str(tmp_path / "run")]) == 2
    assert "regard train classify --pretrained" in capsys.readouterr().err


def test_tables_of_characters_point_inside_themselves() -> None:
    units, text = [0] * 512, b"a\0"
    trie = b"".join(unit.to_bytes(4, "little") for unit in units)

    def encoded(trie: bytes, text: bytes) -> str:
        return base64.b64encode(len(trie).to_bytes(4, "little") + trie + text).decode()

    assert is_charsmap(encoded(trie, text))
    outside = (97 | 5000 << 10).to_bytes(4, "little")
    assert not is_charsmap(encoded(trie[:388] + outside + trie[392:], text))
    assert not is_charsmap(encoded(trie, b"a"))
    assert not is_charsmap(encoded(trie, b"\xff\0"))
    assert not is_charsmap("####")
