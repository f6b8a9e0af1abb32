"""The recipes of docs/python.md for corpora of other packages, and object stores against a server on this machine."""

import base64
import contextlib
import functools
import http.server
import importlib.util
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import unittest
import unittest.mock

import h5py
import melflow
import melflow.stores
import numpy as np

import items_test

CLIENTS = "libcurl", "aiohttp"
DOCS = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "python.md")


def has(*packages):
    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    return unittest.skipIf(missing, f"{', '.join(missing)}: not installed")


def recipe(name):
    """The function of that name in the docs."""
    with open(DOCS, encoding="utf-8") as file:
        blocks = re.findall(r"```python\n(.*?)```", file.read(), re.S)
    scope = {}
    exec(next(block for block in blocks if f"\ndef {name}(" in block), scope)
    return scope[name]


class RecipesTest(items_test.Corpus):
    rows_of, assertSame = items_test.ItemsTest.rows_of, items_test.ItemsTest.assertSame

    def assertTexts(self, rows, name, expected):
        with h5py.File(rows.file) as file:
            self.assertEqual(list(file["columns"][name].asstr()[:]), expected)

    @has("datasets", "pyarrow")
    def test_datasets(self):
        import pyarrow
        import pyarrow.parquet

        folder = os.path.join(self.folder.name, "hub")
        os.makedirs(folder)
        audio = [{"bytes": self.bytes_of(n), "path": n} for n in self.whole]
        pyarrow.parquet.write_table(pyarrow.table({"audio": audio, "word": [n[:3] for n in self.whole]}),
                                    os.path.join(folder, "train-00000-of-00001.parquet"))
        rows, _ = self.rows_of(lambda: recipe("minds")(folder), columns=["word"])
        self.assertEqual(list(rows.path), [f"{i:06}" for i in range(len(self.whole))])
        of = {path: i for i, path in enumerate(self.expected.path)}
        for i, n in enumerate(self.whole):
            np.testing.assert_array_equal(rows.recording(i), self.expected.recording(of[n]))
        self.assertTexts(rows, "word", [n[:3] for n in self.whole])

    @has("pyarrow")
    def test_parquet(self):
        import pyarrow
        import pyarrow.parquet

        path = os.path.join(self.folder.name, "clips.parquet")
        pyarrow.parquet.write_table(pyarrow.table({"path": self.whole, "audio": [self.bytes_of(n) for n in self.whole],
                                                   "text": [n.upper() for n in self.whole]}), path, row_group_size=7)
        rows, _ = self.rows_of(lambda: recipe("parquet")(path), columns=["text"])
        self.assertSame(rows, self.whole)
        self.assertTexts(rows, "text", [n.upper() for n in self.whole])

    @has("lhotse", "soundfile")
    def test_lhotse(self):
        import lhotse

        path = os.path.join(self.folder.name, "cuts.jsonl")
        cuts = []
        for n in self.whole:
            recording = lhotse.Recording.from_file(os.path.join(self.root, n), recording_id=n)
            cut = recording.to_cut()
            cut.id = n
            cut.supervisions = [lhotse.SupervisionSegment(n, n, 0, recording.duration, text=n.upper(), speaker=n[:3])]
            cuts.append(cut)
        lhotse.CutSet.from_cuts(cuts).to_file(path)
        rows, _ = self.rows_of(lambda: recipe("cuts")(path), columns=["text", "speaker"])
        self.assertSame(rows, self.whole)
        self.assertTexts(rows, "speaker", [n[:3] for n in self.whole])

    @has("fsspec")
    def test_fsspec(self):
        import fsspec

        memory = fsspec.filesystem("memory")
        for n in self.whole:
            memory.pipe(f"/clips/{n.replace('.wav', '.flac')}", self.bytes_of(n))
        rows, report = self.rows_of(lambda: recipe("store")("memory://clips"))
        self.assertEqual(report["files"]["ok"], len(self.whole))


