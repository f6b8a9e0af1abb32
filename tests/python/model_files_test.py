"""Every file of tests/golden/model_files.json: models' own files as their libraries wrote them, and values that the libraries computed.

NumPy alone; tests/golden/make_model_files.py made the files and the values."""

import base64
import json
import os
import sys
import tempfile
import unittest
import warnings

import melflow
import numpy as np

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
sys.path.append(GOLDEN)

import front_end_signals  # noqa: E402
from front_ends_test import bounds_of  # noqa: E402


def filled(preset, folder):
    if isinstance(preset, dict):
        return {key: filled(value, folder) if key == "file" else value for key, value in preset.items()}
    return preset.replace("FILE", folder) if preset.startswith("FILE") else preset


def nodes_of(preset):
    """What the preset stands for."""
    return json.loads(melflow._melflow.model_nodes(preset if isinstance(preset, str) else json.dumps(preset)))


def pipeline(preset, stage, *, to=None):
    """The text of a pipeline with the preset after decode, whose recordings have its rate."""
    graph = {"files": {"stage": "file_list", "root": "/"}, "read": {"stage": "disk_read", "from": "files"},
             "decode": {"stage": "decode", "from": "read"}, "rows": {"stage": stage, "from": "decode", "preset": preset},
             "out": to or {"stage": "batches", "from": "rows"}}
    return json.dumps({"version": 1, "graph": graph})


class ModelFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(GOLDEN, "model_files.json"), encoding="utf-8") as file:
            cls.cases = json.load(file)
        cls.signals = {name: make() for name, make in front_end_signals.SIGNALS.items()}

    def written(self, case):
        folder = self.enterContext(tempfile.TemporaryDirectory()) if sys.version_info >= (3, 11) else tempfile.mkdtemp()
        for name, text in case["files"].items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(text.encode() if isinstance(text, str) else base64.b64decode(text["base64"]))
        return filled(case["preset"], folder)

    def test_each_is_the_librarys(self):
        computed = 0
        for name, case in self.cases.items():
            preset = self.written(case)
            if "refused" in case:
                with self.subTest(name), self.assertRaisesRegex(melflow.ConfigError, case["refused"].replace("(", r"\(")):
                    nodes_of(preset)
                continue
            with warnings.catch_warnings():  # of what is assumed
                warnings.simplefilter("ignore")
                features = melflow.Features(pipeline(preset, self.stage_of(preset)))
            computed += 1
            for signal, expected in case["signals"].items():
                with self.subTest(name, signal=signal):
                    self.compare(case, expected, features, self.signals[signal])
        self.assertGreaterEqual(computed, 57)

    @staticmethod
    def stage_of(preset):
        return next(stage for stage, _ in nodes_of(preset)["nodes"] if stage in ("mel", "samples"))

    def compare(self, case, expected, features, x):
        if "refused" in expected or expected["rows"][0] <= case["masked"]:
            try:  # as in front_ends_test: the library has no rows
                self.assertTrue(np.isfinite(features(x, case["rate"])).all())
            except melflow.RunError as error:
                self.assertRegex(str(error), "shorter than one frame|has 0 frames|has [0-9]+ frames, [0-9]+ are needed")
            return
        rows = features(x, case["rate"])
        rows = rows.reshape(-1, rows.shape[-1]) if rows.ndim == 3 else rows.reshape(len(rows), -1)
        count, *at = expected["rows"]
        self.assertLessEqual(len(rows), count)
        self.assertGreaterEqual(len(rows), count - case["masked"])
        values = np.array(expected["values"]).reshape(len(at), -1)
        bounds = bounds_of(expected["bounds"]).reshape(values.shape)
        there = [r for r in at if r < len(rows)]
        self.assertFalse(np.any(values[len(there):]))
        errors = np.abs(rows[np.ix_(there, case["columns"])] - values[:len(there)]) / bounds[:len(there)]
        self.assertLessEqual(errors.max(initial=0), 1)

    def test_every_key_that_is_misspelt_or_of_another_type_is_an_error_with_its_name(self):
        """Without the libraries: what they do with such files, tests/long/model_file_mutations.py compares."""
        tried = 0
        for name in ("hf_whisper", "hf_ast", "hf_seamless", "hf_gemma3n", "hf_univnet_norm", "hf_dac", "lh_fbank"):
            case = self.cases[name]
            [(file_name, text)] = case["files"].items()
            if file_name.endswith(".yaml"):
                keys = [line.split(":")[0] for line in text.splitlines()]
            else:
                keys = list(json.loads(text))
            for key in keys:
                if key in ("feature_extractor_type", "feature_type"):
                    continue
                misspelt = text.replace(key + ":" if file_name.endswith(".yaml") else f'"{key}"',
                                        key + "x:" if file_name.endswith(".yaml") else f'"{key}x"')
                with self.subTest(name, key=key), self.assertRaisesRegex(melflow.ConfigError, key + "x: "):
                    nodes_of(self.written({"files": {file_name: misspelt}, "preset": "FILE"}))
                tried += 1
        self.assertGreater(tried, 60)

    def test_a_pipeline_stores_what_the_file_says_and_not_its_path(self):
        import h5py
        preset = self.written(self.cases["hf_seamless"])
        with tempfile.TemporaryDirectory() as folder:
            audio = os.path.join(folder, "a.wav")
            self.write_wav(audio, self.signals["speech"])
            outputs = []
            for name, options in (("file", {"preset": preset}), ("name", {"preset": "seamless"})):
                path = os.path.join(folder, name + ".h5")
                graph = {"files": {"stage": "file_list", "root": folder, "include": ["*.wav"]}, "read": {"stage": "disk_read", "from": "files"},
                         "decode": {"stage": "decode", "from": "read"}, "mel": {"stage": "mel", "from": "decode", **options},
                         "write": {"stage": "hdf5_write", "from": "mel", "path": path}}
                melflow.run(json.dumps({"version": 1, "graph": graph}))
                with h5py.File(path) as file:
                    outputs.append((dict(file.attrs), file[file.attrs["rows"]][:]))
            (of_file, rows), (of_name, same) = outputs
            np.testing.assert_array_equal(rows, same)
            self.assertEqual(of_file["feature_fingerprint"], of_name["feature_fingerprint"])
            self.assertRegex(of_file["preset"], r"^SeamlessM4TFeatureExtractor of transformers [0-9.]+, xxh3 [0-9a-f]{32}$")
            for value in of_file.values():
                self.assertNotIn(preset, str(value))

    @staticmethod
    def write_wav(path, x):
        import wave
        with wave.open(path, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16000)
            file.writeframes(x.astype("<i2").tobytes())

    def test_features_read_a_changed_file_anew(self):
        case = self.cases["hf_parakeet"]
        preset, x = self.written(case), self.signals["speech"]
        self.assertEqual(melflow.features(x, 16000, preset=preset).shape[1], 80)
        path = os.path.join(preset, "preprocessor_config.json")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace('"feature_size": 80', '"feature_size": 64'))
        self.assertEqual(melflow.features(x, 16000, preset=preset).shape[1], 64)

    def test_options_beside_the_preset_and_keys_beside_the_file_take_precedence(self):
        preset, x = self.written(self.cases["hf_parakeet"]), self.signals["speech"]
        self.assertEqual(melflow.features(x, 16000, preset=preset, n_mels=40).shape[1], 40)
        self.assertEqual(melflow.features(x, 16000, preset={"file": preset, "feature_size": 32}).shape[1], 32)
        with self.assertRaisesRegex(melflow.ConfigError, "gives what the stage samples makes, not mel"):
            melflow.Features(pipeline(self.written(self.cases["hf_wav2vec2"]), "mel"))

    def test_windows_of_the_pipeline_take_the_place_of_the_classs_length(self):
        preset = self.written(self.cases["hf_whisper"])
        graph = json.loads(pipeline(preset, "mel"))
        graph["graph"]["segment"] = {"stage": "segment", "from": "decode", "length": "2s", "tail": "pad"}
        graph["graph"]["rows"]["from"] = "segment"
        with self.assertWarnsRegex(UserWarning, "takes windows of 30s, and those here have 2s"):
            rows = melflow.Features(json.dumps(graph))(self.signals["speech"], 16000)
        self.assertEqual(rows.shape[1:], (200, 80))

    def test_compare_says_by_how_much_rows_differ(self):
        from melflow import front_end_check
        preset = self.written(self.cases["hf_seamless"])
        sides = [{"path": preset, "text": pipeline(preset, "mel"), "sample_rate": 16000, "sets": sets}
                 for sets in ({}, {}, {"rows.norm_eps": "0.01"}, {"rows.n_mels": "64"})]
        status, printed, complaint = front_end_check.of_verb(json.dumps({"decibels": [sides[0], sides[1]]}))
        self.assertEqual((status, complaint), (0, ""))
        self.assertIn("voice: equal bit for bit\n", printed)
        self.assertRegex(front_end_check.of_verb(json.dumps({"decibels": [sides[0], sides[2]]}))[1],
                         r"voice: -\d+\.\d dB of the rows' level; at most [0-9.]+, in row \d+, column \d+\n")
        self.assertRegex(front_end_check.of_verb(json.dumps({"decibels": [sides[0], sides[3]]}))[1], r"voice: \d+ rows of 160, and \d+ of 128\n")


if __name__ == "__main__":
    unittest.main()
