"""Tokenizers, words and word vectors."""
