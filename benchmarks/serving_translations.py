"""Translations served to many clients at once, decoded natively and by PyTorch.

    python benchmarks/serving_translations.py [--clients 64] [--seconds 15]

Each client sends one sentence of the built-in corpus after the other over a connection that stays
open. The server is a process of its own; it shares the machine with the clients, so that its
processor time per response says more than the time of a response.
"""

import argparse
import http.client
import itertools
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

from regard.corpora import make_corpus

SERVER = """
import sys
from regard.models.native import native_library
if sys.argv[1] == "torch":
    native_library._load = lambda: "it is turned off for a comparison"
from regard.cli import main
sys.exit(main(["serve", sys.argv[2], "--port", "0"]))
"""


def main() -> None:
    """Serve a run in both ways and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--run", default="example:transformer")
    options = parser.parse_args()
    pairs = itertools.islice(make_corpus("english_french").valid, 500)
    sentences = [pair.source for pair in pairs]
    print("| decoder | responses/s | 50 % | 99 % | server's processor ms per response |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for decoder in ("torch", "native"):
        command = [sys.executable, "-c", SERVER, decoder, options.run]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                line = next(line for line in server.stdout if "http://" in line)
                url = urlsplit(line[line.index("http://") :].split()[0])
                host, port = str(url.hostname), int(url.port or 80)
                load(host, port, sentences, options.clients, 3.0)
                before = processor_seconds(server.pid)
                taken = load(host, port, sentences, options.clients, options.seconds)
                used = processor_seconds(server.pid) - before
            finally:
                server.terminate()
        parts = statistics.quantiles(taken, n=100)
        print(
            f"| {decoder} | {len(taken) / options.seconds:.0f} | {1000 * parts[49]:.0f} ms | "
            f"{1000 * parts[98]:.0f} ms | {1000 * used / len(taken):.1f} |",
            flush=True,
        )
    print(f"\nLoad of the machine: {os.getloadavg()[0]:.1f}.")


def load(host: str, port: int, sentences: list[str], clients: int, seconds: float) -> list[float]:
    """How long each response took that arrived within so many seconds."""
    taken: list[float] = []
    end = time.monotonic() + seconds

    def run(number: int) -> None:
        connection = http.client.HTTPConnection(host, port, timeout=120)
        for sentence in itertools.islice(itertools.cycle(sentences), number, None):
            began = time.monotonic()
            if began >= end:
                break
            body = json.dumps({"inputs": sentence})
            headers = {"content-type": "application/json"}
            connection.request("POST", f"/v1/models/{name}/predict", body, headers)
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise RuntimeError(f"{response.status}: {answer.decode()[:200]}")
            if time.monotonic() < end:
                taken.append(time.monotonic() - began)
        connection.close()

    connection = http.client.HTTPConnection(host, port, timeout=120)
    connection.request("GET", "/v1/models")
    listed = json.loads(connection.getresponse().read())
    name = listed["data"][0]["id"]
    connection.close()
    threads = [threading.Thread(target=run, args=(7 * number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def processor_seconds(process: int) -> float:
    """Processor time of a process with all its threads."""
    with open(f"/proc/{process}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
