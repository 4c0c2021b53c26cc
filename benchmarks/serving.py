"""Many clients, right and hostile ones, at one server: are answers lost or swapped, does it grow?

    python benchmarks/serving.py [--clients 64] [--seconds 30] [--warm-up 30]

Small runs of three tasks are trained, served by a process of their own, and asked over keep-alive
connections. A fifth of the requests are hostile: each has the one status that it must get. Every
other answer is compared with what the run itself says. Memory is the server's anonymous resident
memory (RssAnon) from the end of the warm-up on: allocators keep what they once took, so that it
rises with the largest crowd so far and must then stay.
"""

import argparse
import http.client
import itertools
import json
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch

import regard

WORDS = ["the", "a", "film", "plot", "was", "is", "very", "not", "great", "bad", "✓", "naïve", "🦜"]
SIZES = {"width": 32, "batch_tokens": 200, "average": 1, "steps": 20, "evaluate_every": 20}
PREDICT = "/v1/models/{}/predict"
JSON = {"content-type": "application/json"}
HOSTILE: tuple[tuple[str, str, bytes | None, dict[str, str], int], ...] = (
    ("POST", PREDICT.format("classify"), b"[" * 50_000, JSON, 400),
    ("POST", PREDICT.format("classify"), b'{"inputs": "\xff"}', JSON, 400),
    ("POST", PREDICT.format("classify"), b'{"inputs": 1e999}', JSON, 400),
    ("POST", PREDICT.format("tag"), b'{"inputs": [1]}', JSON, 422),
    ("POST", PREDICT.format("tag"), json.dumps({"inputs": "x" * 9000}).encode(), JSON, 422),
    ("POST", PREDICT.format("tag"), b" " * 1_200_000, JSON, 413),
    ("POST", PREDICT.format("tag"), b"inputs=x", {"content-type": "text/plain"}, 415),
    ("POST", PREDICT.format("tag"), b"{}", {**JSON, "origin": "http://evil.example"}, 403),
    ("POST", PREDICT.format("../../etc"), b"{}", JSON, 404),
    ("GET", "/v1/models", None, {"host": "evil.example"}, 421),
    ("GET", "/static/..%2f..%2f..%2fetc%2fpasswd", None, {}, 404),
    ("PATCH", "/v1/models", b"", {}, 405),
)
RUDE = (b"\x16\x03\x01\x00\xff", b"GET / HTTP/1.1\r\nhost: localhost\r\nx: ", b"POST /translate")


