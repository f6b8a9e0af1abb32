"""What a configuration may cause, by whose words it is: every cell of the tables in SECURITY.md, by running the program.

One pipeline has all effects: a function, a command of a wav.scp, a plug-in, a model, a URL, a path outside, and a variable for the
URL's password. What it causes is seen by a log that function, command, plug-in and model write to, by a server, and by a file that
is replaced. It comes as the user's own file, as the configuration of an output, and as a job.
"""

import base64
import http.server
import io
import json
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import threading
import unittest

import h5py
import melflow
import numpy as np
import xxhash

import corpus

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = os.path.join(os.path.dirname(melflow.__file__), "lib", "libmelflow.so.0")
PROGRAM = os.environ.get("MELFLOW_PROGRAM") or melflow.program.path()
EFFECTS = ("function", "command", "plug-in", "model", "URL", "path", "variable")
SECRET = "usr:p@ss/w0rd"
# What is said where an effect is refused.
REFUSED = {"function": r"listen\.call: noted:same: .* would run the function", "command": r"kaldi\.commands: allow: .* would run the commands",
           "plug-in": r"loudness\.so: .* would load the plug-in", "model": r"onnx\.(arguments\.)?model: .* would run the model",
           "URL": r"web\.root: probe://127.* would send requests",
           "variable": r"WEB_ROOT_USER: a stored configuration gets no variables of the environment"}
STUBS = {
    "noted.py": """
        import os
        def note(what):
            with open(os.environ["TRUST_LOG"], "a") as log:
                log.write(what + "\\n")
        note("function")
        def same(samples, rate):
            return samples
        """,
    "onnxruntime.py": """
        import noted_model, types, numpy
        SessionOptions = types.SimpleNamespace
        class InferenceSession:
            def __init__(self, path, *_, **__):
                noted_model.note("model")
            def get_inputs(self):
                return [types.SimpleNamespace(type="tensor(float)", name="x", shape=[None])]
            get_outputs = get_inputs
            def run(self, *_):
                return [numpy.zeros((1, 4), numpy.float32)]
        """,
    "noted_model.py": """
        import os
        def note(what):
            with open(os.environ["TRUST_LOG"], "a") as log:
                log.write(what + "\\n")
        """,
    # A store with the scheme probe://, which asks a server of the web.
    "fsspec/__init__.py": """
        import base64, types, urllib.request
        from . import config
        class Store:
            protocol = "probe"
            def get(self, url):
                user, _, place = url.partition("://")[2].rpartition("@")
                request = urllib.request.Request("http://" + place)
                request.add_header("Authorization", "Basic " + base64.b64encode(user.encode()).decode())
                return urllib.request.urlopen(request, timeout=60).read()
            def find(self, folder, detail=True):
                return {folder + "a.wav": {"type": "file", "size": len(self.cat_file(folder + "a.wav"))}}
            def cat_file(self, name):
                return self.get(name)
        core = types.SimpleNamespace(url_to_fs=lambda url, **_: (Store(), url))
        """,
    "fsspec/config.py": "conf = {}\n",
    "plugin.cpp": """
        #include <cstdio>
        #include <cstdlib>
        namespace {
        const struct Noted {
          Noted() {
            if (std::FILE* log = std::fopen(std::getenv("TRUST_LOG"), "a")) {
              std::fputs("plug-in\\n", log);
              std::fclose(log);
            }
          }
        } noted;
        }  // namespace
        """,
}
PIPELINE = """
    version: 1
    memory: {{host: 256MiB}}
    workers: 1
    plugins: [{plugin}]
    graph:
      web:    {{stage: file_list, root: "{root}"}}
      kaldi:  {{stage: file_list, manifest: {folder}/data, commands: allow}}
      read:   {{stage: disk_read, from: [web, kaldi]}}
      decode: {{stage: decode, from: read}}
      loud:   {{stage: loudness, from: decode}}
      listen: {{stage: python, from: loud, call: "noted:same"}}
      onnx:   {{stage: onnx, from: listen, model: {folder}/model.onnx, columns: 4}}
      write:  {{stage: hdf5_write, from: onnx, path: {path}, overwrite: true}}
    tests:
      quiet: {{input: {{root: {folder}/audio}}, expect: {{ok: 2}}}}
    """


