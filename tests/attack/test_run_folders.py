"""Crafted run folders: their digests are right, and their content is meant to do harm."""

import json
import os
import shutil
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from regard.cli import main
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.errors import RegardError
from regard.inference.explain.faithfulness_reports import saved_reports
from regard.inference.learning_curves import draw_curves
from regard.serve.api.run_history import evaluations, is_finished, sentences
from regard.training import RunFolder
from regard.training.run import train_run
from regard.training.tensor_files import read_tensors, write_tensors
from tests.attack.attacked_runs import answers, change_config, options, seal, trained
from tests.attack.contained import contained
from tests.attack.tally import count

DEEP = "[" * 200_000
BOMB = {"type": "Replace", "pattern": {"Regex": "(?=.)"}, "content": "x" * 10**6}
PATTERN = {"type": "Split", "pattern": {"Regex": "(a|a|aa)+$"}, "behavior": "Isolated"}


def change_json(name: str, change: Callable) -> Callable:
    """Change a JSON file of the run in place."""

    def craft(run: Path) -> None:
        value = json.loads((run / name).read_text("utf-8"))
        changed = change(value)
        (run / name).write_text(json.dumps(value if changed is None else changed), "utf-8")

    return craft


def tokenizer(**parts) -> Callable:
    """A tokenizer with other parts."""
    return change_json("data/tokenizer.json", lambda state: state.update(parts))


def vocabulary(change: Callable) -> Callable:
    return change_json("data/tokenizer.json", lambda state: change(state["model"]["vocab"]))


def replaced(name: str, content: str | bytes) -> Callable:
    raw = content if isinstance(content, bytes) else content.encode()
    return lambda run: (run / name).write_bytes(raw)


def weights(change: Callable) -> Callable:
    """Other tensors, with a right digest."""

    def craft(run: Path) -> None:
        path = run / "model.safetensors"
        tensors, about = read_tensors(path)
        write_tensors(path, change(tensors), about)

    return craft


def first(change: Callable) -> Callable:
    """Other values in the first tensor."""

    def apply(tensors: dict) -> dict:
        name = min(tensors)
        return tensors | {name: change(tensors[name].clone())}

    return weights(apply)


def special(name: str, make: Callable) -> Callable:
    """Something that is not a regular file."""

    def craft(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        make(run / name)

    return craft


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**34)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sizes(**given) -> Callable:
    return lambda run: change_config(run, **given)


def header(raw: bytes, length: int | None = None) -> Callable:
    return replaced(
        "model.safetensors", struct.pack("<Q", len(raw) if length is None else length) + raw
    )


