"""Load test of a server: are responses lost or swapped, does its memory grow?

    python benchmarks/serving.py [--clients 200] [--seconds 600] [--warm-up 60]

Small runs of four tasks are trained and served by a process of their own; many clients use it at
once. Of five clients, three send requests over keep-alive connections: a fifth of these are
invalid, and each must get its status; every other response is compared with the run's own
prediction. The fourth client is idle: it opens connections, sends nothing or a part of a request,
and waits. The fifth is hostile: it sends bodies that do not end, hides requests in bodies, hangs
up on long completions, opens event streams, does not read its responses. Idle and hostile clients
have addresses of their own (127.0.0.2, 127.0.0.3), as other machines would.

Memory is the server's resident memory (VmRSS, and RssAnon without mapped files) after the warm-up:
allocators keep what they once took, so it rises with the largest load so far and must then stay
constant. The time of a response depends on what else the machine does; the processor time of the
server does not.
"""

import argparse
import http.client
import itertools
import json
import os
import shutil
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
PERCENTILES = (50, 90, 99, 99.9, 100)
PREDICT = "/v1/models/{}/predict"
JSON = {"content-type": "application/json"}
INVALID: tuple[tuple[str, str, bytes | None, dict[str, str], int], ...] = (
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
BROKEN = (b"\x16\x03\x01\x00\xff", b"GET / HTTP/1.1\r\nhost: localhost\r\nx: ", b"POST /translate")
POST = "POST {} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
COMPLETION = {"model": "language", "prompt": "the film", "max_tokens": 900, "n": 4}
HOSTILE: tuple[bytes, ...] = (
    # a body that never ends, and one whose end two programs would see at different places
    POST.format(PREDICT.format("tag")).encode() + b"content-length: 900000\r\n\r\n" + b" " * 70_000,
    POST.format(PREDICT.format("tag")).encode()
    + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\n",
    # a long computation, whose client hangs up
    POST.format("/v1/completions").encode()
    + b"content-length: %d\r\n\r\n%s"
    % (len(json.dumps(COMPLETION)), json.dumps(COMPLETION).encode()),
    b"GET /v1/runs/language/events HTTP/1.1\r\nhost: localhost\r\n\r\n",
    # responses that are not read
    b"GET /page/onefile.html HTTP/1.1\r\nhost: localhost\r\n\r\n" * 50,
)
IDLE_ADDRESS, HOSTILE_ADDRESS = "127.0.0.2", "127.0.0.3"
MAX_IDLE = 3.0
"""Seconds after which a client no longer uses an idle connection."""
IDLE_CONNECTIONS = 20
"""Connections that one idle client holds."""


@dataclass
class ClientResults:
    """What one client received."""

    correct: Counter[str] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)
    too_many: int = 0
    broken_off: int = 0
    idle: int = 0
    hostile: int = 0
    errors: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """The time of each response."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument(
        "--warm-up", type=float, default=60.0, help="seconds before the measurement"
    )
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        runs = {
            task: train(task, Path(folder))
            for task in ("translation", "classify", "tag", "language")
        }
        texts = [" ".join(some) for some in itertools.product(WORDS, repeat=2)]
        expected = {
            task: expected_answers(run, task, texts)
            for task, run in runs.items()
            if task != "language"  # which is only there to be attacked
        }
        shutil.rmtree(runs["language"].folder.state)  # as in training: its event streams stay open
        paths = [str(run.folder.path) for run in runs.values()]
        command = [sys.executable, "-m", "regard", "serve", *paths, "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                url = server.stdout.readline().split()[0]
                load(url, texts, expected, chosen.clients, chosen.warm_up)
                memory, over = [resident_memory(server.pid)], threading.Event()

                def watch() -> None:
                    while not over.wait(chosen.seconds / 10):
                        memory.append(resident_memory(server.pid))

                watcher = threading.Thread(target=watch)
                watcher.start()
                before = processor_seconds(server.pid)
                results = load(url, texts, expected, chosen.clients, chosen.seconds)
                used = processor_seconds(server.pid) - before
                over.set()
                watcher.join()
                memory.append(resident_memory(server.pid))
                metrics = get(url, "/metrics").decode()
            finally:
                server.send_signal(signal.SIGTERM)
                code = server.wait(60)
    report(results, memory, metrics, code, chosen.seconds, used)


def train(task: str, folder: Path) -> Any:
    """A small run of a task, on a few lines."""
    lines = [
        " ".join(some) for some in itertools.islice(itertools.permutations(WORDS, 4), 0, 40000, 90)
    ]
    files = {
        "translation": {"a.aa": lines, "a.bb": [" ".join(line.split()[::-1]) for line in lines]},
        "language": {"a.txt": lines},
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
    options = SIZES | ({"vocabulary": 400} if task in ("translation", "language") else {})
    return regard.train(task, [str(data / name) for name in files], out=folder / task, **options)


def expected_answers(run: Any, task: str, texts: list[str]) -> list[Any]:
    """The part of each prediction that must be the same in a response."""
    predictions = run.predict(texts)
    if task != "tag":
        return [[prediction.output] for prediction in predictions]
    pairs = [zip(one.details["words"], one.details["tags"], strict=True) for one in predictions]
    return [[word for word, tag in sentence if tag != "O"] for sentence in pairs]


def received_answers(task: str, items: Any) -> list[str]:
    """The same part of a response."""
    if task == "tag":
        return [word for item in items for word in item["word"].split()]
    return [item["translation_text" if task == "translation" else "label"] for item in items]


def load(
    url: str, texts: list[str], expected: dict[str, Any], clients: int, seconds: float
) -> list[ClientResults]:
    """Send requests from many clients at once."""
    results = [ClientResults() for _ in range(clients)]
    end = time.monotonic() + seconds
    threads = []
    for number, result in enumerate(results):
        if number % 5 == 3:
            thread = threading.Thread(target=idle_client, args=(url, result, end))
        elif number % 5 == 4:
            thread = threading.Thread(target=hostile_client, args=(url, number, result, end))
        else:
            arguments = (url, number, texts, expected, result, end)
            thread = threading.Thread(target=client, args=arguments)
        threads.append(thread)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def client(
    url: str,
    number: int,
    texts: list[str],
    expected: dict[str, Any],
    result: ClientResults,
    end: float,
) -> None:
    """One client: valid requests, invalid ones, and connections that are broken off."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    tasks, last = list(expected), time.monotonic()
    for turn in itertools.count():
        if time.monotonic() > end:
            break
        if time.monotonic() - last > MAX_IDLE:  # the server closes it after 5 s, perhaps just now
            connection.close()
        last = time.monotonic()
        try:
            if (number + turn) % 25 == 0:
                with socket.create_connection((address.hostname, address.port), timeout=60) as plug:
                    plug.sendall(BROKEN[(number + turn) // 25 % len(BROKEN)])
                result.broken_off += 1
            elif (number + turn) % 5 == 0:
                method, path, body, headers, status = INVALID[
                    (number * 5 + turn // 5) % len(INVALID)
                ]
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                response.read()
                result.refused[response.status] += 1
                if response.status != status:
                    result.errors.append(f"{method} {path}: {response.status}, expected {status}")
            else:
                ask(
                    connection,
                    tasks[(number + turn) % len(tasks)],
                    number * 31 + turn * 7,
                    texts,
                    expected,
                    result,
                )
        except (OSError, http.client.HTTPException) as error:
            # a server may close the connection before a body that it refuses is complete
            closed = isinstance(error, BrokenPipeError | ConnectionResetError)
            if not (closed and (number + turn) % 5 == 0):
                result.errors.append(f"lost: {type(error).__name__}")
            else:
                result.refused[413] += 1
            connection.close()
    connection.close()


def idle_client(url: str, result: ClientResults, end: float) -> None:
    """Holds connections without a request, and replaces those that the server closes."""
    plugs: list[socket.socket] = []
    while time.monotonic() < end:
        try:
            plugs.append(connect(url, IDLE_ADDRESS))
            plugs[-1].sendall((b"", b"GET / HT")[result.idle % 2])
            result.idle += 1
        except OSError as error:
            result.errors.append(f"idle: {type(error).__name__}")
        if len(plugs) > IDLE_CONNECTIONS:
            plugs.pop(0).close()
        time.sleep(0.2)
    for plug in plugs:
        plug.close()


def hostile_client(url: str, number: int, result: ClientResults, end: float) -> None:
    """Attacks, one after the other; the server may answer, refuse or close the connection."""
    for turn in itertools.count(number):
        if time.monotonic() > end:
            break
        try:
            with connect(url, HOSTILE_ADDRESS) as plug:
                plug.settimeout(5)
                plug.sendall(HOSTILE[turn % len(HOSTILE)])
                time.sleep(0.5)
                answer = plug.recv(16)
            if answer and (not answer.startswith(b"HTTP/1.1 ") or answer[9:12] == b"500"):
                result.errors.append(f"hostile: {answer!r}")
        except (ConnectionError, TimeoutError):
            pass
        result.hostile += 1


def connect(url: str, source: str) -> socket.socket:
    address = urlsplit(url)
    return socket.create_connection(
        (address.hostname or "", address.port or 80), timeout=60, source_address=(source, 0)
    )


def ask(
    connection: http.client.HTTPConnection,
    task: str,
    first: int,
    texts: list[str],
    expected: dict[str, Any],
    result: ClientResults,
) -> None:
    """A valid request of one text or several."""
    numbers = [(first + i) % len(texts) for i in range(1 + first % 3)]
    inputs = [texts[n] for n in numbers]
    began = time.monotonic()
    connection.request("POST", PREDICT.format(task), json.dumps({"inputs": inputs}), JSON)
    response = connection.getresponse()
    body = json.loads(response.read())
    result.seconds.append(time.monotonic() - began)
    if response.status == 429:
        result.too_many += 1
    elif response.status != 200:
        result.errors.append(f"{task}: {response.status}")
    else:
        lists = body if task == "tag" else [[item] for item in body]
        if [received_answers(task, items) for items in lists] != [
            expected[task][n] for n in numbers
        ]:
            result.errors.append(f"{task}: swapped or changed")
        result.correct[task] += 1


def get(url: str, path: str) -> bytes:
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    connection.request("GET", path)
    content = connection.getresponse().read()
    connection.close()
    return content


def resident_memory(process: int) -> tuple[float, float]:
    """Resident memory of a process in MB: all of it, and the anonymous part."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith("kB")}
    return int(sizes["VmRSS"]) * 1024 / 1e6, int(sizes["RssAnon"]) * 1024 / 1e6


def processor_seconds(process: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report(
    results: list[ClientResults],
    memory: list[tuple[float, float]],
    metrics: str,
    code: int,
    seconds: float,
    used: float,
) -> None:
    correct = sum((result.correct for result in results), Counter())
    refused = sum((result.refused for result in results), Counter())
    errors = Counter(error for result in results for error in result.errors)
    total = sum(correct.values())
    print(f"{len(results)} clients, {seconds:g} s")
    print(f"correct responses  {total} ({total / seconds:.0f}/s): {dict(correct)}")
    print(f"invalid, refused   {sum(refused.values())}: {dict(sorted(refused.items()))}")
    print(f"broken off         {sum(result.broken_off for result in results)}")
    print(f"too many (429)     {sum(result.too_many for result in results)}")
    print(f"lost or swapped    {sum(errors.values())} {dict(errors) or ''}")
    print(f"idle connections   {sum(result.idle for result in results)}")
    print(f"attacks            {sum(result.hostile for result in results)}")
    times = sorted(time for result in results for time in result.seconds)
    percentiles = ((p, times[min(len(times) - 1, int(p / 100 * len(times)))]) for p in PERCENTILES)
    print(f"response time      {', '.join(f'{p} %: {time:.2f} s' for p, time in percentiles)}")
    print(
        f"processor time     {used:.0f} s of the server, {1000 * used / total:.1f} ms per response"
    )
    for name, sizes in zip(("VmRSS", "RssAnon"), zip(*memory, strict=True), strict=True):
        shown_sizes = " ".join(f"{size:.1f}" for size in sizes)
        print(f"memory ({name})".ljust(18), f"{shown_sizes} MB, from start to end")
    print(f"exit code          {code}")
    shown = ("regard_errors_total", "regard_model_texts_total", "regard_model_batches_total")
    shown += ("regard_model_abandoned_total", "regard_event_streams")
    for line in metrics.splitlines():
        if line.startswith(shown):
            print(f"  {line}")
    if errors or code != 0:
        sys.exit(1)


if __name__ == "__main__":
    main()
