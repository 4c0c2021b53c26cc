"""Small pretrained translators with random weights, written by `transformers`."""

import io
import json
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers

from tests.pretrained.checkpoints import byte_bpe

PAIRS = [
    ("The unhappy cats are not sleeping, are they?", "Die armen Katzen schlafen nicht, oder?"),
    ("A dog barks.", "Ein Hund bellt."),
    ("Nobody knows the trouble I've seen; nobody knows.", "Niemand kennt die Not, die ich sah."),
    ("The dog sleeps.", "Der Hund schläft."),
]
SIZES = {
    "d_model": 24,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 31,
    "max_position_embeddings": 60,
}
T5_SIZES = {
    "d_model": 24,
    "d_kv": 5,
    "d_ff": 37,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "relative_attention_num_buckets": 12,
    "relative_attention_max_distance": 20,
}


def train_pieces(texts: list[str], **options: Any) -> bytes:
    """A SentencePiece model as the library writes it."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(texts * 5),
        model_writer=model,
        vocab_size=70,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def _marian_files(folder: Path) -> Any:
    """Files of an OPUS-MT tokenizer: few pieces are shared, one of the source has no number."""
    sides = zip(*PAIRS, strict=True)
    names: dict[str, None] = dict.fromkeys(("</s>", "<unk>", ">>deu<<"))
    unnumbered = ""
    for side, texts in zip(("source", "target"), sides, strict=True):
        content = train_pieces(list(texts))
        (folder / f"{side}.spm").write_bytes(content)
        pieces = sentencepiece.SentencePieceProcessor(model_proto=content)
        names |= dict.fromkeys(pieces.IdToPiece(i) for i in range(3, pieces.GetPieceSize()))
        unnumbered = unnumbered or max(pieces.EncodeAsPieces(texts[1]), key=len)
    del names[unnumbered]
    vocabulary = {name: number for number, name in enumerate((*names, "<pad>"))}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "tokenizer_config.json").write_text(json.dumps({"separate_vocabs": False}))
    return transformers.MarianTokenizer.from_pretrained(folder)


def _marian(folder: Path) -> tuple[Any, Any]:
    tokenizer = _marian_files(folder)
    padding = tokenizer.pad_token_id
    config = transformers.MarianConfig(
        vocab_size=padding + 1,
        pad_token_id=padding,
        decoder_start_token_id=padding,
        eos_token_id=0,
        forced_eos_token_id=0,
        activation_function="swish",
        scale_embedding=True,
        **SIZES,
    )
    return tokenizer, config


def _bart(folder: Path) -> tuple[Any, Any]:
    tokenizer = byte_bpe(folder)
    config = transformers.BartConfig(vocab_size=len(tokenizer) + 3, forced_bos_token_id=0, **SIZES)
    return tokenizer, config


def _t5_files(folder: Path) -> Any:
    texts = [text for pair in PAIRS for text in pair]
    special = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    (folder / "spiece.model").write_bytes(train_pieces(texts, **special))
    pieces = sentencepiece.SentencePieceProcessor(str(folder / "spiece.model"))
    scores = [(pieces.IdToPiece(i), pieces.GetScore(i)) for i in range(pieces.GetPieceSize())]
    return transformers.T5Tokenizer(vocab=scores, extra_ids=4)


def _t5(folder: Path, **options: Any) -> tuple[Any, Any]:
    tokenizer = _t5_files(folder)
    rows = tokenizer.vocab_size + 7
    return tokenizer, transformers.T5Config(
        vocab_size=rows, decoder_start_token_id=0, **T5_SIZES, **options
    )


def _gated_t5(folder: Path) -> tuple[Any, Any]:
    tokenizer, config = _t5(folder, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    (folder / "spiece.model").unlink()
    tokenizer.save_pretrained(folder)
    return tokenizer, config


def _mt5(folder: Path) -> tuple[Any, Any]:
    tokenizer = _t5_files(folder)
    rows = tokenizer.vocab_size
    return tokenizer, transformers.MT5Config(vocab_size=rows, decoder_start_token_id=0, **T5_SIZES)


TRANSLATORS = {
    "marian": (_marian, "MarianMTModel"),
    "bart": (_bart, "BartForConditionalGeneration"),
    "t5": (_t5, "T5ForConditionalGeneration"),
    "t5-gated": (_gated_t5, "T5ForConditionalGeneration"),
    "mt5": (_mt5, "MT5ForConditionalGeneration"),
}
"""Each kind with its files and config, and the name of its class."""


def write_translator(folder: Path, kind: str, scale: float = 0.1) -> tuple[Any, Any]:
    """Write a small model into a folder; the model of `transformers`, and its tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    make, name = TRANSLATORS[kind]
    tokenizer, config = make(folder)
    torch.manual_seed(3)
    model = getattr(transformers, name)._from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for part, parameter in model.named_parameters():
            if kind == "marian" and "embed_positions" in part:
                continue
            # with large layers, what is written is not what was read last
            large = parameter.ndim == 2 and not any(n in part for n in ("shared", "embed"))
            parameter.add_((scale if large else 0.1) * torch.randn_like(parameter))
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
    model.eval().save_pretrained(folder)
    return model, tokenizer