SEALED = {
    "a width of 10^9": sizes(width=10**9),
    "a width of 10^12": sizes(width=10**12),
    "a width of 10^18": sizes(width=10**18),
    "a width of 10^40": sizes(width=10**40),
    "a width of 65536": sizes(width=65536),
    "65536 layers": sizes(layers=65536),
    "10^9 layers": sizes(layers=10**9),
    "10^9 experts": sizes(experts=10**9),
    "10^9 heads": sizes(heads=10**9),
    "a feed-forward layer of 10^12": sizes(feed_forward=10**12),
    "texts of 10^18 tokens": sizes(max_tokens=10**18),
    "a dropout of NaN": sizes(dropout=float("nan")),
    "a negative width": sizes(width=-1),
    "a width of 7.5": sizes(width=7.5),
    "padding": tokenizer(
        padding={
            "strategy": {"Fixed": 10**9},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "<pad>",
        }
    ),
    "truncation": tokenizer(
        truncation={
            "direction": "Right",
            "max_length": 1,
            "strategy": "LongestFirst",
            "stride": 0,
        }
    ),
    "replacements": tokenizer(normalizer={"type": "Sequence", "normalizers": [BOMB] * 9}),
    "replacements after the right steps": change_json(
        "data/tokenizer.json", lambda s: s["normalizer"]["normalizers"].append(BOMB)
    ),
    "a pattern that never ends": tokenizer(pre_tokenizer=PATTERN),
    "added tokens": tokenizer(
        added_tokens=[
            {
                "id": 10**9,
                "content": "film",
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
        ]
    ),
    "a post-processor": tokenizer(
        post_processor={"type": "BertProcessing", "sep": ["a", 1], "cls": ["b", 2]}
    ),
    "another decoder": tokenizer(decoder={"type": "Fuse"}),
    "a token of number 10^9": vocabulary(lambda v: v.update(film=10**9)),
    "a token of number -1": vocabulary(lambda v: v.update(film=-1)),
    "two tokens of one number": vocabulary(lambda v: v.update(film=5, plot=5)),
    "an empty token": vocabulary(lambda v: v.update({"": len(v)})),
    "10^4 tokens": vocabulary(lambda v: v.update({f"w{i}": len(v) + i for i in range(10**4)})),
    "no special tokens": vocabulary(lambda v: v.pop("<pad>")),
    "a vocabulary that is a list": change_json(
        "data/tokenizer.json", lambda s: s["model"].update(vocab=[["a", 1.0]])
    ),
    "another model": change_json("data/tokenizer.json", lambda s: s["model"].update(type="X")),
    "a tokenizer that is a list": replaced("data/tokenizer.json", "[]"),
    "a nested tokenizer": replaced("data/tokenizer.json", DEEP),
    "nested labels": replaced("data/labels.json", DEEP),
    "labels that are numbers": replaced("data/labels.json", "[1, 2]"),
    "equal labels": replaced("data/labels.json", '["a", "a"]'),
    "10^5 labels": replaced("data/labels.json", json.dumps([str(i) for i in range(10**5)])),
    "no labels": replaced("data/labels.json", "[]"),
    "weights of int8": first(lambda t: t.to(torch.int8)),
    "weights of float16": first(lambda t: t.to(torch.float16)),
    "weights of NaN": first(lambda t: t.fill_(torch.nan)),
    "one weight of infinity": first(lambda t: t.masked_fill(t == t.max(), torch.inf)),
    "one enormous weight": first(lambda t: t.masked_fill(t == t.max(), 1e7)),
    "transposed weights": first(lambda t: t.unsqueeze(0)),
    "a missing weight": weights(lambda t: {name: t[name] for name in sorted(t)[1:]}),
    "one weight too many": weights(lambda t: t | {"more": torch.zeros(3)}),
    "no weights": weights(lambda t: {"x": torch.zeros(1)}),
}
"""Crafted by someone who makes all digests right again."""

BROKEN = {
    "a nested config": replaced("config.json", DEEP),
    "a config that is a list": replaced("config.json", "[]"),
    "a task that is a list": change_json("config.json", lambda c: c.update(task=["classify"])),
    "parts that are texts": change_json("config.json", lambda c: c.update(data="x", model="y")),
    "a number of 5000 digits": replaced("config.json", '{"task": "a", "format": ' + "9" * 5000),
    "nested digests": replaced("data/prepared.json", DEEP),
    "digests that are a list": replaced("data/prepared.json", '{"digests": [1]}'),
    "digests of files elsewhere": replaced(
        "data/prepared.json", '{"digests": {"../../../../../../../etc/passwd": "x"}}'
    ),
    "the same file many times": change_json(
        "data/prepared.json",
        lambda r: r["digests"].update({f"{'./' * n}labels.json": "x" for n in range(1, 900)}),
    ),
    "10^5 files": change_json(
        "data/prepared.json", lambda r: r["digests"].update({f"f{n}": "x" for n in range(10**5)})
    ),
    "a header of 2^63 bytes": header(b"{}", 2**63),
    "an empty header": header(b""),
    "a nested header": header(DEEP.encode()),
    "a nested tensor": header(b'{"a":' + DEEP.encode() + b"}"),
    "a header that is a list": header(b"[]"),
    "a tensor of 10^30 numbers": header(
        b'{"a":{"dtype":"F32","shape":[1e30],"data_offsets":[0,4]}}' + bytes(4)
    ),
    "nested metadata": header(json.dumps({"__metadata__": {"regard": DEEP}}).encode()),
    "a config of 16 GB": special("config.json", sparse),
    "weights of 16 GB": special("model.safetensors", sparse),
    "a tokenizer of 16 GB": special("data/tokenizer.json", sparse),
    **{
        f"{kind} as {name}": special(name, make)
        for name in ("config.json", "model.safetensors", "data/prepared.json", "data/labels.json")
        for kind, make in (("a pipe", os.mkfifo), ("a device", endless), ("a folder", os.mkdir))
    },
}


def crafted(craft: Callable, out: Path, sealed: bool) -> Path:
    shutil.copytree(trained("classify"), out)
    craft(out)
    if sealed:
        seal_forged(out)
    return out


def seal_forged(run: Path) -> None:
    with suppress(OSError, ValueError):
        seal(run)


@pytest.mark.parametrize("name", [*SEALED, *BROKEN])
def test_a_crafted_run_is_an_error_of_one_line(name, tmp_path):
    run = crafted({**SEALED, **BROKEN}[name], tmp_path / "run", name in SEALED)
    outcome = contained(lambda: answers(run))
    count("crafted run folders", outcome.kind, outcome.cpu_seconds, outcome.megabytes)
    assert outcome.harmless(), outcome
    assert outcome.kind == "error", outcome
    if name in ("a width of 65536", "65536 layers"):
        assert "weights of another model" in outcome.value


@pytest.mark.parametrize("name", ["a pipe as config.json", "a nested config", "a width of 10^9"])
def test_the_command_line_says_it_in_one_line(name, tmp_path, capfd):
    run = crafted({**SEALED, **BROKEN}[name], tmp_path / "run", name in SEALED)
    (tmp_path / "texts").write_text("the film\n")
    outcome = contained(lambda: main(["predict", str(run), str(tmp_path / "texts")]))
    assert (outcome.kind, outcome.value) == ("value", 2), outcome
    assert capfd.readouterr().err.count("\n") == 1


def change_model(change: Callable) -> Callable:
    return lambda state: change(state["model"])


FORGED_PARTS = {
    "bpe": [
        change_model(lambda m: m.update(dropout=0.5)),
        change_model(lambda m: m.update(end_of_word_suffix="x" * 10**6)),
        change_model(lambda m: m.update(merges=[["a", "no such token"]])),
        change_model(lambda m: m.update(merges=[["a", ""]] * 10)),
        change_model(lambda m: m.update(merges=[3])),
        change_model(lambda m: m["vocab"].update({"a": 10**9})),
        change_model(lambda m: m.update(vocab={"<pad>": 0, "<unk>": 1, "<bos>": 2, "<eos>": 3})),
        lambda s: s["pre_tokenizer"]["pretokenizers"].pop(0),
    ],
    "unigram": [
        change_model(lambda m: m.update(unk_id=10**9)),
        change_model(lambda m: m["vocab"].append(["film", float("nan")])),
        change_model(lambda m: m["vocab"].append(["", -1.0])),
        change_model(lambda m: m["vocab"].append(m["vocab"][9])),
        change_model(lambda m: m["vocab"].append("film")),
    ],
    "character": [lambda s: s["pre_tokenizer"]["pattern"].update(Regex="(x+x+)+y")],
}


@pytest.mark.parametrize("kind", FORGED_PARTS)
def test_only_what_regard_writes_is_a_tokenizer(kind, tmp_path):
    path = tmp_path / "tokenizer.json"
    Tokenizer.train(kind, ["the film was a film", "a plot"] * 3, 300).save(path)
    whole = path.read_text("utf-8")
    for change in FORGED_PARTS[kind]:
        state = json.loads(whole)
        change(state)
        path.write_text(json.dumps(state), "utf-8")
        with pytest.raises(RegardError, match="not a tokenizer of Regard"):
            Tokenizer.load(path)
    path.write_text(whole, "utf-8")
    state = json.loads(whole)
    del state["truncation"]  # other versions of the package write fewer fields, or more
    state["model"]["a later field"] = None
    path.write_text(json.dumps(state), "utf-8")
    assert Tokenizer.load(path).kind == kind


def test_an_edited_config_says_what_does_not_fit(tmp_path):
    run = tmp_path / "run"
    shutil.copytree(trained("classify"), run)
    change_config(run, data=["/elsewhere/train.tsv"], steps=999)
    assert answers(run) == answers(trained("classify"))
    change_config(run, lowercase=False, max_tokens=7)
    with pytest.raises(
        RegardError, match=r"its lowercase is True, not False; its max_tokens is 400, not 7\)"
    ):
        answers(run)
    given = options("classify") | {"data": ["/elsewhere/train.tsv"], "lowercase": False}
    with pytest.raises(RegardError, match=r"lowercase is True, not False\): restore config.json"):
        train_run("classify", given | {"max_tokens": 400, "steps": 999}, _with_tokens(run, 400))


def _with_tokens(run: Path, tokens: int) -> Path:
    change_config(run, max_tokens=tokens)
    return run


def test_what_is_only_shown_is_left_out_where_it_cannot_be_read(tmp_path):
    """Metrics, evaluations and reports: nothing is computed from them."""
    run = tmp_path / "run"
    shutil.copytree(trained("classify"), run)
    lines = (run / "metrics.jsonl").read_bytes()
    bad = [DEEP.encode(), b'"text"', b"\xff", b'{"step": 1e999, "main": "x", "metrics": {"x": 3}}']
    (run / "metrics.jsonl").write_bytes(b"\n".join([*bad, lines]))
    for folder in ("evaluations", "faithfulness"):
        (run / folder).mkdir(exist_ok=True)
        (run / folder / "deep.json").write_text(DEEP)
        os.mkfifo(run / folder / "pipe.json")
    os.mkfifo(run / "evaluations" / "pipe.jsonl")
    (run / "state" / "latest.safetensors").unlink()
    os.mkfifo(run / "state" / "latest.safetensors")
    folder = RunFolder(run)

    def read_all():
        draw_curves(run)
        return (
            [evaluation["name"] for evaluation in evaluations(folder)],
            sentences(folder, "pipe"),
            saved_reports(folder),
            is_finished(folder),
        )

    outcome = contained(read_all)
    assert (outcome.kind, outcome.value) == ("value", (["validation"], None, [], False)), outcome
    assert answers(run) == answers(trained("classify"))


def damaged_weights(run: Path) -> None:
    content = bytearray((run / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (run / "model.safetensors").write_bytes(content)


def linked_weights(run: Path) -> None:
    (run / "model.safetensors").rename(run.parent / "outside")
    (run / "model.safetensors").symlink_to(run.parent / "outside")


@pytest.mark.parametrize(
    ("craft", "message"),
    [
        (damaged_weights, "is damaged"),
        (replaced("data/prepared.json", '{"digests": {}}'), "other data than the run has"),
        (linked_weights, "is a link"),
    ],
)
def test_only_whole_runs_are_packed_and_pruned(craft, message, tmp_path, capsys):
    """What could restore a damaged run is not removed, and no file from elsewhere is handed on."""
    run = tmp_path / "run"
    shutil.copytree(trained("classify"), run)
    craft(run)
    before = sorted(run.rglob("*"))
    for words in (["pack", str(run), "--to", str(tmp_path / "packed.zip")], ["prune", str(run)]):
        assert main(words) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert sorted(run.rglob("*")) == before
    assert not (tmp_path / "packed.zip").exists()


def test_a_pipe_among_evaluations_is_not_packed(tmp_path):
    run = tmp_path / "run"
    shutil.copytree(trained("classify"), run)
    (run / "evaluations").mkdir(exist_ok=True)
    os.mkfifo(run / "evaluations" / "pipe.json")
    outcome = contained(lambda: main(["pack", str(run), "--to", str(tmp_path / "packed.zip")]))
    assert (outcome.kind, outcome.value) == ("value", 0), outcome
