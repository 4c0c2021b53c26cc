"""Pretrained models in runs: options, files and first weights."""
