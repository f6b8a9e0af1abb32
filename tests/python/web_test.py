"""What the web may do to a run: limits of size, speed and time, and where it may send it. Read by libcurl and, where it is installed,
by aiohttp."""

import contextlib
import ctypes
import fcntl
import gzip
import http.server
import importlib.util
import io
import itertools
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import urllib.parse
import wave

import melflow
import numpy as np



def has_libcurl():
    try:
        return bool(ctypes.CDLL("libcurl.so.4"))
    except OSError:
        return False


CLIENTS = [*["libcurl"] * has_libcurl(), *["aiohttp"] * all(map(importlib.util.find_spec, ("fsspec", "aiohttp")))]
APART = os.environ.get("MELFLOW_WEB_APART")  # in a network of its own, which has public addresses


def sound(seconds=1):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes((np.random.default_rng(1).standard_normal(int(8000 * seconds)) * 3000).astype(np.int16).tobytes())
    return out.getvalue()


class Server(http.server.ThreadingHTTPServer):
    """Answers /NAME by the function NAME of `answers`."""
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answers, address="127.0.0.1"):
        self.answers, self.asked, self.over = answers, [], threading.Event()
        super().__init__((address, 0), Handler)
        self.url = f"http://{address}:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def end(self):
        self.over.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, *_):
        pass  # of clients that go away


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name = urllib.parse.unquote(self.path.lstrip("/").partition("?")[0])
        self.server.asked.append(name)
        self.close_connection = self.server.answers[name](self) is not True

    def head(self, status, **headers):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), str(value))
        self.end_headers()

    def whole(self, data, status=200, **headers):
        self.head(status, Content_Length=len(data), **headers)
        self.wfile.write(data)
        return True

    def endless(self, status=200, between=0.0, piece=b"\1" * 65536, first=b""):
        self.head(status, Transfer_Encoding="chunked")
        with contextlib.suppress(OSError):
            for data in itertools.chain([first], itertools.repeat(piece)):
                if data:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                if self.server.over.wait(between) if between else self.server.over.is_set():
                    return

    def log_message(self, *_):
        pass


def redirect(to, status=302):
    return lambda handler: handler.whole(b"", status, Location=to)


@unittest.skipUnless(CLIENTS, "neither libcurl nor fsspec and aiohttp are installed")
class WebCase(unittest.TestCase):
    def server(self, answers, address="127.0.0.1"):
        server = Server({"good.wav": lambda handler: handler.whole(sound()), **answers}, address)
        self.addCleanup(server.end)
        return server

    @contextlib.contextmanager
    def by(self, client):
        """Recordings are read by that client."""
        with self.subTest(client), unittest.mock.patch.object(melflow.stores, "is_plain", lambda url: client == "libcurl"):
            yield

    def read(self, urls, **web):
        """Why each of them is not read; "" where it is."""
        g = melflow.Graph(workers=4)
        items = [{"path": f"{i}.wav", "audio": url} for i, url in enumerate([sound(), *urls])]  # the first one is not of the web
        g.items(items, **({"web": web} if web else {})).disk_read(engine="threads").decode().discard()
        report = g.run()
        said = {r["path"]: r["reason"] for r in report["remarks"] if r["status"] == "failed"}
        self.assertEqual(report["files"]["failed"], len(said))
        return [said.get(f"{i + 1}.wav", "") for i in range(len(urls))]

    def check(self, server, names, **web):
        """The names and what is said of them."""
        for client in CLIENTS:
            with self.by(client):
                said = self.read([f"{server.url}/{name}" for name in names], **web)
                for (name, pattern), why in zip(names.items(), said):
                    with self.subTest(name):
                        self.assertRegex(why, f"^{pattern}$" if pattern == "" else pattern)


