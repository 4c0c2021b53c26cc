"""Layers with weights: everything that attends takes any score, any mask and any normalizer."""

from regard.layers.crf import CRF, Decoded
from regard.layers.decoding import BahdanauStep, DecoderState, LuongStep, Stepped
from regard.layers.experts import Experts, Mixture, balance_loss
from regard.layers.memory import Memory, Remembered
from regard.layers.multihead import Cache, Looked, MultiHead
from regard.layers.pooling import Pooled, Pooling
from regard.layers.reading import Prepared, Reading
from regard.layers.recurrent import Cell, Encoded, Encoder
from regard.layers.transformer import Block, BlockCache, Transformed

__all__ = [
    "CRF",
    "BahdanauStep",
    "Block",
    "BlockCache",
    "Cache",
    "Cell",
    "Decoded",
    "DecoderState",
    "Encoded",
    "Encoder",
    "Experts",
    "Looked",
    "LuongStep",
    "Memory",
    "Mixture",
    "MultiHead",
    "Pooled",
    "Pooling",
    "Prepared",
    "Reading",
    "Remembered",
    "Stepped",
    "Transformed",
    "balance_loss",
]
