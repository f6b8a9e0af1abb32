"""The service of docs/serving.md, as it is on the page, called as a server calls it."""

import asyncio
import importlib.util
import json
import os
import re
import unittest
import warnings

import melflow
import numpy as np

from service_test import flac_of_silence, noise, wav

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/serving.md")


def posted(app, body):
    """Status, headers and body of the answer."""
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http", "path": "/rows", "raw_path": b"/rows",
             "query_string": b"", "root_path": "", "headers": [(b"host", b"test")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}
    pieces = [body[i:i + 65536] for i in range(0, len(body), 65536)] or [b""]
    messages = iter([{"type": "http.request", "body": piece, "more_body": i + 1 < len(pieces)} for i, piece in enumerate(pieces)])
    sent = []

    async def receive():
        return next(messages, {"type": "http.disconnect"})

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}, b"".join(one.get("body", b"") for one in sent[1:])


def talked(app, messages):
    """What the server sends over a WebSocket on which it gets these messages, and then the client goes."""
    scope = {"type": "websocket", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "ws", "path": "/rows", "raw_path": b"/rows", "query_string": b"",
             "root_path": "", "headers": [(b"host", b"test")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2), "subprotocols": []}
    given = iter([{"type": "websocket.connect"}, *({"type": "websocket.receive", **message} for message in messages)])
    sent = []

    async def receive():
        return next(given, {"type": "websocket.disconnect", "code": 1001})

    async def send(message):
        if message["type"] != "websocket.accept":
            sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent


class ServingPageTest(unittest.TestCase):
    def page(self, what):
        """The names that the page's program with this text has."""
        with open(PAGE, encoding="utf-8") as file:
            blocks = re.findall(r"```python\n(.*?)```", file.read(), re.S)
        code = next(block for block in blocks if what in block)
        self.assertLessEqual(len(code.splitlines()), 32)
        page = {"__name__": "service"}
        exec(compile(code, PAGE, "exec"), page)
        return page

    @unittest.skipUnless(importlib.util.find_spec("fastapi"), "fastapi is not installed")
    def test_the_stream(self):
        page = self.page("@app.websocket")
        samples = (noise(48000) * 20000).astype(np.int16)
        stream = page["first"].another()
        expected = np.concatenate([stream.push(samples), stream.finish()])
        pieces = [samples[i:i + 4001].tobytes() for i in range(0, len(samples), 4001)]
        first, *rest, last = talked(page["app"], [{"bytes": piece} for piece in pieces] + [{"text": "end"}])
        self.assertEqual(json.loads(first["text"]), {"columns": 128, "fingerprint": stream.fingerprint})
        rows = np.frombuffer(b"".join(one["bytes"] for one in rest), np.float32).reshape(-1, 128)
        np.testing.assert_array_equal(rows, expected)
        self.assertGreater(len(rest), 5)
        self.assertEqual((last["type"], last["code"]), ("websocket.close", 1000))
        self.assertEqual(talked(page["app"], [{"bytes": pieces[0]}])[-1]["type"], "websocket.send")  # the client has gone
        self.assertEqual(talked(page["app"], [{"bytes": b"odd"}])[-1]["code"], 1003)

    @unittest.skipUnless(importlib.util.find_spec("fastapi"), "fastapi is not installed")
    def test_the_service(self):
        page = self.page("@app.post")
        samples = noise(32000)
        expected = melflow.features(samples, 16000, preset="whisper", pad_to="30s")
        status, headers, body = posted(page["app"], wav(samples))
        self.assertEqual((status, headers["x-shape"], headers["x-remarks"]), (200, "3000,80", ""))
        self.assertEqual(headers["x-fingerprint"], page["features"].fingerprint)
        np.testing.assert_array_equal(np.frombuffer(body, np.float32).reshape(3000, 80), expected)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            status, headers, _ = posted(page["app"], wav(samples)[:-100])
        self.assertEqual(status, 200)
        self.assertIn("audio: decode: short: the header promises", headers["x-remarks"])
        for body, wanted, why in [(b"abc" * 100, 422, "audio: decode: is not an audio file"), (b"", 422, "empty file"),
                                  (flac_of_silence(3600), 422, "is longer than max_seconds: 30 s"), (bytes(26 << 20), 413, "25 MiB at most")]:
            status, _, said = posted(page["app"], body)
            self.assertEqual(status, wanted, said)
            self.assertIn(why, said.decode())


if __name__ == "__main__":
    unittest.main()
