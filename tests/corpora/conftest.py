"""The generators run a hundred small functions a sentence: checked call by call they would crawl.

They hold no tensors, so their modules are imported without the shape-checking hook.
"""

import importlib
import sys

import regard.data  # noqa: F401 (with the hook)

hooks = [finder for finder in sys.meta_path if type(finder).__module__.startswith("jaxtyping")]
for hook in hooks:
    sys.meta_path.remove(hook)
try:
    corpora = importlib.import_module("regard.corpora").CORPORA
    for name in corpora:
        corpora.row(name)
finally:
    sys.meta_path[:0] = hooks