def tables():
    """{(input, verb): {effect: cell}} of the tables in SECURITY.md."""
    out, names, of = {}, None, None
    for line in (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().strip("`*") for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            names = None
        elif names is None:
            of, names = cells[0], cells[1:]
        elif not set(line) <= set("|- "):
            out[of, cells[0]] = dict(zip(names, cells[1:]))
    return out


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, root):
        self.users, self.root = [], root

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.server.users.append(base64.b64decode(self.headers.get("Authorization", " ").split()[-1]).decode())
                data = (pathlib.Path(self.server.root) / "a.wav").read_bytes()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)


class ModelFileTrustTest(unittest.TestCase):
    """A model's own file as preset: its author chooses numbers, and nothing else."""

    NEMO = {"feature_extractor_type": "ParakeetFeatureExtractor", "sampling_rate": 8000, "n_fft": 256, "win_length": 200, "hop_length": 80}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        for name in ("audio", "theirs"):
            os.mkdir(self.at(name))

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def program(self, *words, code=0):
        ended = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, text=True, timeout=300,
                               env={**os.environ, "MELFLOW_PYTHON": sys.executable})
        self.assertEqual(ended.returncode, code, ended)
        return ended

    def write(self, name, data):
        pathlib.Path(self.at(name)).parent.mkdir(exist_ok=True)
        pathlib.Path(self.at(name)).write_bytes(data if isinstance(data, bytes) else data.encode())

    def pipeline(self, preset):
        return textwrap.dedent(f"""
            version: 1
            workers: 1
            graph:
              files:  {{stage: file_list, root: audio}}
              read:   {{stage: disk_read, from: files}}
              decode: {{stage: decode, from: read}}
              mel:    {{stage: mel, from: decode, preset: {preset}}}
              write:  {{stage: hdf5_write, from: mel, path: out.h5}}
            """)

    def test_a_job_needs_neither_the_file_nor_trust(self):
        corpus.make_corpus(self.at("audio"), 3)
        self.write("theirs/preprocessor_config.json", json.dumps(self.NEMO))
        self.write("p.yaml", self.pipeline("theirs"))
        self.program("plan", "p.yaml", "-o", "job")
        for folder, _, names in os.walk(self.at("job")):
            for name in names:
                self.assertNotIn(b"theirs", pathlib.Path(folder, name).read_bytes(), name)
        stored = pathlib.Path(self.at("job", "pipeline.yaml")).read_text(encoding="utf-8")
        for text in ("preset: nemo", "sample_rate: 8000", "hop: 80", "ParakeetFeatureExtractor of transformers"):
            self.assertIn(text, stored)
        # A folder of the name that is stored is not meant, and the file is gone.
        os.rename(self.at("theirs"), self.at("nemo"))
        self.write("nemo/preprocessor_config.json", json.dumps({**self.NEMO, "hop_length": 160}))
        self.program("work", "job")
        self.program("merge", "job")
        with h5py.File(self.at("out.h5")) as out:
            self.assertEqual(out.attrs["hop_length"], 80)
            config = out.attrs["config"]
        self.assertNotIn("theirs", config)
        self.program("verify", "out.h5", "--recompute", "100%")
        # Somebody puts a path in.
        config = json.loads(config)
        config["graph"]["mel"] = {"stage": "mel", "from": config["graph"]["mel"]["from"], "preset": "./nemo"}
        with h5py.File(self.at("out.h5"), "r+") as out:
            out.attrs["config"] = json.dumps(config)
        corpus.rehash(self.at("out.h5"))
        ended = self.program("verify", "out.h5", "--recompute", "100%", code=78)
        self.assertIn("mel.preset: ./nemo: this configuration would read the model's file", ended.stderr)

    def test_a_strangers_file_executes_nothing(self):
        mark = self.at("executed")

        class Marks:
            def __reduce__(self):
                return os.mkdir, (mark,)

        code = pickle.dumps(Marks())
        arrays, nemo = io.BytesIO(), io.BytesIO()
        np.savez(arrays, count=np.array(Marks(), object), sum=np.zeros(80), sum_square=np.ones(80))
        fbank = "f: !new:speechbrain.lobes.features.Fbank\n  n_mels: "
        with tarfile.open(fileobj=nemo, mode="w") as tar:
            for name, data in (("model_weights.ckpt", code), ("model_config.yaml", b"preprocessor: !!python/object/apply:os.mkdir ['%s']\n" % mark.encode())):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        cycle = "a: !ref <b>\nb: !ref <c> + 1\nc: !ref <a>\n" + fbank + "!ref <a>\n"
        files = {
            "tags/hyperparams.yaml": fbank + f"!apply:os.mkdir ['{mark}']\n",
            "python/model_config.yaml": f"preprocessor: !!python/object/apply:os.mkdir ['{mark}']\n",
            "attribute/hyperparams.yaml": "n: 3\n" + fbank + "!ref <n>.__class__.__subclasses__()\n",
            "cycle/hyperparams.yaml": cycle,
            "deep/preprocessor_config.json": '{"a": ' + "[" * 100000 + "]" * 100000 + "}",
            "pickle/preprocessor_config.json": code,
            "nemo/model.nemo": nemo.getvalue(),
            "weights/model.nemo": code,
        }
        for name, data in files.items():
            self.write(name, data)
        self.write("long/preprocessor_config.json", b"{")
        os.truncate(self.at("long/preprocessor_config.json"), 100 << 20)
        self.write("arrays/config.yaml", "frontend: default\nfrontend_conf: {fs: 16k}\nnormalize: global_mvn\nnormalize_conf: {stats_file: feats_stats.npz}\n")
        self.write("arrays/feats_stats.npz", arrays.getvalue())
        said = {"tags": "the tag !apply:os.mkdir", "cycle": "refers to itself", "deep": "may be nested 64 deep", "long": "longer than 8 MiB",
                "arrays": "feats_stats.npz"}
        for name in [*files, "long/preprocessor_config.json", "arrays"]:
            with self.subTest(name):
                preset = name if name.endswith(".nemo") else name.split("/", maxsplit=1)[0]
                self.write("p.yaml", self.pipeline("./" + preset))
                ended = self.program("validate", "p.yaml", code=78)
                self.assertIn(said.get(preset, "melflow: "), ended.stderr)
                self.assertLess(len(ended.stderr), 4000)
                with self.assertRaises(melflow.ConfigError):
                    melflow.Features(preset=self.at(preset))
                self.assertFalse(os.path.exists(mark))


