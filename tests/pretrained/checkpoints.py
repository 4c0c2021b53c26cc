"""Small pretrained models with random weights, written by `transformers`."""

from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

TEXTS = [
    "The unhappy cats are not sleeping, are they?",
    "A dog barks.",
    "Ça va? Nobody knows the trouble I've seen; nobody knows.",
]
PIECES = (
    *("the", "un", "happy", "cat", "s", "are", "not", "sleep", "ing", ",", "they", "?", "a"),
    *("dog", "bark", ".", "nobody", "know", "seen", ";", "ca", "va"),
)
SIZES = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4}


def wordpiece(folder: Path, lowercase: bool = True) -> PreTrainedTokenizerFast:
    """A tokenizer of BERT, whose special tokens do not come first."""
    letters = "abcdefghijklmnopqrstuvwxyz'"
    names = ["[PAD]", *PIECES, *letters, "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    names += [f"##{piece}" for piece in (*PIECES, *letters)]
    vocabulary = {name: number for number, name in enumerate(dict.fromkeys(names))}
    inner = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece()
    cls, sep = vocabulary["[CLS]"], vocabulary["[SEP]"]
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", cls), ("[SEP]", sep)]
    )
    names_of = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    return _saved(inner, folder, names_of)


def byte_bpe(folder: Path) -> PreTrainedTokenizerFast:
    """A tokenizer of RoBERTa."""
    from tokenizers import trainers

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        show_progress=False,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    inner.train_from_iterator(TEXTS, trainer)
    inner.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    names = {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}
    return _saved(inner, folder, names)


def sentencepiece(folder: Path) -> PreTrainedTokenizerFast:
    """A tokenizer of XLM-RoBERTa, with a mask token after the vocabulary."""
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    letters = [*"▁abcdefghijklmnopqrstuvwxyzTANI,.?;'", "▁the", "▁cat", "▁not", "ing", "▁know", "▁"]
    pieces = [(name, 0.0) for name in names]
    pieces += [(piece, -2.0 - n / 7) for n, piece in enumerate(dict.fromkeys(letters))]
    inner = Tokenizer(models.Unigram(pieces, unk_id=3))
    inner.normalizer = normalizers.NFKC()
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    special = {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}
    return _saved(inner, folder, special)


def _saved(inner: Tokenizer, folder: Path, names: dict[str, str]) -> PreTrainedTokenizerFast:
    special: Any = {f"{part}_token": name for part, name in names.items()}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, **special)
    tokenizer.save_pretrained(folder)
    return tokenizer


def _positions(rows: int = 40) -> dict[str, Any]:
    return {"max_position_embeddings": rows, "intermediate_size": 37, "hidden_act": "gelu"}


FAMILIES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "bert": (wordpiece, "Bert", {**SIZES, **_positions()}),
    "distilbert": (
        wordpiece,
        "DistilBert",
        {"dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 37, "max_position_embeddings": 40},
    ),
    "electra": (wordpiece, "Electra", {**SIZES, **_positions(), "embedding_size": 10}),
    "roberta": (byte_bpe, "Roberta", {**SIZES, **_positions(60), "pad_token_id": 1}),
    "xlm-roberta": (sentencepiece, "XLMRoberta", {**SIZES, **_positions(80), "pad_token_id": 1}),
}
"""Each family with its tokenizer, the name of its classes and its sizes."""


def write_checkpoint(
    folder: Path, family: str, head: str = "ForSequenceClassification", **settings: Any
) -> tuple[Any, PreTrainedTokenizerFast]:
    """Write a small model into a folder; the model of `transformers`, and its tokenizer."""
    make_tokenizer, name, sizes = {**FAMILIES, **FAMILIES_OF_DECODERS}[family]
    tokenizer = make_tokenizer(folder)
    config = getattr(transformers, f"{name}Config")(
        vocab_size=len(tokenizer), **{**sizes, **settings}
    )
    torch.manual_seed(3)
    model = getattr(transformers, f"{name}{head}")._from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms are not zeros and ones
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.eval().save_pretrained(folder)
    return model, tokenizer


def gpt2_bpe(folder: Path) -> PreTrainedTokenizerFast:
    """A tokenizer of GPT-2: bytes, and one token that stands between texts."""
    from tokenizers import trainers

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        show_progress=False,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    inner.train_from_iterator(TEXTS, trainer)
    end = "<|endoftext|>"
    return _saved(inner, folder, {"bos": end, "eos": end, "unk": end})


def llama_bpe(folder: Path) -> PreTrainedTokenizerFast:
    """A tokenizer of Llama: SentencePiece's BPE, in which bytes stand for unknown letters."""
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    letters = sorted({*"▁", *"".join(TEXTS).replace(" ", "")} - {"Ç"})
    merges = [("▁", "t"), ("▁t", "h"), ("▁th", "e"), ("n", "o"), ("no", "t"), ("a", "r")]
    names += [*letters, *dict.fromkeys(a + b for a, b in merges)]
    vocabulary = {name: number for number, name in enumerate(names)}
    inner = Tokenizer(
        models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    inner.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    inner.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return _saved(inner, folder, {"bos": "<s>", "eos": "</s>", "unk": "<unk>"})


LLAMA = {**SIZES, "num_key_value_heads": 2, "max_position_embeddings": 96, "intermediate_size": 37}
SCALED = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
FAMILIES_OF_DECODERS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "gpt2": (
        gpt2_bpe,
        "GPT2",
        {"n_embd": 24, "n_layer": 3, "n_head": 4, "n_positions": 96, "n_inner": 37},
    ),
    "llama": (llama_bpe, "Llama", {**LLAMA, "rope_theta": 500.0}),
    "llama-3": (
        llama_bpe,
        "Llama",
        # frequencies that are kept, divided, and in between
        {**LLAMA, "head_dim": 16, "rope_parameters": SCALED},
    ),
    "llama-linear": (
        llama_bpe,
        "Llama",
        {**LLAMA, "rope_parameters": {"rope_type": "linear", "factor": 2.5, "rope_theta": 500.0}},
    ),
    "mistral": (llama_bpe, "Mistral", {**LLAMA, "sliding_window": None, "head_dim": 8}),
    "qwen2": (gpt2_bpe, "Qwen2", {**LLAMA, "tie_word_embeddings": True}),
}
"""Language models with their tokenizers, the names of their classes and their sizes."""
