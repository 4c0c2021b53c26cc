"""Layers with weights; every attention takes any score, any mask and any normalizer."""

from regard.layers.crf import CRF, BestTags
from regard.layers.decoder_steps import BahdanauStep, DecoderState, DecoderStepOutput, LuongStep
from regard.layers.experts import Experts, Mixture, balance_loss
from regard.layers.memory.external_memory import Memory, MemoryOutput
from regard.layers.memory_attention import MemoryAttention, PreparedMemory
from regard.layers.multihead import Cache, MultiHead, MultiHeadOutput
from regard.layers.naive_bayes import NaiveBayes, NGramEvidence
from regard.layers.pooling import Pooling, PoolingOutput
from regard.layers.recurrent import Cell, Encoder, EncoderOutput
from regard.layers.transformer import Block, BlockCache, BlockOutput

__all__ = [
    "CRF",
    "BahdanauStep",
    "BestTags",
    "Block",
    "BlockCache",
    "BlockOutput",
    "Cache",
    "Cell",
    "DecoderState",
    "DecoderStepOutput",
    "Encoder",
    "EncoderOutput",
    "Experts",
    "LuongStep",
    "Memory",
    "MemoryAttention",
    "MemoryOutput",
    "Mixture",
    "MultiHead",
    "MultiHeadOutput",
    "NGramEvidence",
    "NaiveBayes",
    "Pooling",
    "PoolingOutput",
    "PreparedMemory",
    "balance_loss",
]
