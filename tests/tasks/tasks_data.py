"""Files for each task, so small that a test can afford to learn them by heart."""

import os
from pathlib import Path

import numpy as np

os.environ.setdefault("HF_HUB_OFFLINE", "1")

NOUNS = ("film", "plot", "cast", "song", "scene", "end")
WORDS = 3


def vectors(count: int = 24, length: int = 5, size: int = WORDS) -> np.ndarray:
    """Sequences whose first number says what they are."""
    return np.random.default_rng(3).normal(size=(count, length, size)).astype(np.float32)


def write(folder: Path, task: str) -> list[str]:
    """The files of one task; what stands in them can be learnt."""
    signs = ["pos" if (i + i // 6) % 2 else "neg" for i in range(24)]
    texts = [
        f"the {NOUNS[i % 6]} is {'very ' * (i // 6 % 3)}{'good' if sign == 'pos' else 'bad'}"
        for i, sign in enumerate(signs)
    ]
    if task == "translation":
        files = {"a.aa": texts, "a.bb": [" ".join(t.upper().split()[::-1]) for t in texts]}
    elif task in ("classify", "condition"):
        rows = zip(texts, signs, strict=True)
        files = {"a.tsv": ["text\tlabel", *(f"{t}\t{s}" for t, s in rows)]}
    elif task == "several":
        kinds = [f"{sign},{'long' if i // 6 % 3 else 'short'}" for i, sign in enumerate(signs)]
        rows = zip(texts, kinds, strict=True)
        files = {"a.tsv": ["text\tlabel", *(f"{t}\t{s}" for t, s in rows)]}
    elif task == "tag":
        marked = [
            "".join(f"{w} {'B-N' if w in NOUNS else 'O'}\n" for w in t.split()) for t in texts
        ]
        files = {"a.conll": marked}
    elif task in ("classify vectors", "tag vectors"):
        values = vectors()
        np.save(folder / "x.npy", values)
        if task.startswith("classify"):
            lines = ["up" if v[:, 0].mean() > 0 else "down" for v in values]
        else:
            lines = [" ".join("up" if n > 0 else "down" for n in v[:, 0]) for v in values]
        (folder / "x.txt").write_text("\n".join(lines) + "\n", "utf-8")
        return [str(folder / "x.npy"), str(folder / "x.txt")]
    else:
        files = {"a.txt": texts}
    if task == "condition vectors":
        signed = [[1.0 if sign == "pos" else -1.0, 0.5] for sign in signs]
        np.save(folder / "v.npy", np.array(signed, dtype=np.float32))
    for name, content in files.items():
        (folder / name).write_text("\n".join(content) + "\n", "utf-8")
    return [str(folder / name) for name in files]
