"""melflow verify-parity: the shipped golden vectors, altered ones, and stand-ins for the libraries of Python."""

import copy
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
import wave

import melflow
import numpy as np
from melflow import parity

STARTED = os.path.join(os.path.dirname(sys.executable), "melflow")
with open(os.path.join(os.path.dirname(melflow.__file__), "presets.json"), encoding="utf-8") as vectors:
    STORED = json.load(vectors)
PRESETS = [*STORED["tolerances"], "deltas"]
# Of the libraries' stand-ins, which get what parity_reference.py would.
READ = """
    import array, json, math, os, sys
    request = json.load(open(sys.argv[2]))
    o, outputs = request["options"], []
    def frames_of(one):
        return max(0, 1 + (os.path.getsize(one["samples"]) // 4 - o["win_length"]) // o["hop"])
    def write(one, rows, columns):
        array.array("f", rows).tofile(open(one["rows"], "wb"))
        outputs.append(dict(frames=len(rows) // columns, columns=columns))
"""
ANSWER = """
    json.dump(dict(library="stand-in", version="1", function="f", outputs=outputs, unknown=os.environ.get("UNKNOWN", "").split()), open(sys.argv[3], "w"))
"""
# For silence Kaldi returns only its floor, so a stand-in knows the right result.
FLOOR = READ + """
    json.dump(dict(reference=request["reference"], changed=request["changed"], inputs=len(request["inputs"]), options=o), open("asked.json", "w"))
    floor = math.log(2.0 ** -23)
    for one in request["inputs"]:
        n = frames_of(one) * o["n_mels"]
        if "OWN" not in os.environ:
            write(one, [floor] * n, o["n_mels"])
            continue
        write(one, [floor, floor, floor + 0.5] + [floor] * (n - 3), o["n_mels"])
        array.array("f", [float(os.environ["OWN"])] * n).tofile(open(one["own_errors"], "wb"))
        outputs[-1]["has_own_errors"] = True
""" + ANSWER
ZEROS = READ + """
    assert request["reference"] == "kaldi-native-fbank" and o["preemphasis"] == 0.97
    for one in request["inputs"]:
        write(one, [0.0] * (frames_of(one) * 23), 23)
""" + ANSWER
# Of silence every value of Whisper is (log10(1e-10) + 4) / 4.
WHISPER = """
    import array, json, os, sys
    request = json.load(open(sys.argv[2]))
    json.dump(request, open("asked.json", "w"))
    outputs, more = [], int(os.environ.get("MORE", "0"))
    for one in request["inputs"]:
        rows = [-1.5] * (float(request["keys"].get("chunk_length", 30)) == 1 and 8000 or 240000)
        rows[7] += float(os.environ.get("OTHER", "0"))
        array.array("f", rows + [0.0] * (80 * more)).tofile(open(one["rows"], "wb"))
        outputs.append(dict(frames=len(rows) // 80 + more, columns=80, masked=int(os.environ.get("MASKED", "0"))))
""" + ANSWER
TRANSFORMERS = os.environ.get("MELFLOW_TRANSFORMERS_PYTHON", sys.executable)  # which has it, with torch
KALDI_8 = {"sample_rate": 8000, "n_fft": 256, "win_length": 200, "hop": 80, "n_mels": 20}
BEGIN = """
    version: 1
    graph:
      files: {stage: file_list, root: "${DATA}"}
      read: {stage: disk_read, from: files}
      decode: {stage: decode, from: read}
      segment: {stage: segment, from: decode}
      batch: {stage: batch, from: segment}
      mel: {stage: mel, from: batch, preset: kaldi, sample_rate: 8000, n_fft: 256, win_length: 200, hop: 80, n_mels: 20}
      write: {stage: hdf5_write, from: mel, path: "${OUT}"}
"""


def sets(options):
    return [word for option in options for word in ("--set", f"mel.{option}")]


def some(*names):
    """Vectors with these cases alone."""
    out = {**STORED, "signals": STORED["signals"][:1], "cases": [one for one in STORED["cases"] if one["name"] in names], "deltas": []}
    return copy.deepcopy(out)


class ParityTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(textwrap.dedent(text))
        return self.path(name)

    def script(self, name, text):
        os.chmod(self.file(name, text), 0o700)
        return self.path(name)

    def library(self, text):
        """A Python that runs this instead of the library."""
        self.file("stand_in.py", text)
        return self.script("python", f"#!/bin/sh\nexec {sys.executable} {self.path('stand_in.py')} \"$@\"\n")

    def sound(self, name, rate, samples):
        with wave.open(self.path(name), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(rate)
            out.writeframes(np.asarray(samples, "<i2").tobytes())

    def verify(self, *words, code=0, **variables):
        """Runs the program; gives what it printed and what it said beside that."""
        ended = subprocess.run([STARTED, "verify-parity", *words], capture_output=True, cwd=self.folder, env={**os.environ, **variables})
        out, said = (text.decode(errors="surrogateescape") for text in (ended.stdout, ended.stderr))
        self.assertEqual(ended.returncode, code, out + said)
        return out, said

    def compared(self, document=STORED, **words):
        """The vectors, without the program: the exit status and what is printed."""
        path = ""
        if document is not STORED:
            path = self.file("v.json", json.dumps(document))
        given = {"vectors": path, "presets": [], "all": False, "json": False, "instruction_set": "any", "python": "", "files": [],
                 "in_double": ["librosa", "whisper", "whisper_large_v3"], **words}
        code, printed, _ = parity.of_verb(json.dumps(given))
        return code, printed

    # ---- golden vectors

    def test_every_shipped_vector_passes_with_a_line_for_each_preset(self):
        out, said = self.verify()
        self.assertEqual(said, "")
        for preset in ("preset", *PRESETS):
            self.assertRegex(out, rf"(?m)^{preset} ")
        self.assertNotIn("FAILED", out)
        self.assertRegex(out, rf"^melflow {melflow.__version__} \(cpu, \w+\)\n\npreset ")

    def test_the_json_document_has_every_case_and_presets_can_be_chosen(self):
        every = json.loads(self.compared(json=True)[1])
        self.assertEqual([*every], ["melflow_version", "backend", "instruction_set", "passed", "presets", "cases"])
        self.assertIs(every["passed"], True)
        self.assertEqual([one["name"] for one in every["presets"]], PRESETS)
        self.assertEqual(len(every["cases"]), len(STORED["cases"]) + len(STORED["deltas"]))
        for one in every["cases"]:
            self.assertIs(one["passed"], True, one)
            self.assertLessEqual(0 if one["worst"] is None else one["worst"]["share"], 1, one)
        two = json.loads(self.verify("--json", "--preset", "nemo", "--preset", "ast")[0])
        self.assertEqual([one["name"] for one in two["presets"]], ["nemo", "ast"])
        self.assertEqual(two["presets"][0]["tolerance"]["atol"], 1e-3)
        out, _ = self.verify("--all", "--preset", "torchaudio")
        self.assertIn("\ntorchaudio amplitude, voice ", out)
        self.assertIn("omitted: RuntimeError: ", out)
        self.assertEqual(self.verify("--preset", "whisperr", code=1)[1],
                         "melflow: there are no golden vectors of a preset 'whisperr'. Did you mean 'whisper'?\n")

    def test_an_altered_vector_fails_with_its_row_and_column(self):
        def value(row, column, other):
            return lambda one: one["rows"][row]["values"].__setitem__(column, other(one["rows"][row]["values"][column]))

        for name, alter, message in (
                ("hifigan, voice", value(0, 7, lambda v: v + 1e-3), "frame 0, column 7: "),
                ("kaldi mfcc, voice", value(0, 12, lambda v: 99.0), "frame 0, column 12: "),
                ("whisper, noise", lambda one: one.update(frames=31), "30 x 80 values (frames x columns) here, 31 x 80 by "),
                ("librosa magnitudes, voice", lambda one: one["options"].update(window="hamming"), "frame "),
                ("librosa, noise", lambda one: one.update(samples=6614), "its signal has 6615 samples here, must have 6614"),
                ("kaldi, short", lambda one: one.update(frames=1), "mel: shorter than one frame: 150 samples of 400; 1 x 23 by ")):
            with self.subTest(name):
                document = some(name, "ast, voice")
                alter(next(one for one in document["cases"] if one["name"] == name))
                code, out = self.compared(document)
                self.assertEqual(code, 1)
                self.assertIn("FAILED\n", out)
                self.assertEqual(out.count("\nfailed:\n"), 1)
                failures = out[out.index("\nfailed:\n"):].splitlines()[2:]
                self.assertEqual([line[:len(name) + len(message) + 4] for line in failures], [f"  {name}: {message}"])
                self.assertIs(json.loads(self.compared(document, json=True)[1])["passed"], False)

    def test_altered_derivatives_fail(self):
        document = {**some("ast, voice"), "deltas": copy.deepcopy(STORED["deltas"])}
        document["deltas"][3]["output"][2][1] += 2e-4
        code, out = self.compared(document, presets=["deltas"])
        self.assertEqual(code, 1)
        self.assertIn(f"\nfailed:\n  {document['deltas'][3]['name']}: frame 2, column 1: ", out)
        self.assertEqual(self.compared({**document, "deltas": STORED["deltas"]}, presets=["deltas"])[0], 0)

    def test_a_linear_value_far_below_its_frames_peak_is_held_to_more_than_the_peak(self):
        document = some("librosa, voice")
        values = document["cases"][0]["rows"][2]["values"]
        column = next(c for c, v in enumerate(values) if v < 1e-4 * max(values))
        values[column] *= 1.001  # 1e-7 of the peak
        code, out = self.compared(document)
        self.assertEqual(code, 1)
        self.assertIn(f", column {column}: ", out)
        self.assertIn(" here in double, ", out)

    def test_vectors_that_cannot_be_used_are_refused_with_file_and_place(self):
        case = "cases[0] 'librosa, voice': "
        first = lambda all: all["cases"][0]  # noqa: E731
        for message, alter in (
                ("signals[0]: the checksum of 'voice' at 8000 Hz is 1813870650 here, the vectors were made with 1: the signals differ, so nothing can be "
                 "compared", lambda all: all["signals"][0].update(fnv1a=1)),
                ("signals[0]: there is no signal 'song' at 8000 Hz; the signals, from 1000 Hz on, are voice, noise, silence, impulse, full_scale, dc, short, "
                 "one", lambda all: all["signals"][0].update(signal="song")),
                (case + "'frames' is missing", lambda all: first(all).pop("frames")),
                (case + "'sample_rate' is \"fast\", which is not a value for it", lambda all: first(all).update(sample_rate="fast")),
                (case + "rows[0]: has 127 values, must have 128", lambda all: first(all)["rows"][0]["values"].pop()),
                (case + "rows[0]: 'values' is [[]], which is not a value for it", lambda all: first(all)["rows"][0].update(values=[[]])),
                (case + "rows[0]: 'values' is [\"a\"], which is not a value for it", lambda all: first(all)["rows"][0].update(values=["a"])),
                (case + "rows[0]: frame 33 is not among its 33", lambda all: first(all)["rows"][0].update(frame=33)),
                (case + "options.n_mel: unknown option. Did you mean 'n_mels'?", lambda all: first(all)["options"].update(n_mel=3)),
                (case + "options.n_mels: 0 is out of range; allowed: 1 to 65536", lambda all: first(all)["options"].update(n_mels=0)),
                ("cases[0]: 'name' is 1, which is not a value for it", lambda all: first(all).update(name=1)),
                ("cases[0]: is not an object", lambda all: all["cases"].__setitem__(0, 1)),
                (case + "'tolerances' has no preset 'librosa'", lambda all: all.update(tolerances={})),
                ("'tolerances' is missing", lambda all: all.pop("tolerances")),
                ("has no cases", lambda all: all.update(cases=[]))):
            with self.subTest(message):
                document = some("librosa, voice")
                alter(document)
                with self.assertRaises(melflow.RunError) as caught:
                    self.compared(document)
                self.assertEqual(str(caught.exception), f"{self.path('v.json')}: {message}")

    def test_what_is_no_file_of_vectors_is_refused(self):
        for name, text, message in (
                ("none.json", None, "cannot be read: No such file or directory"),
                ("cut.json", json.dumps(STORED)[:1000], "this is not a JSON document, or is damaged"),
                ("list.json", "[]", "this is not a JSON document, or is damaged"),
                ("nan.json", '{"signals": NaN}', "this is not a JSON document, or is damaged"),
                ("deep.json", "[" * 100000, "this is not a JSON document, or is damaged"),
                ("", None, "this is a folder, not a file")):
            if text is not None:
                self.file(name, text)
            with self.subTest(name), self.assertRaises(melflow.RunError) as caught:
                parity.parity_vectors.read(self.path(name))
            self.assertEqual(str(caught.exception), f"{self.path(name)}: {message}")

    # ---- by the libraries

    def test_every_frame_of_every_file_is_compared_with_the_answer(self):
        python = self.library(ZEROS)
        tone = np.sin(np.arange(16000) / 9) * 9000
        self.sound("a.wav", 16000, tone[:8000])
        self.sound("b.wav", 8000, tone[:4000])
        odd = os.fsdecode(b"\xffb\n.wav")
        self.sound(odd, 16000, tone[:8000])
        self.file("c.wav", "no sound")
        words = ["--reference", "kaldi-native-fbank", "--python", python, "a.wav", "b.wav", "c.wav", "none.wav", odd]
        out, said = self.verify(*words, code=1)
        self.assertEqual(said, "")
        self.assertTrue(out.startswith("the library's calls: f\nb.wav: resampled from 8000 to 16000 Hz, for both\nmelflow "), out)
        self.assertRegex(out, r"\n  a\.wav: frame \d+, column \d+: \S+ here in (float|double), 0 by stand-in 1: differs by ")
        self.assertIn("\n  c.wav: decode: is not an audio file", out)
        self.assertIn("\n  none.wav: disk_read: does not exist", out)
        self.assertIn("\n  \\xffb\\n.wav: frame ", out)
        files = json.loads(self.verify(*words, "--json", code=1)[0])
        self.assertEqual([*files], ["melflow_version", "backend", "instruction_set", "passed", "reference", "preset", "changed", "sample_rate", "function",
                                    "files"])
        self.assertEqual((files["preset"], files["sample_rate"], files["function"], files["changed"]), ("kaldi", 16000, "f", []))
        self.assertEqual([(one["name"], one["frames"], one["passed"]) for one in files["files"]],
                         [("a.wav", 48, False), ("b.wav", 48, False), ("c.wav", 0, False), ("none.wav", 0, False), (odd, 48, False)])
        for one in files["files"]:
            if one["worst"] is not None:
                self.assertGreaterEqual(one["largest_difference"], one["worst"]["error"])

    def test_set_changes_both_sides_and_what_a_library_is_off_itself_is_allowed(self):
        self.sound("a.wav", 8000, np.zeros(4000))
        self.sound("b.wav", 8000, np.zeros(2400))
        words = ["--reference", "kaldi-native-fbank", "--python", self.library(FLOOR), *sets(f"{k}={v}" for k, v in KALDI_8.items()), "a.wav", "b.wav"]
        out, _ = self.verify(*words)
        self.assertNotIn("resampled", out)
        with open(self.path("asked.json"), encoding="utf-8") as file:
            asked = json.load(file)
        self.assertEqual(asked["changed"], [*KALDI_8])
        self.assertEqual({k: asked["options"][k] for k in KALDI_8}, KALDI_8)
        # The error that the library states for itself is allowed, and no more.
        self.verify(*words, OWN="0.5")
        self.assertIn("\n  a.wav: frame 0, column 2: ", self.verify(*words, OWN="0.4", code=1)[0])
        self.assertEqual(self.verify(*words, UNKNOWN="n_mels hop", code=1), ("", "melflow: f has no setting for n_mels, hop, so nothing can be compared\n"))

    def test_an_option_that_the_library_has_nothing_like_is_named_with_what_it_has(self):
        # Refused before the library is called, so empty modules are enough.
        self.file("numpy.py", "def fromfile(path, dtype): return []\n")
        for package in ("librosa", "torchaudio", "nemo_toolkit", "kaldi_native_fbank"):
            os.mkdir(self.path(f"{package}-1.dist-info"))
            self.file(f"{package}-1.dist-info/METADATA", f"Name: {package}\nVersion: 1\n")
        for module in ("librosa", "torch", "torchaudio", "nemo"):
            self.file(module + ".py", "def __getattr__(name): return name\n")
        self.file("kaldi_native_fbank.py", "def FbankOptions(): return None\n")
        python = self.script("python", f"#!/bin/sh\nPYTHONPATH={self.folder} exec {sys.executable} \"$@\"\n")
        os.mkdir(self.path("sounds"))
        self.sound("sounds/a.wav", 16000, np.zeros(4000))
        for library, option, refused in (
                ("librosa", "log=ln", "librosa has no log: ln; it has none, db"),
                ("librosa", "window=povey", "librosa has no window: povey"),
                ("torchaudio", "window=povey", "torchaudio has no window: povey; it has hann, hamming, blackman, kaiser, bartlett, values"),
                ("kaldi-native-fbank", "n_fft=1024", "kaldi-native-fbank has no n_fft: 1024; it has 512"),
                ("kaldi-native-fbank", "htk_mode=htk", "kaldi-native-fbank has no htk_mode: htk; it has false, kaldi"),
                ("kaldi-native-fbank", "vtln_warp=1.1", "kaldi-native-fbank has no vtln_warp: 1.1; it has 1"),
                ("nemo", "window=kaiser", "NeMo has no window: kaiser; it has hann, hamming, blackman")):
            with self.subTest(option):
                out, said = self.verify("--reference", library, "--python", python, *sets([option]), "sounds/a.wav", code=1)
                self.assertIn(f"omitted: {refused}\n", out)
                self.assertEqual(said, "melflow: nothing was compared, so nothing is proven; the verdicts say why\n")

    def test_a_python_without_the_library_is_named_with_what_to_install(self):
        self.sound("a.wav", 16000, np.zeros(4000))
        for python, message in (
                ("no_such_python", "melflow: no_such_python: cannot be started: No such file or directory\n"),
                ("/bin/false", "melflow: /bin/false exited with status 1 and without an answer: \n"),
                (self.script("killed", "#!/bin/sh\necho one\necho two >&2\nkill -9 $$\n"), "/killed exited with status 137 and without an answer: one | two\n"),
                # An isolated Python without site packages has none of the libraries.
                (self.script("bare", f"#!/bin/sh\nexec {os.path.realpath(sys.executable)} -I -S \"$@\"\n"),
                 "/bare -m pip install numpy kaldi-native-fbank, or name another Python with --python\n")):
            with self.subTest(python):
                out, said = self.verify("--reference", "kaldi-native-fbank", "a.wav", "--python", python, code=1)
                self.assertEqual((out, said[-len(message):]), ("", message))
        self.assertIn("/bare lacks what the library needs (numpy: ModuleNotFoundError: ", said)

    def test_the_script_for_libraries_does_not_find_the_modules_of_this_package(self):
        self.sound("a.wav", 16000, np.zeros(4000))
        # kaldi, loader and so on are names of files of this package, and could be those of a library's packages.
        self.file("sitecustomize.py", """
            import sys, importlib.abc
            class Finder(importlib.abc.MetaPathFinder):
                def find_spec(self, name, path, target=None):
                    if name == "kaldi_native_fbank":
                        import importlib.util
                        print("found", importlib.util.find_spec("parity_rows"), file=sys.stderr)
                        sys.exit(5)
            sys.meta_path.insert(0, Finder())
            """)
        python = self.script("python", f"#!/bin/sh\nPYTHONPATH={self.folder} exec {sys.executable} \"$@\"\n")
        said = self.verify("--reference", "kaldi-native-fbank", "a.wav", "--python", python, code=1)[1]
        self.assertIn("exited with status 5 and without an answer: found None\n", said)

    def test_the_mel_settings_of_a_pipeline_are_compared_with_the_library_of_its_preset(self):
        python = self.library(FLOOR)
        self.sound("a.wav", 8000, np.zeros(4000))
        self.file("p.yaml", BEGIN)

        def asked(*words, code=0):
            out, said = self.verify(*words, "--python", python, code=code)
            with open(self.path("asked.json"), encoding="utf-8") as file:
                return out, json.load(file)

        out, request = asked("p.yaml", "a.wav")
        self.assertTrue(out.startswith("mel of p.yaml, beside kaldi-native-fbank; other than in its preset: sample_rate, n_fft, win_length, hop, n_mels\n"), out)
        self.assertEqual((request["reference"], request["changed"]), ("kaldi-native-fbank", [*KALDI_8]))
        self.assertEqual({k: request["options"][k] for k in KALDI_8}, KALDI_8)
        # --set changes the pipeline; without recordings the test signals are compared, which are not silent.
        out, request = asked("p.yaml", *sets(["n_mels=23"]), "--json", code=1)
        document = json.loads(out)
        self.assertEqual([document[k] for k in ("pipeline", "node", "preset")], ["p.yaml", "mel", "kaldi"])
        self.assertEqual([one["name"] for one in document["files"]], ["voice", "noise", "silence", "impulse", "full_scale"])
        self.assertEqual([one["passed"] for one in document["files"]], [False, False, True, False, False])
        self.assertEqual(document["changed"], ["sample_rate", "n_fft", "win_length", "hop"])
        self.assertEqual(request["inputs"], 5)
        self.assertEqual(asked("p.yaml", "--reference", "torchaudio", "a.wav")[1]["reference"], "torchaudio")
        # A pipeline with several mel nodes.
        self.file("two.yaml", BEGIN + "      more: {stage: mel, from: batch, preset: whisper}\n"
                              "      write2: {stage: hdf5_write, from: more, path: o2.h5}\n")
        self.assertEqual(asked("two.yaml", *sets(["sample_rate=16000"]), "--node", "more", code=1)[1]["reference"], "whisper")

    def test_single_precision_of_loud_frames_is_allowed_in_the_statistics_of_quiet_ones(self):
        settings = json.loads(melflow._melflow.mel_settings(json.dumps({"preset": "kaldi", "sample_rate": 16000, "normalize": "per_feature"}), ""))
        samples = (np.sin(np.arange(16000) ** 1.5 / 90) * 0.27).astype(np.float32)
        single, double = (parity.Ours(settings, precision, samples) for precision in ("float", "double"))
        theirs = parity.Theirs(np.arange(len(double.values)), double.values, np.zeros(double.values.shape))
        tolerance = {"atol": 1e-8, "rtol": 1e-4}
        self.assertLess(parity.worst(single.values, theirs, single.limits(theirs, tolerance), "float").value["share"], 1)
        # Of the loudest value it is no allowance.
        at = np.unravel_index(np.argmax(double.values), double.values.shape)
        other = double.values.copy()
        other[at] += 0.5
        self.assertGreater(parity.worst(other, theirs, single.limits(theirs, tolerance), "float").value["share"], 1)

    # ---- by the class of a model's own file

    def model(self, **keys):
        os.makedirs(self.path("model"), exist_ok=True)
        self.file("model/preprocessor_config.json", json.dumps({"feature_extractor_type": "WhisperFeatureExtractor", **keys}))
        return "model"

    def test_a_models_folder_is_compared_with_the_class_that_wrote_it(self):
        python = self.library(WHISPER)
        self.sound("a.wav", 16000, np.zeros(4000))
        words = ["--reference", "transformers", self.model(), "--python", python, "a.wav", "--set", "model.chunk_length=1"]
        out, said = self.verify(*words)
        self.assertEqual(said, "")
        self.assertTrue(out.startswith("the library's calls: f\nmelflow "), out)
        self.assertRegex(out, r"\na\.wav +stand-in 1 +100 +0\.0e\+00 .* ok\n$")
        with open(self.path("asked.json"), encoding="utf-8") as file:
            asked = json.load(file)
        self.assertEqual({key: asked[key] for key in ("reference", "model", "changed", "keys", "sample_rate", "columns")},
                         {"reference": "transformers", "model": {"file": "model", "chunk_length": 1}, "changed": ["chunk_length"],
                          "keys": {"chunk_length": 1}, "sample_rate": 16000, "columns": 80})
        document = json.loads(self.verify(*words, "--json")[0])
        self.assertRegex(document["preset"], r"^WhisperFeatureExtractor of transformers [0-9.]+$")
        self.assertEqual(document["model"], {"file": "model", "chunk_length": 1})
        self.assertIn("\n  a.wav: frame 0, column 7: -1.5 here in float, -1 by stand-in 1: differs by ", self.verify(*words, OTHER="0.5", code=1)[0])
        # Rows at the end that the library's mask leaves out are none of the recording's.
        self.verify(*words, MORE="2", MASKED="2")
        self.assertIn("\n  a.wav: 100 x 80 values (frames x columns) here, 102 x 80 by stand-in 1\n", self.verify(*words, MORE="2", MASKED="1", code=1)[0])

    def test_a_model_that_the_library_does_not_read_is_refused_with_its_words(self):
        python = self.library("""
            import json, sys
            json.dump(dict(library="transformers", version="1", failed="OSError: no such class"), open(sys.argv[3], "w"))
            """)
        self.assertEqual(self.verify("--reference", "transformers", self.model(), "--python", python, code=1),
                         ("", "melflow: model: transformers 1 does not read it: OSError: no such class\n"))

    def test_a_python_without_transformers_is_named_with_what_to_install(self):
        bare = self.script("bare", f"#!/bin/sh\nexec {os.path.realpath(sys.executable)} -I -S \"$@\"\n")
        said = self.verify("--reference", "transformers", self.model(), "--python", bare, code=1)[1]
        self.assertRegex(said, r"/bare -m pip install numpy transformers, or name another Python with --python\n$")

    @unittest.skipUnless(subprocess.run([TRANSFORMERS, "-c", "import torch, transformers"], capture_output=True).returncode == 0,
                         "needs transformers and torch; MELFLOW_TRANSFORMERS_PYTHON names a Python with them")
    def test_classes_of_transformers_compute_what_melflow_reads_from_their_files(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "model_files.json")
        with open(path, encoding="utf-8") as file:
            cases = json.load(file)
        self.sound("a.wav", 22050, np.sin(np.arange(22050) ** 1.5 / 90) * 9000)
        for name in ("hf_whisper_5s", "hf_seamless", "hf_wav2vec2", "hf_parakeet", "hf_ast_raw", "hf_clap_pad", "hf_gemma4"):
            with self.subTest(name):
                os.mkdir(self.path(name))
                for one, text in cases[name]["files"].items():
                    self.file(os.path.join(name, one), text)
                out, said = self.verify("--reference", "transformers", name, "a.wav", "--python", TRANSFORMERS)
                self.assertEqual(said, "")
                self.assertRegex(out, r"\na\.wav +transformers [0-9.]+ .* ok\n$")
        # A key that changes on one side alone is seen, and code of the folder is not run.
        with open(self.path("hf_seamless/preprocessor_config.json"), encoding="utf-8") as file:
            fields = json.load(file)
        self.file("hf_seamless/preprocessor_config.json", json.dumps({**fields, "auto_map": {"AutoFeatureExtractor": "own.Own"}}))
        self.file("hf_seamless/own.py", "open('executed', 'w').close()\n")
        self.verify("--reference", "transformers", "hf_seamless", "a.wav", "--python", TRANSFORMERS, "--set", "model.ignore=auto_map")
        self.assertFalse(os.path.exists(self.path("executed")))

    def test_the_library_of_this_python_is_asked_where_none_is_named(self):
        self.sound("a.wav", 16000, np.zeros(4000))
        said = self.verify("--reference", "hifigan", "a.wav", code=1)[1]
        self.assertRegex(said, rf"^melflow: {re.escape(os.path.abspath(os.path.dirname(sys.executable)))}/python\S* lacks what the library needs \(")


if __name__ == "__main__":
    unittest.main()
