"""Many clients at once: every request gets its own response."""

import http.client
import itertools
import json
import threading
import time

CLIENTS, SECONDS = 16, 3.0
INVALID = (
    ("POST", "/v1/models/my-classify/predict", b"[" * 5000, 400),
    ("POST", "/v1/models/my-tag/predict", b'{"inputs": 7}', 422),
    ("POST", "/v1/models/none/predict", b"{}", 404),
    ("POST", "/v1/completions", b'{"model": "none", "prompt": ""}', 422),
    ("GET", "/v1/runs/../../etc/passwd", None, 404),
    ("DELETE", "/v1/models", None, 405),
)


def test_no_response_is_lost_or_swapped(server, runs):
    words = ["the", "film", "plot", "was", "very", "not", "great", "bad", "✓", "naïve"]
    texts = [" ".join(pair) for pair in itertools.product(words, words)]
    expected_items = {
        "translation": [[{"translation_text": one}] for one in runs["translation"](texts)],
        "classify": runs["classify"](texts),
        "tag": [one.split() for one in runs["tag"](texts)],
    }
    wrong, counts, end = [], [0] * CLIENTS, time.monotonic() + SECONDS

    def check(task, number, status, items):
        if status != 200:
            return False
        if task == "classify":
            return items[0]["label"] == expected_items[task][number]
        if task == "tag":
            marked = sum(len(one["word"].split()) for one in items)
            return marked == sum(tag != "O" for tag in expected_items[task][number])
        return items == expected_items[task][number]

    def client(client_number):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        for turn in itertools.count():
            if time.monotonic() > end:
                break
            number = (client_number * 31 + turn * 7) % len(texts)
            task = list(expected_items)[(client_number + turn) % len(expected_items)]
            if (client_number + turn) % 5 == 0:
                method, path, body, expected = INVALID[(client_number * 7 + turn) % len(INVALID)]
            else:
                body = json.dumps({"inputs": texts[number]}).encode()
                method, path, expected = "POST", f"/v1/models/my-{task}/predict", 200
            connection.request(method, path, body, {"content-type": "application/json"})
            response = connection.getresponse()
            raw = response.read()
            correct = response.status == expected
            if expected == 200:
                correct = check(task, number, response.status, json.loads(raw))
            if not correct:
                wrong.append((method, path, body, response.status, raw))
            counts[client_number] += 1
        connection.close()

    threads = [
        threading.Thread(target=client, args=(client_number,)) for client_number in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert min(counts) > 0
    assert any(one.worker.counts.largest > 1 for one in server.state.models)
