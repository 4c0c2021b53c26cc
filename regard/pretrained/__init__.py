"""Pretrained models in the format of Hugging Face: folders read into Regard's own networks.

A folder has `config.json`, `*.safetensors` and `tokenizer.json`. Nothing in it is executed, and no
pickle is loaded. `FAMILIES` has one row per architecture; a row is one file.
"""

from regard.pretrained.checkpoint import Checkpoint, open_checkpoint
from regard.pretrained.families import FAMILIES, Family

__all__ = ["FAMILIES", "Checkpoint", "Family", "open_checkpoint"]