@unittest.skipUnless(shutil.which("c++"), "there is no compiler")
class TrustTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = os.path.realpath(folder.name)
        for name in ("audio", "data", "victim", "here"):
            os.mkdir(cls.at(name))
        for name, text in STUBS.items():
            pathlib.Path(cls.at(name)).parent.mkdir(exist_ok=True)
            pathlib.Path(cls.at(name)).write_text(textwrap.dedent(text), encoding="utf-8")
        corpus.make_corpus(cls.at("audio"), 1)
        shutil.copy(cls.at("audio", "ant", "000.wav"), cls.at("a.wav"))
        pathlib.Path(cls.at("model.onnx")).write_bytes(b"a model")
        pathlib.Path(cls.at("data", "wav.scp")).write_text(f"b echo command >> {cls.at('log')}; cat {cls.at('a.wav')} |\n", encoding="utf-8")
        subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", "-DFMT_HEADER_ONLY", "-I", REPOSITORY, "-o", cls.at("loudness.so"),
                        cls.at("plugin.cpp"), REPOSITORY / "apps" / "own_stage" / "loudness.cpp", LIBRARY], check=True)
        cls.server = Server(cls.folder)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)
        cls.victim = cls.at("victim", "out.h5")
        # The three inputs: the user's own file, an output, and a job.
        cls.write_pipeline(cls.at("here", "own.yaml"), "${WEB_ROOT_USER}@", '"${LOUDNESS}"')
        cls.write_pipeline(cls.at("plain.yaml"), SECRET + "@", cls.at("loudness.so"))
        ended = cls.program("run", cls.at("plain.yaml"))
        assert ended.returncode == 0, ended
        os.rename(cls.victim, cls.at("here", "output.h5"))
        cls.program("plan", cls.at("plain.yaml"), "-o", cls.at("here", "job"))
        os.mkdir(cls.at("here", "before"))
        for name in ("output.h5", "job"):
            cls.copy(cls.at("here", name), cls.at("here", "before", name))
        cls.cells = tables()

    @classmethod
    def at(cls, *names):
        return os.path.join(cls.folder, *names)

    @staticmethod
    def copy(what, to):
        shutil.rmtree(to, ignore_errors=True)
        (shutil.copytree if os.path.isdir(what) else shutil.copy2)(what, to)

    @classmethod
    def write_pipeline(cls, path, user, plugin):
        root = f"probe://{user}127.0.0.1:{cls.server.server_port}/clips/"
        text = PIPELINE.format(folder=cls.folder, plugin=plugin, root=root, path=cls.victim)
        pathlib.Path(path).write_text(textwrap.dedent(text), encoding="utf-8")

    @classmethod
    def program(cls, *words, **variables):
        environment = {**os.environ, "TRUST_LOG": cls.at("log"), "PYTHONPATH": cls.folder, "MELFLOW_PYTHON": sys.executable,
                       "LOUDNESS": cls.at("loudness.so"), **variables}
        words = [PROGRAM, *words] if words[0] != "python" else [sys.executable, *words[1:]]
        return subprocess.run(words, cwd=cls.at("here"), env=environment, capture_output=True, text=True, timeout=300)

    def caused(self, *words):
        """What a command has caused, and how it ended."""
        for name in ("output.h5", "job"):
            self.copy(self.at("here", "before", name), self.at("here", name))
        if "repair" in words:
            with h5py.File(self.at("here", "output.h5"), "r+") as file:
                rows = file[file.attrs["rows"]]
                rows[:] = rows[:] + 1
        if "merge" in words:
            self.assertEqual(self.program("work", "job", "--trust", WEB_ROOT_USER=SECRET).returncode, 0)
        pathlib.Path(self.victim).write_bytes(b"the victim's")
        if "update" in words:  # would refuse what is no output
            os.remove(self.victim)
        pathlib.Path(self.at("log")).write_text("", encoding="utf-8")
        self.server.users.clear()
        ended = self.program(*words, WEB_ROOT_USER=SECRET)
        out = set(pathlib.Path(self.at("log")).read_text(encoding="utf-8").split())
        if self.server.users:
            out.add("URL")
        if SECRET in self.server.users or ("own.yaml" in words and "plug-in" in out):
            out.add("variable")
        if os.path.exists(self.victim) and pathlib.Path(self.victim).read_bytes() != b"the victim's":
            out.add("path")
        return out, ended

    def walk(self, of, words):
        """Compares what each command causes with the row of SECURITY.md. `words`: the words of each verb."""
        rows = {verb: row for (table, verb), row in self.cells.items() if table == of}
        self.assertEqual(sorted(rows), sorted(words), f"the rows of '{of}'")
        for verb, row in rows.items():
            with self.subTest(of=of, verb=verb):
                self.assertEqual(tuple(row), EFFECTS)
                needs = {effect for effect, cell in row.items() if cell == "trust"}
                seen, ended = self.caused(*words[verb])
                self.assertEqual(seen, {effect for effect, cell in row.items() if cell == "yes"}, ended)
                if not needs:
                    self.assertIn(ended.returncode, (0, 1, 4), ended)
                    continue
                self.assertEqual(ended.returncode, 78, ended)
                for effect, said in REFUSED.items():  # also what a dry run would not come to
                    self.assertRegex(ended.stderr, said, effect)
                seen, ended = self.caused(*words[verb], "--trust")
                self.assertEqual(seen, {effect for effect, cell in row.items() if cell in ("yes", "trust")}, ended)
                self.assertEqual(ended.returncode, 0, ended)

    def test_own_pipelines(self):
        own = ("own.yaml", "--workers", "1")
        self.walk("own pipeline", {
            "run": ("run", *own), "update": ("update", *own), "plan": ("plan", *own, "-o", self.at("here", "planned")),
            "validate": ("validate", *own), "graph": ("graph", *own), "compare": ("compare", "own.yaml", "own.yaml"),
            "test": ("test", "own.yaml"), "explain": ("explain", *own), "sweep": ("sweep", *own, "--vary", "workers=1", "--repeat", "1"),
            "tune": ("tune", *own, "--budget", "1s")})

    def test_outputs(self):
        words = {"inspect": ("inspect", "output.h5"), "show": ("show", "output.h5", "-o", self.at("here", "picture.svg")),
                 "compare": ("compare", "output.h5", "output.h5"), "export": ("export", "output.h5", self.at("here", "exported"), "--format", "tar"),
                 "verify": ("verify", "output.h5"), "verify --recompute": ("verify", "output.h5", "--recompute", "100%"),
                 "repair": ("repair", "output.h5"), "repair --dry-run": ("repair", "output.h5", "--dry-run"),
                 "melflow.open": ("python", "-c", "import melflow; melflow.open('output.h5')[:]")}
        self.walk("output", words)

    def test_jobs(self):
        self.walk("job", {"status": ("status", "job"), "work": ("work", "job"), "merge": ("merge", "job"),
                          "merge --dry-run": ("merge", "job", "--dry-run")})

    def test_a_variable_is_given_but_a_url_is_not_asked(self):
        for verb in (("verify", "output.h5", "--recompute", "100%"), ("repair", "output.h5"), ("work", "job"), ("merge", "job")):
            with self.subTest(verb):
                seen, ended = self.caused(*verb, "--var", "WEB_ROOT_USER=" + SECRET)
                self.assertEqual((seen, ended.returncode), (set(), 78), ended)
                self.assertNotRegex(ended.stderr, REFUSED["variable"])
                self.assertRegex(ended.stderr, REFUSED["URL"])
                self.assertNotIn("ss/w", ended.stderr)

    def test_an_output_has_no_secrets(self):
        parts = [SECRET, "ss/w0rd", base64.b64encode(SECRET.encode()).decode(), "p%40ss"]
        report, out = self.at("here", "report.html"), []
        ended = self.program("run", self.at("plain.yaml"), "-v", "--json", "--report", report)
        self.assertEqual(ended.returncode, 0, ended)
        out += [ended.stdout, ended.stderr]
        for words in (("validate", self.at("plain.yaml"), "--json"), ("graph", self.at("plain.yaml")), ("inspect", "output.h5", "--json"),
                      ("compare", "output.h5", self.at("plain.yaml")), ("run", self.at("plain.yaml"), "--set", "web.include=none.wav"),
                      ("run", self.at("plain.yaml"), "--set", "write.path=https://usr:p@ss/w0rd@host/x.h5")):
            ended = self.program(*words)
            out += [ended.stdout, ended.stderr]
        files = [report, self.victim, *(os.path.join(folder, name) for folder, _, names in os.walk(self.at("here", "before")) for name in names)]
        out += [pathlib.Path(file).read_bytes().decode("latin1") for file in files]
        for text in out:
            for part in parts:
                self.assertNotIn(part, text)
        self.assertIn("${WEB_ROOT_USER}@127.0.0.1", pathlib.Path(self.at("here", "before", "job", "pipeline.yaml")).read_text(encoding="utf-8"))
        self.assertIn("${WEB_ROOT_USER}@127.0.0.1", out[0])

    def test_another_password_makes_the_same_output(self):
        before = pathlib.Path(self.at("here", "before", "output.h5")).read_bytes()
        ended = self.program("run", self.at("here", "own.yaml"), WEB_ROOT_USER="another:one")
        self.assertEqual((ended.returncode, pathlib.Path(self.victim).read_bytes() == before), (0, True), ended)
        ended = self.program("update", self.at("here", "own.yaml"), "--dry-run", WEB_ROOT_USER="a:third")
        self.assertIn("2 files as before, 0 to compute", ended.stdout, ended)


