"""ONNX models and voice activity as nodes; the rule for speech is compared with that of the package silero-vad."""

import importlib
import importlib.util
import os
import sys
import types
import unittest
import unittest.mock

import melflow
import numpy as np

import corpus


def has(*names):
    return all(importlib.util.find_spec(name) for name in names)


def make_model(path, columns, rows, batch=1, more=()):
    """input [1, n] or [1, rows, columns] -> mean over n or rows, times 2, [1, columns]."""
    from onnx import TensorProto, helper, numpy_helper, save

    shape = [batch, None, columns] if rows else [None, None]
    nodes = [helper.make_node("ReduceMean", ["in", "axis"], ["mean"], keepdims=0 if rows else 1),
             helper.make_node("Mul", ["mean", "two"], ["out"])]
    graph = helper.make_graph(
        nodes, "twice_the_mean", [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("in", *more)],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [None, columns])],
        [numpy_helper.from_array(np.array([1], np.int64), "axis"), numpy_helper.from_array(np.array(2, np.float32), "two")])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


@unittest.skipUnless(has("onnxruntime", "onnx"), "onnxruntime or onnx is not installed")
class OnnxTest(corpus.CorpusTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.of_rows, cls.of_samples = (os.path.join(cls.folder.name, name) for name in ("rows.onnx", "samples.onnx"))
        make_model(cls.of_rows, 20, True)
        cls.of_batches = os.path.join(cls.folder.name, "batches.onnx")
        make_model(cls.of_batches, 20, True, None)
        make_model(cls.of_samples, 1, False)
        cls.of_two = os.path.join(cls.folder.name, "two.onnx")
        make_model(cls.of_two, 20, True, more=["other"])

    def decoded(self):
        return melflow.Graph().file_list(root=self.root).disk_read().decode(truncated="fail")

    def mel(self, node):
        return node.mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20)

    def written(self, name, node):
        path = os.path.join(self.folder.name, name + ".h5")
        node.hdf5_write(path=path, overwrite=True).graph.run()
        return melflow.open(path)

    def test_rows_and_pieces_of_samples(self):
        plain = self.written("plain", self.mel(self.decoded()))
        embedded = self.written("embedded", self.mel(self.decoded()).onnx(model=self.of_rows, input="rows", columns=20))
        for i in np.flatnonzero(plain.count)[:8]:
            np.testing.assert_allclose(embedded.recording(i)[0], 2 * plain.recording(i).mean(0), rtol=1e-5)
        audio = self.written("audio", self.decoded().samples(sample_rate=8000))
        pieces = self.written("pieces", self.decoded().onnx(model=self.of_samples, columns=1, frames=400))
        for i in np.flatnonzero(audio.count)[:8]:
            samples = audio.recording(i).reshape(-1)
            padded = np.zeros((-(-len(samples) // 400), 400), np.float32)
            padded.reshape(-1)[:len(samples)] = samples
            np.testing.assert_allclose(pieces.recording(i)[:, 0], 2 * padded.mean(1), atol=1e-6)

    def test_recordings_in_batches(self):
        plain = self.written("singly", self.mel(self.decoded()).onnx(model=self.of_batches, input="rows", columns=20))
        seen = []
        for workers, processes in ((1, 0), (3, 0), (2, 2)):
            node = self.mel(self.decoded()).onnx(model=self.of_batches, input="rows", columns=20, batch=16, processes=processes)
            node.graph.settings["workers"] = workers
            together = self.written("batches", node)
            np.testing.assert_allclose(together[:], plain[:], rtol=1e-4)
            seen.append(together[:])
        np.testing.assert_array_equal(seen[0], seen[1])
        np.testing.assert_array_equal(seen[0], seen[2])
        self.assertFalse(melflow.inspect(together.file).get("unit"))

    def test_the_fingerprint_has_the_model(self):
        def fingerprint(model):
            node = self.mel(self.decoded()).onnx(model=model, input="rows", columns=20)
            node.batches()
            return melflow.Features(node.graph).fingerprint

        other = os.path.join(self.folder.name, "other.onnx")
        make_model(other, 20, True)
        self.assertEqual(fingerprint(self.of_rows), fingerprint(self.of_rows))
        with open(other, "ab") as file:
            file.write(b"\x32\x00")  # an empty documentation
        self.assertNotEqual(fingerprint(self.of_rows), fingerprint(other))

    def test_what_does_not_fit(self):
        for node, error, said in [
            (self.mel(self.decoded()).onnx(model="nowhere.onnx", input="rows", columns=20), melflow.ConfigError,
             "^onnx.model: nowhere.onnx: there is no such file in "),
            (self.mel(self.decoded()).onnx(model=self.of_rows, input="rows", columns=7), melflow.ConfigError,
             r"^onnx.model: .*rows.onnx: its output out is \[1, 20\], rows of 20 values, and columns is 7; set columns: 20"),
            (self.mel(self.decoded()).onnx(model=self.of_two, input="rows", columns=20), melflow.ConfigError,
             "^onnx.model: .*two.onnx: has the inputs in, other; models with one input are supported"),
            (self.decoded().onnx(model=self.of_samples, columns=1, frames=400, batch=4), melflow.ConfigError,
             "onnx.batch: and frames are both given"),
            (self.mel(self.decoded()).onnx(model=self.of_rows, input="rows"), melflow.ConfigError, "onnx.columns: is needed"),
            (self.decoded().onnx(model=self.of_rows, columns=20), melflow.RunError, r"the model takes \[1, .*20\], and this recording gives"),
            (self.mel(self.decoded()).onnx(model=self.of_rows, input="rows", columns=20, output="no"), melflow.ConfigError,
             "^onnx.model: .*rows.onnx: has no output 'no'; its outputs are out"),
        ]:
            with self.subTest(said), self.assertRaisesRegex(error, said):
                node.discard()
                node.graph.validate() if error is melflow.ConfigError else node.graph.run()


@unittest.skipUnless(has("onnxruntime", "silero_vad"), "onnxruntime or silero-vad is not installed")
class VadTest(unittest.TestCase):
    @staticmethod
    def reference():
        """The package's own functions, which need torch for others only."""
        folder = importlib.util.find_spec("silero_vad").submodule_search_locations[0]
        stand_ins = {"torch": types.SimpleNamespace(Tensor=object, device=str, no_grad=lambda *_: lambda f: f),
                     "packaging": types.SimpleNamespace(version=None), "silero": types.ModuleType("silero")}
        stand_ins["silero"].__path__ = [folder]
        with unittest.mock.patch.dict(sys.modules, {k: v for k, v in stand_ins.items() if k == "silero" or not has(k)}):
            return importlib.import_module("silero.utils_vad"), importlib.import_module("silero.sequence_vad"), folder

    def test_stretches_are_those_of_its_own_rule(self):
        from melflow.models import Vad

        rule, sequence, folder = self.reference()
        theirs = sequence.SileroVADSequence(os.path.join(folder, "data", "silero_vad_16k_sequence.onnx"))
        chance, compared = np.random.default_rng(1), 0
        for n in range(20):
            samples = speech_like(chance)
            probabilities = theirs.audio_forward(samples)
            for settings, options in [({}, {}), ({"max_speech_duration_s": 1.0, "min_silence_duration_ms": 600}, {"max_speech": 1.0, "min_silence": 0.6}),
                                      ({"threshold": 0.3, "min_silence_duration_ms": 300, "speech_pad_ms": 200},
                                       {"threshold": 0.3, "min_silence": 0.3, "pad": 0.2})]:
                vad = Vad(**options)
                np.testing.assert_array_equal(vad.probabilities(samples), probabilities)
                # The rule alone has more to do with probabilities that jump.
                for values in (probabilities, chance.random(len(probabilities)).round(1)):
                    with unittest.mock.patch.object(vad, "probabilities", lambda _, values=values: values):
                        found = [(round(a * 16000), round(b * 16000)) for a, b in vad(samples, 16000)]
                    expected = rule.get_speech_timestamps_from_probs(list(values), audio_length_samples=len(samples), **settings)
                    self.assertEqual(found, [(int(s["start"]), int(s["end"])) for s in expected], (n, settings))
                    compared += len(found)
        self.assertGreater(compared, 100)

    def test_a_pipeline(self):
        with self.assertRaisesRegex(melflow.RunError, "samples are at 8000 Hz; put a resample stage"):
            g = melflow.Graph()
            g.synthetic(count=2, rate=8000).vad().segments_by().discard()
            g.run()


def speech_like(chance):
    """Bursts of a buzz with formants, and silence."""
    out = []
    for _ in range(8):
        count = int(chance.integers(3000, 24000))
        t = np.arange(count) / 16000
        pitch = chance.uniform(90, 220)
        buzz = sum(np.sin(2 * np.pi * pitch * k * t) / (1 + abs(pitch * k - 600) / 300) for k in range(1, 25))
        out += [buzz * np.hanning(count) * 0.1 * (1 + np.sin(2 * np.pi * 4 * t)), np.zeros(int(chance.integers(0, 12000)))]
    return np.concatenate(out).astype(np.float32)


if __name__ == "__main__":
    unittest.main()
