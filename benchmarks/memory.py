"""Memory of a training run on a corpus that is large: the peak of what the process owns.

    python benchmarks/memory.py [--pairs 2000000] [--updates 300]

Makes a corpus of random pairs in a temporary folder, trains a small translator on it in a process
of its own, and reads that process's RssAnon (private memory: mapped files do not count, since the
system takes them back when it needs room) from /proc four times a second.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

WORDS = 50_000
LIMIT = 2.0
"""GiB that the peak must stay below."""


def write_pairs(path: Path, count: int, seed: int = 1) -> None:
    """Pairs of sentences of 4 to 24 words, common words more often; the target is the reverse."""
    random = np.random.default_rng(seed)
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    names = np.array(
        ["".join(syllables[number // 60**i % 60] for i in range(3)) for number in range(WORDS)]
    )
    with path.open("w", encoding="utf-8") as file:
        file.write("source\ttarget\n")
        for begin in range(0, count, 10_000):
            lengths = random.integers(4, 25, min(10_000, count - begin))
            ranks = np.exp(random.uniform(0, np.log(WORDS), int(lengths.sum()))).astype(int) - 1
            for words in np.split(names[ranks], np.cumsum(lengths)[:-1]):
                file.write(f"{' '.join(words)}\t{' '.join(words[::-1])}\n")


def anonymous(process: int) -> float:
    """RssAnon of a process in GiB; 0 if it has ended."""
    try:
        text = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    found = [line.split()[1] for line in text.splitlines() if line.startswith("RssAnon")]
    return int(found[0]) / 2**20 if found else 0.0


def watched(command: list[str], prepared: Path) -> tuple[dict[str, float], dict[str, float], int]:
    """Run a command; the peak of its memory and its seconds, before and after data is prepared."""
    process = subprocess.Popen(command)
    peaks, seconds = {"preparing": 0.0, "training": 0.0}, {"preparing": 0.0, "training": 0.0}
    last = time.monotonic()
    while process.poll() is None:
        phase = "training" if prepared.exists() else "preparing"
        peaks[phase] = max(peaks[phase], anonymous(process.pid))
        time.sleep(0.25)
        now = time.monotonic()
        seconds[phase] += now - last
        last = now
    return peaks, seconds, process.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description="Peak of private memory while training.")
    parser.add_argument("--pairs", type=int, default=2_000_000)
    parser.add_argument("--updates", type=int, default=300)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pairs(folder / "pairs.tsv", chosen.pairs)
        size = (folder / "pairs.tsv").stat().st_size / 2**20
        print(f"{chosen.pairs:,} pairs, {size:,.0f} MiB of text", flush=True)
        options = {"steps": chosen.updates, "evaluate-every": chosen.updates, "width": 64}
        options |= {"vocabulary": 8000, "batch-tokens": 2048}
        command = [sys.executable, "-m", "regard", "train", "translation"]
        command += ["--data", str(folder / "pairs.tsv"), "--out", str(folder / "run")]
        command += [word for key, value in options.items() for word in (f"--{key}", str(value))]
        peaks, seconds, code = watched(command, folder / "run/data/prepared.json")
        corpus = sum(path.stat().st_size for path in (folder / "run/data").glob("*.arrow"))
        print(f"tokenised corpus on disk: {corpus / 2**20:,.0f} MiB")
    for phase, peak in peaks.items():
        print(f"{phase}: peak RssAnon {peak:.2f} GiB in {seconds[phase]:,.0f} s")
    return code or int(max(peaks.values()) >= LIMIT)


if __name__ == "__main__":
    sys.exit(main())
