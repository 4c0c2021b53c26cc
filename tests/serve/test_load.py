"""Many clients at once: every answer is there, and is that of its own question."""

import http.client
import itertools
import json
import threading
import time

CLIENTS, SECONDS = 16, 3.0
HOSTILE = (
    ("POST", "/v1/models/my-classify/predict", b"[" * 5000, 400),
    ("POST", "/v1/models/my-tag/predict", b'{"inputs": 7}', 422),
    ("POST", "/v1/models/none/predict", b"{}", 404),
    ("POST", "/v1/completions", b'{"model": "none", "prompt": ""}', 422),
    ("GET", "/v1/runs/../../etc/passwd", None, 404),
    ("DELETE", "/v1/models", None, 405),
)


def test_no_answer_is_lost_or_swapped(server, runs):
    words = ["the", "film", "plot", "was", "very", "not", "great", "bad", "✓", "naïve"]
    texts = [" ".join(pair) for pair in itertools.product(words, words)]
    right = {
        "translation": [[{"translation_text": one}] for one in runs["translation"](texts)],
        "classify": runs["classify"](texts),
        "tag": [one.split() for one in runs["tag"](texts)],
    }
    wrong, counts, end = [], [0] * CLIENTS, time.monotonic() + SECONDS

    def check(task, number, status, found):
        if status != 200:
            return False
        if task == "classify":
            return found[0]["label"] == right[task][number]
        if task == "tag":
            marked = sum(len(one["word"].split()) for one in found)
            return marked == sum(tag != "O" for tag in right[task][number])
        return found == right[task][number]

    def client(me):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        for turn in itertools.count():
            if time.monotonic() > end:
                break
            number = (me * 31 + turn * 7) % len(texts)
            task = list(right)[(me + turn) % len(right)]
            if (me + turn) % 5 == 0:
                method, path, body, expected = HOSTILE[(me * 7 + turn) % len(HOSTILE)]
            else:
                body = json.dumps({"inputs": texts[number]}).encode()
                method, path, expected = "POST", f"/v1/models/my-{task}/predict", 200
            connection.request(method, path, body, {"content-type": "application/json"})
            answer = connection.getresponse()
            raw = answer.read()
            fine = answer.status == expected
            if expected == 200:
                fine = check(task, number, answer.status, json.loads(raw))
            if not fine:
                wrong.append((method, path, body, answer.status, raw))
            counts[me] += 1
        connection.close()

    threads = [threading.Thread(target=client, args=(me,)) for me in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert min(counts) > 0
    assert any(one.worker.count.largest > 1 for one in server.desk.shelf.served.values())