class StoredTest(unittest.TestCase):
    """Outputs and jobs of a corpus of files."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        for name in ("here", "victim", "audio"):
            os.mkdir(self.at(name))
        corpus.make_corpus(self.at("audio"), 2)

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def program(self, *words, code=0):
        ended = subprocess.run([PROGRAM, *words], cwd=self.at("here"), capture_output=True, text=True, timeout=300)
        self.assertEqual(ended.returncode, code, ended)
        return ended.stdout + ended.stderr

    def pipeline(self, path, root="../audio", files="", write="stage: hdf5_write"):
        text = f"""
            version: 1
            graph:
              files: {{stage: file_list, root: "{root}"{files}}}
              read: {{stage: disk_read, from: files}}
              decode: {{stage: decode, from: read}}
              mel: {{stage: mel, from: decode, sample_rate: 8000, n_fft: 256, n_mels: 20}}
              write: {{{write}, from: mel, path: "{path}", overwrite: true}}
            """
        pathlib.Path(self.at("here", "p.yaml")).write_text(textwrap.dedent(text), encoding="utf-8")

    def job(self, path, job="job", works=True, **options):
        self.pipeline(path, **options)
        shutil.rmtree(self.at("here", job), ignore_errors=True)
        os.mkdir(self.at("here", job))
        self.program("plan", "p.yaml", "-o", job)
        if works:
            self.program("work", job, "-q")

    @staticmethod
    def write_checked(path, whole):
        """A file of a job with its hash, which has no key."""
        whole = {name: value for name, value in whole.items() if name != "check"}
        check = xxhash.xxh3_64_hexdigest(json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode())
        pathlib.Path(path).write_text(json.dumps({**whole, "check": check}), encoding="utf-8")

    def victim(self):
        """The names and bytes of the folder `victim`."""
        return {path.name: path.read_bytes() for path in pathlib.Path(self.at("victim")).iterdir()}

    def tries_to_change_the_victim(self, *words):
        """Runs a command that may fail in words of its own, but changes nothing in the folder `victim`. Gives how it ended."""
        before = self.victim()
        ended = subprocess.run([PROGRAM, *words], cwd=self.at("here"), capture_output=True, text=True, timeout=300)
        self.assertEqual(self.victim(), before, ended)
        self.assertIn(ended.returncode, (0, 1), ended)
        self.assertNotRegex(ended.stdout + ended.stderr, "exception|type_error|parse_error|std::|basic_string", ended)
        return ended

    def change_job(self, old, new):
        """Changes the job's pipeline, and the hashes that say so, as anybody can."""
        pipeline, plan = (pathlib.Path(self.at("here", "job", name)) for name in ("pipeline.yaml", "job.json"))
        text = pipeline.read_text(encoding="utf-8")
        self.assertIn(old, text)
        pipeline.write_text(text.replace(old, new), encoding="utf-8")
        whole = json.loads(plan.read_text(encoding="utf-8"))
        self.write_checked(plan, {**whole, "pipeline": xxhash.xxh3_128_hexdigest(pipeline.read_bytes())})

    def test_a_job_does_not_say_where_merge_writes(self):
        victim = self.at("victim", "out.h5")
        os.symlink(self.at("victim"), self.at("here", "link"))
        for path in (victim, "../victim/out.h5", "link/out.h5"):
            with self.subTest(path):
                self.job(path)
                pathlib.Path(victim).write_bytes(b"the victim's")
                for words in ((), ("--dry-run",)):
                    said = self.program("merge", "job", *words, code=1)
                    self.assertIn(f"write.path: {victim} is neither below the current folder nor below that of the job", said)
                self.assertEqual(os.listdir(self.at("victim")), ["out.h5"])
                self.assertEqual(pathlib.Path(victim).read_bytes(), b"the victim's")
                self.program("merge", "job", "-q", "-o", "mine.h5")
                self.assertEqual(pathlib.Path(victim).read_bytes(), b"the victim's")
                self.program("merge", "job", "-q", "--trust")
                self.assertNotEqual(pathlib.Path(victim).read_bytes(), b"the victim's")
        for path, job in (("out.h5", "job"), (self.at("job", "out.h5"), "../job")):
            with self.subTest(path):
                self.job(path, job)
                self.program("merge", job, "-q")

    def test_a_job_has_no_other_output(self):
        for stage in ("audio_write", "tap"):
            with self.subTest(stage):
                self.job("out.h5")
                for record in pathlib.Path(self.at("here", "job", "done")).iterdir():
                    record.unlink()
                self.change_job("  write:", f"  more: {{stage: {stage}, from: decode, path: {self.at('victim')}}}\n  write:")
                for words in (("work", "job"), ("work", "job", "--trust"), ("merge", "job")):
                    self.assertIn("its pipeline has another output than rows by write: more", self.program(*words, code=1))
                self.assertEqual(os.listdir(self.at("victim")), [])

    def test_the_output_of_a_job_has_rows(self):
        self.job("out.h5", works=False)
        self.change_job('stage: hdf5_write, from: mel, path: "out.h5", overwrite: true', "stage: tap, from: mel, path: out")
        for words in (("work", "job", "--trust"), ("merge", "job", "--trust")):
            self.assertIn("its pipeline has another output than rows by write: write (tap)", self.program(*words, code=1))

    def test_a_job_has_no_links(self):
        self.job("out.h5")
        os.rename(self.at("here", "job", "parts"), self.at("victim", "parts"))
        os.symlink(self.at("victim", "parts"), self.at("here", "job", "parts"))
        for verb in ("status", "work", "merge"):
            self.assertIn("parts: is a link", self.program(verb, "job", code=1))

    def planned_and_victim(self):
        """A job without a part that is done, and an output as the victim's. Returns a function that gives a fresh copy of both."""
        self.job("out.h5")
        part = pathlib.Path(self.at("here", "job", "parts", "0000.h5")).read_bytes()
        self.job("out.h5", works=False)
        os.rename(self.at("here", "job"), self.at("planned"))

        def fresh(**victim):
            for folder in (self.at("here", "job"), self.at("victim")):
                shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(self.at("planned"), self.at("here", "job"))
            os.mkdir(self.at("victim"))
            for name, data in victim.items():
                pathlib.Path(self.at("victim", name.replace("_", "."))).write_bytes(part if data is None else data)
            return pathlib.Path(self.at("here", "job"))

        return fresh

    def test_a_job_does_not_say_where_work_writes(self):
        fresh = self.planned_and_victim()
        outside = "../../../victim/out"
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        for work in (outside, self.at("victim", "out"), "", ".", "a\0b", 5, ["0000"]):
            for of in ("left", "json"):
                for victim in ({}, {"out_h5": b"the victim's", "out_h5_journal": b"its own"}, {"out_h5": None})[:3 if "victim" in str(work) else 1]:
                    with self.subTest(work=work, of=of, victim=sorted(victim)):
                        job = fresh(**victim)
                        self.write_checked(job / "claims" / f"0000.{of}", {"worker": "gone", "work": work})
                        if of == "json":  # of a worker that has ended
                            self.write_checked(job / "workers" / "gone.json", {"number": 1, "machine": "m", "boot": boot})
                            (job / "workers" / "gone.lock").touch()
                        self.tries_to_change_the_victim("work", "job", "--patience", "0.1s")

    def test_a_job_does_not_say_which_worker_has_ended_elsewhere(self):
        """Signs of workers that have ended are removed."""
        fresh = self.planned_and_victim()
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        for worker in ("../../../victim/out", "", 5):
            with self.subTest(worker):
                job = fresh(out_lock=b"")
                self.write_checked(self.at("victim", "out.json"), {"number": 1, "machine": "m", "boot": boot})
                self.write_checked(job / "claims" / "0000.json", {"worker": worker, "work": "0000.gone"})
                self.tries_to_change_the_victim("work", "job", "--patience", "0.1s")
                self.tries_to_change_the_victim("status", "job")

    def test_work_follows_no_links(self):
        fresh = self.planned_and_victim()
        for suffix in ("", ".part", ".journal"):
            for victim in ({}, {"keep_h5": b"the victim's"}, {"keep_h5": None}):
                with self.subTest(suffix=suffix, victim=sorted(victim)):
                    job = fresh(**victim)
                    os.symlink("../../../victim/keep.h5", job / "work" / f"0000.gone.h5{suffix}")
                    self.write_checked(job / "claims" / "0000.left", {"worker": "gone", "work": "0000.gone"})
                    self.tries_to_change_the_victim("work", "job")

    def test_merge_follows_no_links_of_a_job(self):
        split = {"files": ", splits: top_dir", "write": "stage: hdf5_write, split_files: true"}
        for output, link, options in (("x.h5", "x.h5", {}), ("x.h5", "x.ant.h5", split), ("x.npy", "x.npy", {"write": "stage: npy_write"}),
                                      ("x.npy", "x.index.json", {"write": "stage: npy_write"}),
                                      ("x.npy", "x.index.npy", {"write": "stage: npy_write"})):
            for is_there in (False, True):
                with self.subTest(link=link, is_there=is_there):
                    shutil.rmtree(self.at("victim"))
                    os.mkdir(self.at("victim"))
                    victim = pathlib.Path(self.at("victim", "any.txt"))
                    if is_there:
                        victim.write_text("the victim's", encoding="utf-8")
                    self.job(self.at("job", output), "../job", **options)
                    os.symlink("../victim/any.txt", self.at("job", link))
                    ended = self.tries_to_change_the_victim("merge", "../job", "-q")
                    self.assertEqual(ended.returncode, 1, ended)
                    self.assertTrue(os.path.islink(self.at("job", link)))

    def test_a_secret_in_arguments_is_not_said(self):
        own = pathlib.Path(self.at("here", "own.py"))
        own.write_text("def fails(samples, rate, token):\n    if not fails.calls:\n        fails.calls.append(1)\n        raise ValueError('no')\n"
                       "    return samples\nfails.calls = []\n", encoding="utf-8")
        pathlib.Path(self.at("here", "p.yaml")).write_text(textwrap.dedent("""
            version: 1
            graph:
              files: {stage: file_list, root: ../audio}
              read: {stage: disk_read, from: files}
              decode: {stage: decode, from: read}
              own: {stage: python, from: decode, call: "own.py:fails", arguments: {token: "${TOK}"}}
              out: {stage: hdf5_write, from: mel, path: out.h5, overwrite: true}
              mel: {stage: mel, from: own, sample_rate: 8000, n_fft: 256, n_mels: 20}
            """), encoding="utf-8")
        for words in (("run", "p.yaml"), ("run", "p.yaml", "-q"), ("run", "p.yaml", "-v"), ("run", "p.yaml", "--json"), ("update", "p.yaml"),
                      ("plan", "p.yaml", "-o", "job")):
            with self.subTest(words):
                ended = subprocess.run([PROGRAM, *words, "--var", "TOK=Secret1"], cwd=self.at("here"), capture_output=True, text=True, timeout=300,
                                       env={**os.environ, "MELFLOW_PYTHON": sys.executable})
                self.assertIn(ended.returncode, (0, 3), ended)
                self.assertNotIn("Secret1", ended.stdout + ended.stderr)

    def test_a_dollar_is_stored_as_one(self):
        os.rename(self.at("audio"), self.at("a${HOME}$b"))
        self.pipeline("out$$x.h5", "../a$${HOME}$$b", ", labels: '([a-z]+)/[0-9]+.wav$$'")
        self.program("run", "p.yaml", "-q")
        before = pathlib.Path(self.at("here", "out$x.h5")).read_bytes()
        self.assertIn("are the same, bit for bit", self.program("verify", "out$x.h5", "--recompute", "100%"))
        with h5py.File(self.at("here", "out$x.h5"), "r+") as file:
            file["mel"][0] += 1
        self.program("repair", "out$x.h5")
        self.assertEqual(pathlib.Path(self.at("here", "out$x.h5")).read_bytes(), before)
        self.program("plan", "p.yaml", "-o", "job")
        self.program("work", "job", "-q")
        self.program("merge", "job", "-q")
        self.assertEqual(pathlib.Path(self.at("here", "out$x.h5")).read_bytes(), before)


if __name__ == "__main__":
    unittest.main()