@unittest.skipIf(APART, "the others run apart")
class WebTest(WebCase):
    def test_what_a_server_packs_is_unpacked(self):
        packed = gzip.compress(sound())
        server = self.server({"packed.wav": lambda handler: handler.whole(packed, Content_Encoding="gzip"),
                              "bomb.wav": lambda handler: handler.whole(gzip.compress(bytes(1 << 22)), Content_Encoding="gzip")})
        self.check(server, {"packed.wav": ""})
        self.check(server, {"bomb.wav": "web.largest"}, largest="1MiB")

    @unittest.skipUnless("aiohttp" in CLIENTS, "folders of the web are listed by fsspec and aiohttp")
    def test_links_of_an_index_page_have_entities(self):
        def page(*links):
            text = "".join(f'<tr><td><a href="{link}">x</a></td></tr>' for link in links).encode()
            return lambda handler: handler.whole(text, Content_Type="text/html;charset=UTF-8")
        server = self.server({"x/": page("a&amp;b.wav", "it&#39;s.wav", "m&amp;n/"), "x/m&n": page("c%26d.wav"),
                              **{name: lambda handler: handler.whole(sound()) for name in ("x/a&b.wav", "x/it's.wav", "x/m&n/c&d.wav")}})
        for client in CLIENTS:
            with self.by(client):
                g = melflow.Graph()
                g.file_list(root=server.url + "/x/").disk_read().decode().discard()
                report = g.run()
                self.assertEqual((report["files"]["found"], report["files"]["ok"]), (3, 3), report["remarks"])

    def test_bodies_without_end(self):
        def large(handler):
            handler.head(200, Content_Length=1 << 40)
            handler.wfile.write(sound())

        server = self.server({"endless.wav": lambda handler: handler.endless(first=sound()), "large.wav": large,
                              "error.wav": lambda handler: handler.endless(404), "odd.wav": lambda handler: handler.endless(304 + 2)})
        self.check(server, {"endless.wav": r"has more .*bytes.*web\.largest", "large.wav": r"has 1099511627776 bytes.* web\.largest",
                            "error.wav": "404|FileNotFoundError"}, largest="1MiB")
        with self.by(CLIENTS[0]):
            self.assertRegex(self.read([server.url + "/odd.wav"])[0], "the server answers 306; tried 5 times")

    def test_servers_that_are_slow(self):
        def silent(handler):
            handler.server.over.wait()

        server = self.server({"silent.wav": silent, "drips.wav": lambda handler: handler.endless(between=0.2, piece=b"ab"),
                              "stops.wav": lambda handler: handler.endless(first=sound(), between=1000)})
        slow = r"less than 1000 bytes a second have come for 1 s \(web\.least_speed, web\.patience\); tried 2 times|Timeout.*; tried 2 times"
        self.check(server, dict.fromkeys(("silent.wav", "drips.wav", "stops.wav"), slow), patience=1, least_speed=1000)
        for name in ("silent.wav", "drips.wav", "stops.wav"):  # of which the server may not have read the last ones yet
            self.assertLessEqual(server.asked.count(name), 2 * len(CLIENTS), name)
        self.check(server, {"drips.wav": r"takes longer than web\.time, 1 s; raise it|Timeout.*"}, time=1, least_speed=1)

    def test_parts_of_other_ranges(self):
        data = sound()
        server = self.server({"part.wav": lambda handler: handler.whole(data[:1000], 206, Content_Range=f"bytes 0-999/{len(data)}"),
                              "behind.wav": lambda handler: handler.whole(data, 206, Content_Range=f"bytes 9-{len(data) + 8}/{len(data) + 9}"),
                              "bare.wav": lambda handler: handler.whole(data, 206),
                              "whole.wav": lambda handler: handler.whole(data, 206, Content_Range=f"bytes 0-{len(data) - 1}/{len(data)}")})
        refused = "the server gives a part .* of what was asked for as a whole"
        self.check(server, {"part.wav": refused, "behind.wav": refused, "bare.wav": refused, "whole.wav": ""})

    def test_servers_that_ask_to_wait(self):
        times = []

        def busy(handler):
            times.append(time.monotonic())
            return handler.whole(b"", 503, Retry_After=1) if len(times) % 2 else handler.whole(sound())

        server = self.server({"busy.wav": busy, "long.wav": lambda handler: handler.whole(b"", 429, Retry_After=3600),
                              "date.wav": lambda handler: handler.whole(b"", 503, Retry_After="Fri, 31 Dec 2100 23:59:59 GMT")})
        self.check(server, {"busy.wav": "", "long.wav": "429.*; the next request, after 3600 s, would be later than web.time, 600 s",
                            "date.wav": "503.*; the next request, after [0-9]+ s, would be later"}, time=600)
        self.assertEqual(server.asked.count("long.wav"), len(CLIENTS))
        for first, second in zip(times[::2], times[1::2]):
            self.assertGreaterEqual(second - first, 1)

    def test_redirects(self):
        data = sound()
        other = self.server({"there.wav": lambda handler: handler.whole(data)})
        secure = self.secure({"down.wav": redirect(other.url + "/there.wav"), "there.wav": lambda handler: handler.whole(data),
                              "relative.wav": redirect("/there.wav", 307)})
        server = self.server({"up.wav": redirect(secure.url + "/there.wav"), "aside.wav": redirect(other.url + "/there.wav", 308),
                              "down.wav": redirect(secure.url + "/down.wav"), "relative.wav": redirect("good.wav", 301),
                              "circle.wav": redirect("/circle.wav"),
                              **{f"to_{scheme}.wav": redirect(f"{scheme}://127.0.0.1/etc/passwd") for scheme in ("file", "ftp", "gopher", "dict")}})
        down = "is redirected from https to http"
        self.check(server, {"up.wav": "", "aside.wav": "", "relative.wav": "", "down.wav": down, "circle.wav": "is redirected too often|TooManyRedirects",
                            **{f"to_{scheme}.wav": "is redirected to what is neither http nor https|NonHttpUrlRedirect"
                               for scheme in ("file", "ftp", "gopher", "dict")}})
        self.assertEqual(other.asked.count("there.wav"), len(CLIENTS))  # of aside.wav
        with self.by(CLIENTS[0]):
            self.assertEqual(self.read([secure.url + "/relative.wav"]), [""])

    def test_redirects_with_a_password(self):
        """It is for the server that it was given for."""
        def asks(handler):
            return handler.whole(sound() if handler.headers["Authorization"] == "Basic dXNlcjpzZWNyZXQ=" else b"", 200)

        seen = []
        other = self.server({"there.wav": lambda handler: seen.append(handler.headers["Authorization"]) or handler.whole(sound())})
        server = self.server({"here.wav": redirect("/asks.wav"), "asks.wav": asks, "away.wav": redirect(other.url + "/there.wav")})
        url = server.url.replace("://", "://user:secret@")
        for client in CLIENTS:
            with self.by(client):
                self.assertEqual(self.read([url + "/here.wav", url + "/away.wav"]), ["", ""])
        self.assertEqual(set(seen), {None})

    def secure(self, answers):
        if not shutil.which("openssl"):
            self.skipTest("there is no openssl to make a certificate")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                               "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"],
                              cwd=folder.name, capture_output=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        key, certificate = (os.path.join(folder.name, name) for name in ("key.pem", "cert.pem"))
        patch = unittest.mock.patch.dict(os.environ, {"SSL_CERT_FILE": certificate, "SSL_CERT_DIR": "", "CURL_CA_BUNDLE": ""})
        patch.start()
        self.addCleanup(patch.stop)
        if "aiohttp" in CLIENTS:  # which has looked for certificates when it was imported
            import aiohttp.connector
            patch = unittest.mock.patch.object(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", ssl.create_default_context(cafile=certificate))
            patch.start()
            self.addCleanup(patch.stop)
        server = self.server(answers)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.url = f"https://localhost:{server.server_port}"
        return server

    def test_the_limits_have_the_same_defaults_everywhere(self):
        stages = {"files": {"stage": "file_list", "root": "http://127.0.0.1:1/", "web": {}}, "read": {"stage": "disk_read", "from": "files"},
                  "out": {"stage": "discard", "from": "read"}}
        web = melflow.validate({"version": 1, "graph": stages})["config"]["graph"]["files"]["web"]
        for limit in ("largest", "least_speed"):
            count, unit = re.fullmatch("([0-9]+)([KMG]?iB|B)?", str(web[limit])).groups()
            web[limit] = int(count) << {"KiB": 10, "MiB": 20, "GiB": 30}.get(unit, 0)
        self.assertEqual(melflow.stores.Limits()._asdict(), web)

    def test_options(self):
        for web, said in (({"largest": 1}, "largest"), ({"patience": 0}, "patience"), ({"time": "soon"}, "time"), ({"speed": 3}, "speed")):
            with self.subTest(**web), self.assertRaisesRegex(melflow.ConfigError, f"web.{said}"):
                self.read(["http://127.0.0.1:1/x.wav"], **web)

    def test_in_a_network_of_its_own(self):
        """Where servers have public addresses, and temporary files a small disk."""
        apart = ["unshare", "-rmn"]
        if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("unshare is not allowed")
        ended = subprocess.run([*apart, sys.executable, "-m", "unittest", "-q", "web_test"], env={**os.environ, "MELFLOW_WEB_APART": "1"},
                               cwd=os.path.dirname(os.path.abspath(__file__)), capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr)


@unittest.skipUnless(APART, "runs apart")
class ApartTest(WebCase):
    PUBLIC, INTERNAL = ("8.8.8.8", "9.9.9.9"), "10.1.2.3"

    @classmethod
    def setUpClass(cls):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as lo:
            for i, address in enumerate(("127.0.0.1", *cls.PUBLIC, cls.INTERNAL)):
                name = (f"lo:{i}" if i else "lo").encode()
                fcntl.ioctl(lo, 0x8916, struct.pack("16sHH4s8x", name, socket.AF_INET, 0, socket.inet_aton(address)))  # SIOCSIFADDR
                fcntl.ioctl(lo, 0x8914, struct.pack("16sH14x", name, 0x1 | 0x40))  # SIOCSIFFLAGS: up, running

    def test_redirects_between_networks(self):
        data = sound()
        there = {"there.wav": lambda handler: handler.whole(data)}
        loop, internal, other = self.server(there), self.server(there, self.INTERNAL), self.server(there, self.PUBLIC[1])
        away = {"loop.wav": redirect(loop.url + "/there.wav"), "internal.wav": redirect(internal.url + "/there.wav"),
                "name.wav": redirect(loop.url.replace("127.0.0.1", "localhost") + "/there.wav"),
                "number.wav": redirect(loop.url.replace("127.0.0.1", "2130706433") + "/there.wav"),
                "other.wav": redirect(other.url + "/there.wav")}
        public = self.server({**away, "twice.wav": redirect(other.url + "/loop.wav")}, self.PUBLIC[0])
        other.answers.update(away)
        private = self.server({**away, "out.wav": redirect(public.url + "/loop.wav")}, self.INTERNAL)
        refused = dict.fromkeys(("loop.wav", "internal.wav", "name.wav", "number.wav"), "is redirected from a public to a private address")
        self.check(public, {**refused, "twice.wav": refused["loop.wav"], "other.wav": ""})
        self.assertEqual((loop.asked, internal.asked), ([], []))
        del away["number.wav"]  # which aiohttp refuses
        self.check(private, {**dict.fromkeys(away, ""), "out.wav": refused["loop.wav"]})
        # A connection that is kept is used again.
        with self.by(CLIENTS[0]):
            self.assertEqual(self.read([loop.url + "/there.wav"] * 3 + [public.url + "/other.wav"] * 3), [""] * 6)
            self.assertRegex(self.read([loop.url + "/there.wav", public.url + "/loop.wav"])[1], refused["loop.wav"])

    def test_redirects_behind_a_proxy(self):
        proxy = self.server({"http:": None}, self.INTERNAL)

        def answer(handler):
            if "/away" in handler.path:
                return handler.whole(b"", 302, Location=re.sub("^.*to=", "", handler.path))
            return handler.whole(sound())

        proxy.answers = type("Any", (), {"__getitem__": lambda self, name: answer})()
        with unittest.mock.patch.dict(os.environ, {"http_proxy": proxy.url}), self.by(CLIENTS[0]):
            begin = "http://8.8.8.8/away.wav?to="
            said = self.read(["http://9.9.9.9/a.wav", begin + "http://9.9.9.9/b.wav", begin + "http://127.0.0.1:9/c.wav", begin + "http://localhost/d.wav"])
        self.assertEqual(said[:2], ["", ""])
        for why in said[2:]:
            self.assertRegex(why, "is redirected from a public to a private address")

    def test_the_disk_of_temporary_files(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], check=True)
            server = self.server({"endless.wav": lambda handler: handler.endless(first=sound()),
                                  "large.wav": lambda handler: handler.whole(bytes(40 << 20)),
                                  "fits.wav": lambda handler: handler.whole(sound(600))})
            with unittest.mock.patch.dict(os.environ, {"TMPDIR": folder}), self.by(CLIENTS[0]):
                said = [self.read([f"{server.url}/{name}.wav"])[0] for name in ("endless", "large", "fits")]
            for why in said[:2]:
                self.assertRegex(why, "takes more than is left free on the disk of temporary files .*; set TMPDIR to a folder with room")
            self.assertEqual(said[2], "")
            subprocess.run(["umount", folder], check=True)


if __name__ == "__main__":
    unittest.main()
