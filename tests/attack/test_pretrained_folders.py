"""Crafted folders of pretrained models: an error of one line, little memory, nothing written."""

import json
import math
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import regard
from regard.data.tokenizers.tokenizer_parts import check_steps
from regard.inference.export.transformers_folder import export_to_huggingface
from regard.inference.import_run import import_run
from regard.pretrained import checkpoint
from tests.attack.attacked_runs import seal
from tests.attack.contained import contained
from tests.attack.tally import count
from tests.pretrained.checkpoints import write_checkpoint

DEEP = "[" * 200_000
Craft = Callable[[Path], Any]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small models of each kind of tokenizer."""
    made = {}
    for family, head, settings in (
        ("bert", "ForSequenceClassification", {"id2label": {0: "a", 1: "b", 2: "c"}}),
        ("gpt2", "LMHeadModel", {"bos_token_id": 0, "eos_token_id": 0}),
        ("llama", "ForCausalLM", {}),
        ("xlm-roberta", "ForSequenceClassification", {}),
    ):
        made[family] = tmp_path_factory.mktemp(family)
        write_checkpoint(made[family], family, head, **settings)
        # imports what processes that are forked later would import one by one
        import_run(made[family], tmp_path_factory.mktemp("run"))
    return made


def edit(name: str, change: Callable[[dict[str, Any]], Any]) -> Craft:
    def craft(folder: Path) -> None:
        values = json.loads((folder / name).read_text("utf-8"))
        change(values)
        (folder / name).write_text(json.dumps(values))

    return craft


def config(**values: Any) -> Craft:
    return edit("config.json", lambda c: c.update(values))


def tokenizer(**values: Any) -> Craft:
    return edit("tokenizer.json", lambda t: t.update(values))


def vocabulary(change: Callable[[dict[str, Any]], Any]) -> Craft:
    return edit("tokenizer.json", lambda t: change(t["model"]))


def content(name: str, text: str) -> Craft:
    return lambda folder: (folder / name).write_text(text)


def header(text: str, length: int | None = None, rest: bytes = b"") -> Craft:
    raw = text.encode()
    start = struct.pack("<Q", len(raw) if length is None else length)
    return lambda folder: (folder / "model.safetensors").write_bytes(start + raw + rest)


def weights(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Craft:
    def craft(folder: Path) -> None:
        path = folder / "model.safetensors"
        save_file(change(load_file(path)), path)

    return craft


def pickled(change: Callable[[torch.Tensor], Any]) -> Craft:
    def craft(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        changed = {name: change(tensor) for name, tensor in tensors.items()}
        torch.save(changed, folder / "pytorch_model.bin")

    return craft


def index(name: object) -> Craft:
    def craft(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        text = json.dumps({"weight_map": {"a": name}})
        (folder / "model.safetensors.index.json").write_text(text)

    return craft


def instead(name: str, make: Callable[[Path], Any]) -> Craft:
    def craft(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return craft


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**34)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def many_tensors(amount: int) -> str:
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    return json.dumps({f"t{number}": empty for number in range(amount)})


BOMB = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 8}
CASES: dict[str, dict[str, tuple[Craft, str]]] = {
    "bert": {
        "a nested config": (content("config.json", DEEP), "nested too deeply"),
        "an epsilon of 10^400": (config(layer_norm_eps=10**400), "expected a number"),
        "an epsilon of NaN": (config(layer_norm_eps=float("nan")), "expected a number"),
        "a negative epsilon": (config(layer_norm_eps=-1), "config.json: option epsilon"),
        "a list as activation": (config(hidden_act=["gelu"]), "hidden_act"),
        "65536 layers": (config(num_hidden_layers=65536), "has 65,536 layers, but there are only"),
        "a vocabulary of 10^7": (config(vocab_size=10**7), "weights that do not fit"),
        "10^40 positions": (config(max_position_embeddings=10**40), "a whole number from 1 to"),
        "a width of 65536": (
            config(hidden_size=65536, num_attention_heads=65536),
            "weights that do not fit",
        ),
        "half a letter": (
            config(id2label={"0": "a", "1": "b", "2": "\ud800"}),
            "a name is not Unicode text",
        ),
        "10^5 labels": (config(id2label={n: str(n) for n in range(10**5)}), "names 100000 labels"),
        "a nested tokenizer": (content("tokenizer.json", DEEP), "nested too deeply"),
        "nested settings": (content("tokenizer_config.json", DEEP), "nested too deeply"),
        "a prefix of 10^6": (
            vocabulary(lambda m: m.update(continuing_subword_prefix="x" * 10**6)),
            "continuing_subword_prefix",
        ),
        "words of 10^9": (vocabulary(lambda m: m.update(max_input_chars_per_word=10**9)), "max_in"),
        "a number of 10^9": (vocabulary(lambda m: m["vocab"].update(zz=10**9)), "another model"),
        "a token of type bool": (vocabulary(lambda m: m["vocab"].update(zz=True)), "no number"),
        "no vocabulary": (vocabulary(lambda m: m.update(vocab=None)), "cannot be used"),
        "replacements": (
            tokenizer(normalizer={"type": "Sequence", "normalizers": [BOMB] * 9}),
            "its replacements make a text 134,217,728 times longer",
        ),
        "a list of added tokens": (tokenizer(added_tokens="abc"), "cannot be used"),
        "an empty header": (header(""), "cannot be read as safetensors"),
        "a header of 2^63": (header("{}", 2**63), "its header is not complete"),
        "a nested header": (header(DEEP), "cannot be read as safetensors"),
        "10^5 tensors": (header(many_tensors(10**5)), "expected at most 4,194,304"),
        "overlapping tensors": (
            header(
                '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
                '"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
                rest=bytes(4),
            ),
            "cannot be read as safetensors",
        ),
        "weights of int8": (
            weights(lambda t: {name: one.to(torch.int8) for name, one in t.items()}),
            "are of type int8",
        ),
        "complex weights": (
            weights(lambda t: {name: one.to(torch.complex64) for name, one in t.items()}),
            "are of type complex64",
        ),
        "a head of one number": (
            weights(lambda t: t | {"classifier.weight": torch.tensor(1.0)}),
            "of its head are one number",
        ),
        "types of one axis": (
            weights(
                lambda t: t | {"bert.embeddings.token_type_embeddings.weight": torch.zeros(24)}
            ),
            "do not fit together",
        ),
        "one weight twice": (
            weights(lambda t: t | {"bert.embeddings.LayerNorm.gamma": torch.ones(24)}),
            "which model.safetensors has too",
        ),
        "a long name of a file": (index("a" * 5000 + ".safetensors"), "is not a file of the"),
        "half a letter in a name": (index("\ud800.safetensors"), "is not a file of the folder"),
        "a name with a zero": (index("a\0.safetensors"), "is not a file of the folder"),
        "a list of files": (index(["x"]), "is not a file of the folder"),
        "sparse tensors": (pickled(lambda t: t.to_sparse()), "is not a plain tensor"),
        "tensors without memory": (pickled(lambda t: t.to("meta")), "is not a plain tensor"),
        "expanded tensors": (
            pickled(lambda t: torch.zeros(1).expand(10**7, 65536)),
            "is not a plain tensor",
        ),
        **{
            f"{kind} as {name}": (instead(name, make), str(name))
            for name in ("config.json", "model.safetensors", "tokenizer.json")
            for kind, make in (
                ("a pipe", os.mkfifo),
                ("a device", endless),
                ("16 GB", sparse),
                ("a loop", lambda path: path.symlink_to(path.name)),
            )
            if (kind, name) != ("a loop", "model.safetensors")
        },
    },
    "gpt2": {
        "a list as activation": (config(activation_function=["x"]), "activation_function"),
        "10^6 merges": (vocabulary(lambda m: m.update(merges=[["a", "b"]] * 10**6)), "merges"),
        "dropout of merges": (vocabulary(lambda m: m.update(dropout=0.5)), "dropout"),
    },
    "llama": {
        "a base of 10^400": (config(rope_parameters={"rope_theta": 10**400}), "expected a number"),
        "a base of 0": (config(rope_parameters={"rope_theta": 0}), "rotary_base"),
        "a list of bases": (config(rope_parameters=[1]), "rope_parameters: expected an object"),
        "heads of 65536": (config(head_dim=65536), "do not fit"),
    },
    "xlm-roberta": {
        "a score of NaN": (vocabulary(lambda m: m["vocab"][5].__setitem__(1, math.nan)), "finite"),
        "a score of 10^400": (vocabulary(lambda m: m["vocab"].append(["zzzz", 10**400])), "cannot"),
        "a piece twice": (vocabulary(lambda m: m["vocab"].append(m["vocab"][5])), "cannot be used"),
        "a piece without score": (vocabulary(lambda m: m["vocab"].append(["z"])), "cannot be used"),
    },
}


@pytest.mark.parametrize(("family", "name"), [(f, name) for f in CASES for name in CASES[f]])
@pytest.mark.filterwarnings("ignore:.*a pickled file")
def test_a_crafted_folder_is_an_error_of_one_line(family, name, folders, tmp_path):
    craft, message = CASES[family][name]
    shutil.copytree(folders[family], tmp_path / "folder")
    craft(tmp_path / "folder")
    outcome = contained(lambda: import_run(tmp_path / "folder", tmp_path / "run"))
    count("crafted pretrained folders", outcome.kind, outcome.cpu_seconds, outcome.megabytes)
    assert outcome.harmless(), outcome
    assert outcome.kind == "error", outcome
    assert message in outcome.value
    assert not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def imported(folders, tmp_path_factory) -> dict[str, Path]:
    made = {f: tmp_path_factory.mktemp("imported") / f for f in ("bert", "gpt2")}
    for family, path in made.items():
        import_run(folders[family], path)
    return made


def shapes(change: Callable[[list[int]], object]) -> Craft:
    return edit("shapes.json", lambda s: s.update({name: change(s[name]) for name in s}))


ORIGINALS: dict[str, Craft] = {
    **{
        f"{text[:9]} in {name}": content(name, text)
        for name in ("shapes.json", "config.json")
        for text in ("[]", "3", "null", '"x"', '{"a": {"b": 1}}', '{"a": [1e999]}', DEEP)
    },
    "negative shapes": shapes(lambda shape: [-1]),
    "shapes of 10^30": shapes(lambda shape: [10**30] * 9),
    "shapes of 10^7": shapes(lambda shape: [10**7] * len(shape)),
    "shapes of texts": shapes(lambda shape: "12"),
    "no shapes": shapes(lambda shape: None),
    "a vocabulary of 10^7": config(vocab_size=10**7),
    "another architecture": config(model_type="x" * 10**6),
    "other tokens": content("tokenizer_config.json", "{}"),
    "a pipe": instead("shapes.json", os.mkfifo),
}


@pytest.mark.parametrize("name", ORIGINALS)
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_crafted_originals_are_not_exported(family, name, imported, tmp_path):
    """What an imported run keeps of its model decides how large the exported one is."""
    run, out = tmp_path / "run", tmp_path / "out"
    shutil.copytree(imported[family], run)
    ORIGINALS[name](run / "data/original")
    if name != "a pipe":
        seal(run)
    outcome = contained(lambda: export_to_huggingface(regard.load(run), out))
    count("crafted originals", outcome.kind, outcome.cpu_seconds, outcome.megabytes)
    assert outcome.harmless(), outcome
    if (family, name) != ("gpt2", "other tokens"):
        assert outcome.kind == "error", outcome
        assert not out.exists()


def twice(kind: str, **settings: Any) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": [{"type": kind, **settings}] * 2}


def nested(depth: int) -> dict[str, Any]:
    step: dict[str, Any] = {"type": "NFC"}
    for _ in range(depth):
        step = {"type": "Sequence", "normalizers": [step]}
    return step


@pytest.mark.parametrize(
    "steps",
    [
        {"pre_tokenizer": twice("ByteLevel", add_prefix_space=False, use_regex=False)},
        {"pre_tokenizer": twice("Metaspace", replacement="▁", prepend_scheme="always")},
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend"}] * 2}},
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKD"}] * 25}},
        {"normalizer": {"type": "Sequence", "normalizers": [BOMB, BOMB]}},
        {"normalizer": nested(25)},
        {"decoder": {"type": "Sequence", "decoders": [BOMB, BOMB]}},
    ],
)
def test_steps_that_multiply_a_text_are_refused(steps):
    with pytest.raises(ValueError, match=r"times|at most 24 steps"):
        check_steps(steps)


def test_what_real_tokenizers_do_is_accepted():
    """Llama puts a mark before a text and in place of its blanks; XLM-R joins blanks."""
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    blanks = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}
    prepend = {"type": "Prepend", "prepend": "▁"}
    for steps in ([prepend, replace], [blanks], [BOMB, {"type": "NFC"}]):
        check_steps({"normalizer": {"type": "Sequence", "normalizers": steps}})


def test_files_that_are_links_are_read(folders, tmp_path):
    """The caches of download tools hold links to files elsewhere."""
    (tmp_path / "folder").mkdir()
    for path in folders["bert"].iterdir():
        (tmp_path / "folder" / path.name).symlink_to(path)
    run = regard.load(import_run(tmp_path / "folder", tmp_path / "run").path)
    assert run.labels == ("a", "b", "c")


def test_the_limit_of_headers_admits_large_models():
    """Names, shapes and places of the weights of Llama 3.1 405B, which has 126 layers."""
    parts = [f"self_attn.{p}_proj" for p in "qkvo"] + [f"mlp.{p}_proj" for p in ("gate", "up")]
    parts += ["mlp.down_proj", "input_layernorm", "post_attention_layernorm"]
    place = {"dtype": "BF16", "shape": [53248, 16384], "data_offsets": [10**12, 10**12]}
    names = {f"model.layers.{n}.{part}.weight": place for n in range(126) for part in parts}
    assert len(json.dumps(names)) * 10 < checkpoint.MAX_HEADER
