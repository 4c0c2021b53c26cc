"""Imported encoders give what `transformers` gives: every logit and every attention weight."""

from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.inference.import_run import import_run
from tests.pretrained.checkpoints import FAMILIES, TEXTS, write_checkpoint

LABELS = {0: "bad", 1: "good", 2: "neither"}
TAGS = {0: "O", 1: "B-PER", 2: "I-PER", 3: "B-LOC"}


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_are_classified_as_by_transformers(family: str, tmp_path: Path) -> None:
    model, tokenizer = write_checkpoint(tmp_path / "hf", family, id2label=LABELS)
    run = regard.load(import_run(tmp_path / "hf", tmp_path / "run").path)
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        expected = model(**batch, output_attentions=True)
    found = run.predict_proba(TEXTS)
    np.testing.assert_allclose(found, expected.logits.softmax(-1), atol=1e-5)
    assert run.labels == tuple(LABELS.values())
    inputs = run.task._pad(run.task._read(TEXTS))
    output = run.model(*inputs, need_weights=True)
    torch.testing.assert_close(output.logits, expected.logits, atol=1e-4, rtol=1e-4)
    for row, length in enumerate(batch["attention_mask"].sum(1)):
        for layer, weights in enumerate(expected.attentions):
            ours = output.weights[f"encoder.{layer}.self"][row, :, :length, :length]
            torch.testing.assert_close(
                ours, weights[row, :, :length, :length], atol=1e-5, rtol=1e-4
            )


@pytest.mark.parametrize("family", FAMILIES)
def test_looks_have_the_tokens_of_the_model(family: str, tmp_path: Path) -> None:
    model, tokenizer = write_checkpoint(tmp_path / "hf", family, id2label=LABELS)
    run = regard.load(tmp_path / "hf")
    text = TEXTS[0]
    trace = run.trace(text)
    batch = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
    weights = model(**batch, output_attentions=True).attentions
    assert len(trace.looks) == 3 * 4
    for look in trace.looks:
        np.testing.assert_allclose(
            look.weights, weights[look.layer][0, look.head].detach(), atol=1e-5
        )
    first, *tokens, last = trace.sides["text"].tokens
    assert (first.text, last.text) == (tokenizer.cls_token, tokenizer.sep_token)
    words = {token.word for token in tokens if token.text.strip()}
    assert words == set(range(len(text.split())))
    for token in tokens:
        assert token.text == text[token.start : token.end]


@pytest.mark.parametrize("family", FAMILIES)
def test_words_are_tagged_as_by_transformers(family: str, tmp_path: Path) -> None:
    model, tokenizer = write_checkpoint(
        tmp_path / "hf", family, "ForTokenClassification", id2label=TAGS
    )
    run = regard.load(import_run(tmp_path / "hf", tmp_path / "run").path)
    sentences = [text.split() for text in TEXTS]
    batch = tokenizer(
        sentences,
        is_split_into_words=True,
        padding=True,
        return_tensors="pt",
        return_token_type_ids=False,
    )
    with torch.no_grad():
        expected = model(**batch, output_attentions=True)
    found = run.predict_proba(TEXTS)
    for row, words in enumerate(sentences):
        numbers = batch.word_ids(row)
        first = [numbers.index(word) for word in range(len(words))]
        np.testing.assert_allclose(found[row], expected.logits[row, first].softmax(-1), atol=1e-5)
    assert [p.output.split() for p in run.predict(TEXTS)] == [
        [TAGS[i] for i in rows.argmax(-1)] for rows in found
    ]
    words, lengths, tokens = run.task.inputs(sentences)
    output = run.model(words, lengths, tokens, need_weights=True)
    for row, length in enumerate(batch["attention_mask"].sum(1)):
        for layer, weights in enumerate(expected.attentions):
            ours = output.weights[f"encoder.{layer}.self"][row, :, :length, :length]
            torch.testing.assert_close(
                ours, weights[row, :, :length, :length], atol=1e-5, rtol=1e-4
            )