@dataclass
class Tally:
    """What one client saw."""

    right: Counter[str] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)
    busy: int = 0
    rude: int = 0
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--warm-up", type=float, default=30.0, help="seconds that do not count")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        runs = {task: train(task, Path(folder)) for task in ("translation", "classify", "tag")}
        texts = [" ".join(some) for some in itertools.product(WORDS, repeat=2)]
        right = {task: expected(run, task, texts) for task, run in runs.items()}
        paths = [str(run.folder.path) for run in runs.values()]
        command = [sys.executable, "-m", "regard", "serve", *paths, "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                url = server.stdout.readline().split()[0]
                load(url, texts, right, chosen.clients, chosen.warm_up)
                memory, over = [anonymous(server.pid)], threading.Event()

                def watch() -> None:
                    while not over.wait(chosen.seconds / 10):
                        memory.append(anonymous(server.pid))

                watcher = threading.Thread(target=watch)
                watcher.start()
                tallies = load(url, texts, right, chosen.clients, chosen.seconds)
                over.set()
                watcher.join()
                counts = get(url, "/metrics").decode()
            finally:
                server.send_signal(signal.SIGTERM)
                code = server.wait(60)
    report(tallies, memory, counts, code, chosen.seconds)


def train(task: str, folder: Path) -> Any:
    """A small run of a task, on a few lines."""
    lines = [
        " ".join(some) for some in itertools.islice(itertools.permutations(WORDS, 4), 0, 40000, 90)
    ]
    files = {
        "translation": {"a.aa": lines, "a.bb": [" ".join(line.split()[::-1]) for line in lines]},
        "classify": {"a.tsv": ["text\tlabel", *(f"{line}\t{'great' in line}" for line in lines)]},
        "tag": {
            "a.conll": [
                "".join(f"{w} {'B-X' if w == 'film' else 'O'}\n" for w in line.split())
                for line in lines
            ]
        },
    }[task]
    data = folder / f"{task}-data"
    data.mkdir()
    for name, content in files.items():
        (data / name).write_text("\n".join(content) + "\n", "utf-8")
    options = SIZES | ({"vocabulary": 400} if task == "translation" else {})
    return regard.train(task, [str(data / name) for name in files], out=folder / task, **options)


def expected(run: Any, task: str, texts: list[str]) -> list[Any]:
    """What each text must be answered with, as far as it is the same to the last digit."""
    found = run.predict(texts)
    if task != "tag":
        return [[one.output] for one in found]
    pairs = [zip(one.details["words"], one.details["tags"], strict=True) for one in found]
    return [[word for word, tag in some if tag != "O"] for some in pairs]


def seen(task: str, answer: Any) -> list[str]:
    """The same of an answer."""
    if task == "tag":
        return [word for one in answer for word in one["word"].split()]
    return [one["translation_text" if task == "translation" else "label"] for one in answer]


def load(
    url: str, texts: list[str], right: dict[str, Any], clients: int, seconds: float
) -> list[Tally]:
    """Ask with so many clients for so long."""
    tallies = [Tally() for _ in range(clients)]
    end = time.monotonic() + seconds
    threads = [
        threading.Thread(target=client, args=(url, me, texts, right, tally, end))
        for me, tally in enumerate(tallies)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tallies


def client(
    url: str, me: int, texts: list[str], right: dict[str, Any], tally: Tally, end: float
) -> None:
    """One client: right requests, hostile ones, and connections broken off."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    tasks = list(right)
    for turn in itertools.count():
        if time.monotonic() > end:
            break
        try:
            if (me + turn) % 25 == 0:
                with socket.create_connection((place.hostname, place.port), timeout=60) as plug:
                    plug.sendall(RUDE[(me + turn) // 25 % len(RUDE)])
                tally.rude += 1
            elif (me + turn) % 5 == 0:
                method, path, body, headers, status = HOSTILE[(me * 5 + turn // 5) % len(HOSTILE)]
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                answer.read()
                tally.refused[answer.status] += 1
                if answer.status != status:
                    tally.wrong.append(f"{method} {path}: {answer.status}, expected {status}")
            else:
                ask(
                    connection,
                    tasks[(me + turn) % len(tasks)],
                    me * 31 + turn * 7,
                    texts,
                    right,
                    tally,
                )
        except (OSError, http.client.HTTPException) as error:
            # a server may hang up on a body that it refused before its end
            large = isinstance(error, BrokenPipeError | ConnectionResetError)
            if not (large and (me + turn) % 5 == 0):
                tally.wrong.append(f"lost: {type(error).__name__}")
            else:
                tally.refused[413] += 1
            connection.close()
    connection.close()


def ask(
    connection: http.client.HTTPConnection,
    task: str,
    first: int,
    texts: list[str],
    right: dict[str, Any],
    tally: Tally,
) -> None:
    """A right request of one text or several."""
    numbers = [(first + i) % len(texts) for i in range(1 + first % 3)]
    inputs = [texts[n] for n in numbers]
    began = time.monotonic()
    connection.request("POST", PREDICT.format(task), json.dumps({"inputs": inputs}), JSON)
    answer = connection.getresponse()
    found = json.loads(answer.read())
    tally.slowest = max(tally.slowest, time.monotonic() - began)
    if answer.status == 429:
        tally.busy += 1
    elif answer.status != 200:
        tally.wrong.append(f"{task}: {answer.status}")
    else:
        lists = found if task == "tag" else [[one] for one in found]
        if [seen(task, one) for one in lists] != [right[task][n] for n in numbers]:
            tally.wrong.append(f"{task}: swapped or changed")
        tally.right[task] += 1


def get(url: str, path: str) -> bytes:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    connection.request("GET", path)
    found = connection.getresponse().read()
    connection.close()
    return found


def anonymous(process: int) -> float:
    """Anonymous resident memory of a process, in MB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("RssAnon"))


def report(
    tallies: list[Tally], memory: list[float], counts: str, code: int, seconds: float
) -> None:
    right = sum((one.right for one in tallies), Counter())
    refused = sum((one.refused for one in tallies), Counter())
    wrong = Counter(line for one in tallies for line in one.wrong)
    total = sum(right.values())
    print(f"{len(tallies)} clients, {seconds:g} s")
    print(f"right answers      {total} ({total / seconds:.0f}/s): {dict(right)}")
    print(f"hostile, refused   {sum(refused.values())}: {dict(sorted(refused.items()))}")
    print(f"broken off         {sum(one.rude for one in tallies)}")
    print(f"sent away (429)    {sum(one.busy for one in tallies)}")
    print(f"lost or swapped    {sum(wrong.values())} {dict(wrong) or ''}")
    print(f"slowest answer     {max(one.slowest for one in tallies):.2f} s")
    print(f"memory (RssAnon)   {' '.join(f'{one:.1f}' for one in memory)} MB, from start to end")
    print(f"exit code          {code}")
    for line in counts.splitlines():
        if line.startswith(("regard_errors", "regard_model_texts", "regard_model_batches")):
            print(f"  {line}")
    if wrong or code != 0:
        sys.exit(1)


if __name__ == "__main__":
    main()
