"""The tokenizer of a pretrained model: from tokenizer.json, or from the older vocabulary files."""

from pathlib import Path
from typing import Any, NamedTuple

from regard.data.tokenizers.pretrained_tokenizer import ImportedTokenizer, import_tokenizer
from regard.errors import RegardError
from regard.pretrained.checkpoint import Checkpoint
from regard.verified_files import MAX_CONFIG, read_bytes, read_json

FILE, SETTINGS, NAMES = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"
MAX_VOCABULARY = 64 * 2**20


def read_tokenizer(
    checkpoint: Checkpoint, vocabulary: int, *, prefix_words: bool = False
) -> ImportedTokenizer:
    """The tokenizer of an encoder with so many rows, with the tokens that it puts around a text."""
    folder = checkpoint.folder
    names = read_special_names(folder)
    state = read_state(folder, names)
    frame = _frame(state) or (names.get("cls_token"), names.get("sep_token"))
    if None in frame:
        raise RegardError(
            f"{folder}: the tokenizer does not say which tokens it puts around a text: expected "
            f"cls_token and sep_token in {SETTINGS}"
        )
    special = (names.get("pad_token"), names.get("unk_token") or _unknown(state), *frame)
    imported = import_tokenizer(state, special, folder / FILE, prefix_words=prefix_words)
    check_size(imported, folder / FILE, vocabulary)
    return imported


class DecoderTokenizer(NamedTuple):
    """The tokenizer of a language model, and whether it puts `<bos>` before a text."""

    imported: ImportedTokenizer
    begins: bool


def read_decoder_tokenizer(checkpoint: Checkpoint, vocabulary: int) -> DecoderTokenizer:
    """The tokenizer of a language model with so many rows."""
    folder = checkpoint.folder
    names = read_special_names(folder)
    state = read_state(folder, names)
    begin = _first_of_template(state)
    if begin is None and _read_settings(folder).get("add_bos_token") is True:
        begin = names.get("bos_token")
    end = names.get("eos_token") or names.get("bos_token")
    if end is None:
        raise RegardError(
            f"{folder}: the tokenizer does not say which token ends a text: expected eos_token in "
            f"{SETTINGS}"
        )
    # a token has one meaning: the end of a text goes first, the padding last
    found: list[str | None] = []
    for name in (end, begin or names.get("bos_token"), _unknown(state), names.get("pad_token")):
        found.append(None if name in found else name)
    last, first, unknown, padding = found
    imported = import_tokenizer(state, (padding, unknown, first, last), folder / FILE)
    check_size(imported, folder / FILE, vocabulary)
    return DecoderTokenizer(imported, begin is not None and begin == first)


def check_size(imported: ImportedTokenizer, path: Path, vocabulary: int) -> None:
    """Raise an error where a tokenizer has tokens that a model with so many rows has not."""
    largest = int(imported.rows.max())
    if largest >= vocabulary:
        raise RegardError(
            f"{path}: has the token number {largest:,}, but the model has {vocabulary:,} tokens: "
            f"it is the tokenizer of another model"
        )


def _first_of_template(state: dict[str, Any]) -> str | None:
    """The token that a post-processor puts before a single text; None for none."""
    step: Any = state.get("post_processor")
    try:
        steps = step["processors"] if step["type"] == "Sequence" else [step]
        for part in steps:
            if part["type"] == "TemplateProcessing" and "SpecialToken" in part["single"][0]:
                return str(part["single"][0]["SpecialToken"]["id"])
    except (KeyError, TypeError, IndexError):
        return None
    return None


def read_state(folder: Path, names: dict[str, str]) -> dict[str, Any]:
    """The content of tokenizer.json, or what it would be."""
    try:
        state = read_json(folder / FILE)
    except FileNotFoundError:
        return _old_files(folder, names)
    if not isinstance(state, dict):
        raise RegardError(f"{folder / FILE}: not a tokenizer")
    return state


def _old_files(folder: Path, names: dict[str, str]) -> dict[str, Any]:
    """What tokenizer.json would be, from vocab.txt or from vocab.json and merges.txt."""
    settings = _read_settings(folder)
    if (folder / "vocab.txt").exists():
        lines = _lines(folder / "vocab.txt")
        lowercase = settings.get("do_lower_case", True) is not False
        names.setdefault("unk_token", "[UNK]")
        names.setdefault("pad_token", "[PAD]")
        names.setdefault("cls_token", "[CLS]")
        names.setdefault("sep_token", "[SEP]")
        return {
            "normalizer": {
                "type": "BertNormalizer",
                "clean_text": True,
                "handle_chinese_chars": settings.get("tokenize_chinese_chars", True) is not False,
                "strip_accents": None,
                "lowercase": lowercase,
            },
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {
                "type": "WordPiece",
                "unk_token": names["unk_token"],
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": {token: number for number, token in enumerate(lines)},
            },
        }
    if (folder / "vocab.json").exists() and (folder / "merges.txt").exists():
        vocabulary = read_json(folder / "vocab.json")
        merges = [
            line.split(" ")
            for line in _lines(folder / "merges.txt")
            if line and not line.startswith("#version")
        ]
        names.setdefault("eos_token", "<|endoftext|>")
        space = settings.get("add_prefix_space", False) is True
        step = {"type": "ByteLevel", "add_prefix_space": space, "trim_offsets": True}
        return {
            "normalizer": None,
            "pre_tokenizer": step,
            "decoder": {**step, "add_prefix_space": True},
            "model": {"type": "BPE", "unk_token": None, "vocab": vocabulary, "merges": merges},
        }
    raise RegardError(
        f"{folder}: no tokenizer: expected {FILE}, vocab.txt, or vocab.json with merges.txt"
    )


def _lines(path: Path) -> list[str]:
    try:
        text = read_bytes(path, MAX_VOCABULARY).decode("utf-8")
    except UnicodeDecodeError as error:
        raise RegardError(f"{path}: is not UTF-8 ({error})") from error
    return text.removesuffix("\n").split("\n")


def _read_settings(folder: Path) -> dict[str, Any]:
    try:
        settings = read_json(folder / SETTINGS, MAX_CONFIG)
    except FileNotFoundError:
        return {}
    return settings if isinstance(settings, dict) else {}


def read_special_names(folder: Path) -> dict[str, str]:
    """Names of special tokens by their parts, such as cls_token."""
    given = _read_settings(folder)
    try:
        named = read_json(folder / NAMES, MAX_CONFIG)
    except FileNotFoundError:
        named = {}
    merged = {**(named if isinstance(named, dict) else {}), **given}
    names: dict[str, str] = {}
    for part in ("pad", "unk", "cls", "sep", "bos", "eos"):
        value = merged.get(f"{part}_token")
        if isinstance(value, dict):
            value = value.get("content")
        if isinstance(value, str):
            names[f"{part}_token"] = value
    return names


def _frame(state: dict[str, Any]) -> tuple[str, str] | None:
    """The first and the last token that a post-processor puts around a single text."""
    step: Any = state.get("post_processor")
    try:
        if step["type"] in ("BertProcessing", "RobertaProcessing"):
            return str(step["cls"][0]), str(step["sep"][0])
        if step["type"] == "TemplateProcessing":
            first, text, last = step["single"]
            if "Sequence" in text:
                return str(first["SpecialToken"]["id"]), str(last["SpecialToken"]["id"])
    except (KeyError, TypeError, ValueError, IndexError):
        return None
    return None


def _unknown(state: dict[str, Any]) -> str | None:
    model = state.get("model")
    name = model.get("unk_token") if isinstance(model, dict) else None
    return name if isinstance(name, str) else None
