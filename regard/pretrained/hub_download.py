"""Downloading a pretrained model from the Hugging Face hub: `hf:organization/name`."""

from fnmatch import fnmatch
from pathlib import Path

from regard.errors import RegardError
from regard.pretrained.checkpoint import INDEX, KEPT_FILES, PICKLED, WEIGHTS
from regard.progress import stage

PREFIX = "hf:"
SHARDS = "model-*.safetensors"
POOLING = "1_Pooling/config.json"


def download_model(name: str) -> Path:
    """A model in the cache of `huggingface_hub`, with the files that an import reads.

    Args:
        name: `hf:organization/model`, or `hf:organization/model@revision`.
    """
    try:
        import huggingface_hub
    except ImportError:
        raise RegardError(
            f"{name}: needs the package huggingface_hub: pip install 'regard[hub]'"
        ) from None
    repository, _, revision = name.removeprefix(PREFIX).partition("@")
    try:
        with stage(f"downloading {repository}"):
            info = huggingface_hub.HfApi().model_info(repository, revision=revision or None)
            files = _needed_files([file.rfilename for file in info.siblings or []])
            folder = huggingface_hub.snapshot_download(
                repository, revision=info.sha, allow_patterns=files
            )
    except Exception as error:  # of names, of the network, of the disk
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RegardError(f"{name}: cannot be downloaded: {reason[:300]}") from error
    return Path(folder)


def _needed_files(files: list[str]) -> list[str]:
    """What an import reads of some files: a pickle only where there is no safetensors file."""
    weights = [PICKLED]
    if WEIGHTS in files:
        weights = [WEIGHTS]
    elif INDEX in files:
        weights = [INDEX, *(name for name in files if fnmatch(name, SHARDS))]
    else:
        others = [name for name in files if fnmatch(name, "*.safetensors") and "/" not in name]
        weights = others if len(others) == 1 else weights
    return [name for name in files if name in (*KEPT_FILES, *weights, POOLING)]
