"""Flair: a BiLSTM-CRF over learned word vectors, one epoch, and the tags of other sentences."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import flair
import torch
from flair.data import Sentence
from flair.datasets import ColumnCorpus
from flair.embeddings import OneHotEmbeddings
from flair.models import SequenceTagger
from flair.trainers import ModelTrainer
from turns import answer

WIDTH = 256


def main() -> None:
    """Train and predict when asked to."""
    flair.set_seed(1)
    train_file, test_file = (Path(name) for name in sys.argv[1:3])
    lines = test_file.read_text("utf-8").split("\n\n")
    sentences = [[line.split("\t")[0] for line in text.splitlines()] for text in lines]
    taggers: list[Any] = []

    def train() -> str:
        corpus = ColumnCorpus(
            train_file.parent,
            {0: "text", 1: "ner"},
            train_file=train_file.name,
            dev_file=test_file.name,
            test_file=None,
            column_delimiter="\t",
            sample_missing_splits=False,
        )
        tagger = SequenceTagger(
            OneHotEmbeddings.from_corpus(corpus, min_freq=1, embedding_length=WIDTH),
            corpus.make_label_dictionary("ner", add_unk=False),
            "ner",
            hidden_size=WIDTH,
            rnn_layers=1,
            use_crf=True,
            reproject_embeddings=False,
        )
        with tempfile.TemporaryDirectory() as folder:
            ModelTrainer(tagger, corpus).train(folder, max_epochs=1, mini_batch_size=32)
        taggers[:] = [tagger]
        return ""

    def predict() -> str:
        given = [Sentence(words) for words in sentences if words]
        with torch.no_grad():
            taggers[0].predict(given, mini_batch_size=32)
        return f"{sum(len(sentence) for sentence in given):,} words"

    answer({"train, words": train, "predict, sentences": predict})


if __name__ == "__main__":
    main()