@has("moto", "s3fs", "flask")
class StoreTest(items_test.Corpus):
    """A server of S3 on this machine, with a fault at each request in turn."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import boto3
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server

        server = DomainDispatcherApplication(create_backend_app)
        cls.requests, cls.fault, cls.lock = [], lambda number, path: None, threading.Lock()

        def application(environ, start):
            with cls.lock:
                number = len(cls.requests)
                cls.requests.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")
            fault = cls.fault(number, environ["PATH_INFO"])
            if fault is None:
                return server(environ, start)
            if isinstance(fault, int):
                start(f"{fault} fault", [("Content-Length", "0")])
                return [b""]
            sent = {}

            def keep(status, headers, *rest):
                sent.update(status=status, headers=headers)
                return lambda data: None

            body = b"".join(server(environ, keep))
            return fault(sent["status"], sent["headers"], body, start)

        class Quiet(WSGIRequestHandler):
            def log_request(self, *args):
                pass

        cls.server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.shutdown)
        cls.url = f"http://127.0.0.1:{cls.server.port}"
        settings = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret-of-tests", "AWS_DEFAULT_REGION": "us-east-1",
                    "AWS_ENDPOINT_URL": cls.url, "AWS_RETRY_MODE": "standard", "AWS_MAX_ATTEMPTS": "1"}
        before = dict(os.environ)
        os.environ.update(settings)
        cls.addClassCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        cls.s3 = boto3.client("s3", endpoint_url=cls.url)
        cls.s3.create_bucket(Bucket="clips")

    def setUp(self):
        super().setUp()
        type(self).fault = lambda number, path: None
        for n in self.names:
            self.s3.put_object(Bucket="clips", Key=f"all/{n}", Body=self.bytes_of(n))
        self.requests.clear()

    def read(self, name="store", **options):
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        return self.written(name, melflow.Graph().file_list(root="s3://clips/all", labels="top_dir", **options))

    def test_the_rows_are_those_of_the_files(self):
        rows, _ = self.read()
        self.assertEqual(list(rows.path), list(self.expected.path))
        np.testing.assert_array_equal(rows[:], self.expected[:])
        self.assertEqual(list(rows.label), list(self.expected.label))
        with open(rows.file, "rb") as file:
            self.assertNotIn(b"secret-of-tests", file.read())

    def test_the_empty_objects_of_folders_are_no_recordings(self):
        for key in ("all/", "all/bee/", "all/nothing/"):  # as consoles make them
            self.s3.put_object(Bucket="clips", Key=key, Body=b"")
            self.addCleanup(self.s3.delete_object, Bucket="clips", Key=key)
        rows, _ = self.read()
        self.assertEqual(list(rows.path), list(self.expected.path))

    def test_patterns(self):
        rows, _ = self.read(include=["bee/*.wav"])
        self.assertEqual(list(rows.path), [p for p in self.expected.path if p.startswith("bee/")])
        with self.assertRaisesRegex(melflow.RunError, r"there is no recording \(there are .*\.wav\)"):
            self.read(include=["**/*.flac"])

    def test_a_fault_at_every_request(self):
        def short(status, headers, body, start):  # says less than there is
            half = body[: len(body) // 2]
            start(status, [h for h in headers if h[0].lower() != "content-length"] + [("Content-Length", str(len(half)))])
            return [half]

        def cut(status, headers, body, start):  # ends before what it says
            start(status, headers)
            return [body[: len(body) // 2]]

        self.read()
        count = len(self.requests)
        self.assertGreater(count, len(self.names))
        for fault in (500, 503, short, cut):
            for at in range(0, count, 1 if os.environ.get("MELFLOW_EVERY_FAULT") else 17):
                with self.subTest(getattr(fault, "__name__", fault), at=at):
                    self.requests.clear()
                    type(self).fault = lambda number, path: fault if number == at else None
                    rows, _ = self.read()
                    self.assertEqual(list(rows.path), list(self.expected.path))
                    np.testing.assert_array_equal(rows[:], self.expected[:])

    def test_objects_that_are_gone_changed_or_refused(self):
        gone, refused = self.whole[3], self.whole[5]
        type(self).fault = lambda number, path: {gone: 404, refused: 403}.get(path.partition("all/")[2])
        rows, report = self.read()
        why = self.reasons(rows)
        self.assertRegex(why[gone], "FileNotFoundError")
        self.assertRegex(why[refused], "PermissionError")
        self.assertEqual(report["files"]["ok"], len(self.whole) - 2)

    def test_an_update_reads_what_has_changed(self):
        g = melflow.Graph()
        out = os.path.join(self.folder.name, "updated.h5")
        decoded = g.file_list(root="s3://clips/all").disk_read().decode(truncated="fail")
        decoded.mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20).hdf5_write(path=out)
        g.run()
        self.s3.put_object(Bucket="clips", Key=f"all/{self.whole[4]}", Body=self.bytes_of(self.whole[8]))
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        self.requests.clear()
        g.update()
        read = {r for r in self.requests if r.startswith("GET") and r.endswith(".wav")}
        self.assertIn(f"GET /clips/all/{self.whole[4]}", read)
        self.assertLess(len(read), len(self.names) - len(self.whole) + 3)
        rows = melflow.open(out)
        of = list(rows.path).index
        np.testing.assert_array_equal(rows.recording(of(self.whole[4])), rows.recording(of(self.whole[8])))

    def test_a_store_that_is_not_there(self):
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        with self.assertRaisesRegex(melflow.RunError, "s3://nowhere/x"):
            melflow.Graph().file_list(root="s3://nowhere/x").disk_read().decode().mel(sample_rate=8000).discard().graph.run()
        with self.assertRaisesRegex(melflow.RunError, "Protocol not known|nosuch"):
            melflow.Graph().file_list(root="nosuch://x/y").disk_read().decode().mel(sample_rate=8000).discard().graph.run()


class WebServer(http.server.ThreadingHTTPServer):
    request_queue_size = 64  # connections that are made at once; others would be made a second later

    def handle_error(self, *args):
        pass  # of clients that go away


@has("fsspec", "aiohttp")
class WebTest(items_test.Corpus):
    """A web server on this machine, with a fault at each request in turn; read by libcurl and by aiohttp."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.requests, cls.lock, cls.connections, cls.headers = [], threading.Lock(), 0, None

        class Handler(http.server.SimpleHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                cls.connections += 1
                super().setup()

            def do_GET(self):
                with cls.lock:
                    number = len(cls.requests)
                    cls.requests.append(self.path)
                self.path = re.sub("^http://[^/]*", "", self.path)  # as a proxy
                cls.headers = self.headers
                fault = cls.fault(number, self.path)
                if fault is None:
                    return super().do_GET()
                if fault == "chunked":  # of no known length
                    self.send_response(200)
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    with open(self.translate_path(self.path), "rb") as file:
                        for part in iter(functools.partial(file.read, 1000), b""):
                            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                    self.wfile.write(b"0\r\n\r\n")
                elif fault == "cut":
                    self.send_response(200)
                    self.send_header("Content-Length", "100000")
                    self.end_headers()
                    self.wfile.write(b"RIFF")
                else:
                    status, *place = fault if isinstance(fault, tuple) else (fault,)
                    self.send_response(status)
                    for one in place:
                        self.send_header("Location", one)
                    self.send_header("Content-Length", "4")
                    self.end_headers()
                    self.wfile.write(b"gone")
                self.close_connection = fault == "cut"

            def log_message(self, *args):
                pass

        cls.server = WebServer(("127.0.0.1", 0), functools.partial(Handler, directory=cls.root))
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)

    def setUp(self):
        super().setUp()
        type(self).fault = lambda number, path: None
        self.requests.clear()

    def url(self):
        return f"http://user:secret@127.0.0.1:{self.server.server_port}/"

    def read(self, **options):
        from fsspec.implementations.http import HTTPFileSystem

        HTTPFileSystem.clear_instance_cache()
        return self.written("web", melflow.Graph().file_list(root=self.url(), labels="top_dir"), **options)

    @contextlib.contextmanager
    def by(self, client):
        """Recordings are read by that client."""
        with self.subTest(client), unittest.mock.patch.object(melflow.stores, "is_plain", melflow.stores.is_plain if client == "libcurl" else lambda url: False):
            self.requests.clear()
            yield

    def assertExpected(self, rows):
        self.assertEqual(list(rows.path), list(self.expected.path))
        np.testing.assert_array_equal(rows[:], self.expected[:])

    def test_the_rows_are_those_of_the_files(self):
        for client in CLIENTS:
            with self.by(client):
                type(self).connections = 0
                rows, _ = self.read()
                self.assertExpected(rows)
                self.assertEqual(list(rows.label), list(self.expected.label))
                self.assertLess(self.connections, 40)  # they are kept
                self.assertEqual(self.headers["Authorization"], "Basic dXNlcjpzZWNyZXQ=")  # user:secret
                self.assertRegex(self.headers["User-Agent"], "^melflow/[0-9.]+$" if client == "libcurl" else "aiohttp")

    def test_a_password_may_have_any_character(self):
        user = "user:s@cr/et?#"
        for client in CLIENTS:
            with self.by(client):
                rows, _ = self.written("web", melflow.Graph().file_list(root=self.url().replace("user:secret", user), labels="top_dir"))
                self.assertExpected(rows)
                self.assertEqual(self.headers["Authorization"], "Basic " + base64.b64encode(user.encode()).decode())

    def test_names_and_folders_of_a_server(self):
        for folder in ("a b/empty", "a b/d%"):
            os.makedirs(os.path.join(self.root, folder))
        self.addCleanup(shutil.rmtree, os.path.join(self.root, "a b"))
        shutil.copy(os.path.join(self.root, self.whole[3]), os.path.join(self.root, "a b/d%/caf\u00e9 1.wav"))

        def listed(at, of=self.url()):
            return list(self.written("web", melflow.Graph().file_list(root=of + at))[0].path)

        for client in CLIENTS:
            with self.by(client):
                self.assertEqual(listed("a%20b/"), ["d%/caf\u00e9 1.wav"])
                self.assertEqual(listed("a%20b/d%25/caf%C3%A9%201.wav"), ["caf\u00e9 1.wav"])
                for at, why in (("a%20b/empty/", "there is no recording; check"), ("none/", "FileNotFoundError")):
                    with self.assertRaisesRegex(melflow.RunError, f"^http://127.0.0.1:{self.server.server_port}/{at}: {why}"):
                        listed(at)
                with socket.socket() as closed:
                    closed.bind(("127.0.0.1", 0))
                    nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}/"
                    with self.assertRaisesRegex(melflow.RunError, f"^{nowhere}: ClientConnectorError: .*; tried 5 times"):
                        listed("", nowhere)

    def test_settings_of_fsspec(self):
        import fsspec

        with unittest.mock.patch.dict(fsspec.config.conf, {"http": {"client_kwargs": {"headers": {"X-Key": "abc"}}}}):
            self.assertExpected(self.read()[0])
        self.assertEqual(self.headers["X-Key"], "abc")

    def test_a_fault_at_every_request(self):
        self.read()
        count = len(self.requests)
        self.assertGreater(count, len(self.names))
        for client in CLIENTS:
            with self.by(client):
                for fault in (500, 503, "cut"):
                    for at in range(4, count, 1 if os.environ.get("MELFLOW_EVERY_FAULT") else 17):
                        with self.subTest(fault=fault, at=at):
                            self.requests.clear()
                            type(self).fault = lambda number, path: fault if number == at else None
                            self.assertExpected(self.read()[0])

    def test_files_that_are_gone_or_refused(self):
        status = dict(zip(self.whole[3:24:4], (404, 410, 401, 403, 500, "cut")))
        type(self).fault = lambda number, path: status.get(path.lstrip("/"))
        for client in CLIENTS:
            with self.by(client):
                rows, report = self.read()
                why = self.reasons(rows)
                for name, fault in status.items():
                    is_final = fault in (401, 403, 404, 410)
                    if client == "libcurl":
                        said = "Transferred a partial file" if fault == "cut" else f"the server answers {fault}"
                        self.assertEqual(why[name], f"http://127.0.0.1:{self.server.server_port}/{name}: {said}" +
                                         ("" if is_final else "; tried 5 times"))
                        self.assertEqual(self.requests.count("/" + name), 1 if is_final else 5)
                    elif fault == 404:
                        self.assertRegex(why[name], "FileNotFoundError")
                    elif not is_final:
                        self.assertRegex(why[name], "tried 5 times")
                self.assertNotIn("secret", str(why))
                self.assertEqual(report["files"]["ok"], len(self.whole) - len(status))

    def test_answers_of_no_known_length(self):
        type(self).fault = lambda number, path: "chunked" if path.endswith(".wav") else None
        for whole in ("4MiB", "4KiB"):  # the first bytes are in memory already when a recording turns out to be a large one
            for client in CLIENTS:
                with self.by(client):
                    self.assertExpected(self.read(whole=whole)[0])

    def test_large_recordings(self):
        for client in CLIENTS:
            with self.by(client):
                self.assertExpected(self.read(whole="4KiB")[0])

    def test_no_place_for_large_recordings(self):
        with unittest.mock.patch.dict(os.environ, {"TMPDIR": "/proc"}):
            rows, report = self.read(whole="4KiB")
        large = [n for n in self.whole if len(self.bytes_of(n)) > 4096]
        self.assertGreater(len(large), 0)
        for name in large:
            self.assertRegex(self.reasons(rows)[name], "^cannot be kept in a temporary file: ")
        self.assertEqual(report["files"]["ok"], len(self.whole) - len(large))

    def test_recordings_elsewhere(self):
        moved, circle = self.whole[3], self.whole[5]
        places = {moved: (302, "/" + self.whole[7]), circle: (301, "/" + circle)}
        type(self).fault = lambda number, path: places.get(path.lstrip("/"))
        rows, _ = self.read()
        of = {path: i for i, path in enumerate(rows.path)}
        np.testing.assert_array_equal(rows.recording(of[moved]), rows.recording(of[self.whole[7]]))
        self.assertRegex(self.reasons(rows)[circle], "redirect")

    def test_items_behind_a_proxy(self):
        copied = {"a b.wav": self.whole[3], "\u00e4.wav": self.whole[5]}
        for name, source in copied.items():
            with open(os.path.join(self.root, name), "wb") as file:
                file.write(self.bytes_of(source))
            self.addCleanup(os.remove, os.path.join(self.root, name))
        names = {**copied, self.whole[7]: self.whole[7]}
        items = [{"path": name, "audio": f"http://melflow.invalid/{name}?key=secret#part"} for name in names]
        with unittest.mock.patch.dict(os.environ, {"http_proxy": self.url()}):
            rows, _ = self.written("items", melflow.Graph().items(items))
        of = {path: i for i, path in enumerate(self.expected.path)}
        self.assertEqual(list(rows.path), list(names))
        for i, source in enumerate(names.values()):
            np.testing.assert_array_equal(rows.recording(i), self.expected.recording(of[source]))
        self.assertIn("http://melflow.invalid/a%20b.wav?key=secret", self.requests)
        with self.assertRaisesRegex(melflow.RunError, "http://melflow.invalid/a b.wav: .*; tried 5 times") as caught:
            self.written("items", melflow.Graph().items(items))
        self.assertNotIn("secret", str(caught.exception))

    @unittest.skipIf(shutil.which("openssl") is None, "openssl: not installed")
    def test_certificates(self):
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                               "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"],
                              cwd=self.folder.name, capture_output=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        key, certificate = (os.path.join(self.folder.name, name) for name in ("key.pem", "cert.pem"))
        server = WebServer(("127.0.0.1", 0), self.server.RequestHandlerClass)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        items = [{"path": name, "audio": f"https://localhost:{server.server_port}/{name}"} for name in self.whole[:3]]
        none = {"SSL_CERT_FILE": "", "SSL_CERT_DIR": "", "CURL_CA_BUNDLE": ""}
        for variable in ("SSL_CERT_FILE", "CURL_CA_BUNDLE"):
            with self.subTest(variable), unittest.mock.patch.dict(os.environ, {**none, variable: certificate}):
                _, report = self.written("items", melflow.Graph().items(items))
                self.assertEqual(report["files"]["ok"], 3)
        with unittest.mock.patch.dict(os.environ, none), self.assertRaisesRegex(melflow.RunError, "https://localhost.*certificate"):
            self.written("items", melflow.Graph().items(items))

    def test_a_machine_without_libcurl(self):
        for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
            with open(os.path.join(self.folder.name, name), "wb"):
                pass  # no library
        code = ("import melflow, melflow.stores, sys; asked = []; fetched = melflow.stores.fetched\n"
                "melflow.stores.fetched = lambda url: asked.append(url) or fetched(url)\n"
                "report = melflow.Graph().items([{'audio': sys.argv[1]}]).disk_read().decode().discard().graph.run()\n"
                "print(report['files']['ok'], len(asked))")
        for folder, asked in ((self.folder.name, "1 1"), ("/", "1 0")):
            done = subprocess.run([sys.executable, "-c", code, self.url() + self.whole[3]], capture_output=True, text=True, check=True,
                                  env={**os.environ, "LD_LIBRARY_PATH": folder})
            self.assertEqual(done.stdout.strip(), asked)


if __name__ == "__main__":
    unittest.main()
