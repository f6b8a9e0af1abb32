"""Every file of tests/golden/model_files.json: models' own files as their libraries wrote them, and values that the libraries computed.

NumPy alone; tests/golden/make_model_files.py made the files and the values."""

import base64
import json
import os
import re
import subprocess
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

    def test_values_that_are_not_computed_are_errors_and_not_taken_for_none(self):
        """With a negative dither the libraries add noise, and fail with such numbers of frames; a negative lifter is none of melflow's."""
        for name, key, old, value in (("hf_funasr_nano_51", "num_frames_lfr", '"num_frames_lfr": 5', '"num_frames_lfr": -3'),
                                      ("hf_funasr_nano_51", "num_frames_lfr", '"num_frames_lfr": 5', '"num_frames_lfr": 0'),
                                      ("hf_funasr_nano_51", "stride_lfr", '"stride_lfr": 1', '"stride_lfr": 0'),
                                      ("hf_whisper", "dither", '"dither": 0.0', '"dither": -0.5'), ("lh_fbank", "dither", "dither: 0.0", "dither: -1.0"),
                                      ("lh_mfcc", "cepstral_lifter", "cepstral_lifter: 22", "cepstral_lifter: -22"),
                                      ("fbank_80", "dither", "--dither=0", "--dither=-1"), ("funasr_vad", "dither", "dither: 0.0", "dither: -1"),
                                      ("funasr_vad", "lfr_m", "lfr_m: 5", "lfr_m: -5"), ("nemo_clamp", "mag_power", "mag_power: 1.0", "mag_power: -1.0"),
                                      ("nemo_fastpitch", "n_window_size", "n_window_size: 1024", "n_window_size: null"),
                                      ("espnet_tts", "win_length", "win_length: null", "win_length: None"),
                                      ("hf_lasr", "sampling_rate", '"sampling_rate": 16000', '"sampling_rate": 8000'),
                                      ("hf_univnet", "win_function", '"win_function": "hann_window"', '"win_function": "slaney"'),
                                      ("nemo_exactpad", "n_window_stride", "n_window_stride: 256", "n_window_stride: null")):
            case = self.cases[name]
            changed = {file: text.replace(old, value) for file, text in case["files"].items()}
            self.assertNotEqual(changed, case["files"])
            with self.subTest(name, key=key), self.assertRaisesRegex(melflow.ConfigError, key):
                nodes_of(self.written({**case, "files": changed}))

    def program(self, *words, code=0):
        ended = subprocess.run([os.environ.get("MELFLOW_PROGRAM") or melflow.program.path(), *words], capture_output=True, text=True, timeout=300)
        self.assertEqual(ended.returncode, code, ended)
        return ended

    def test_a_folder_named_as_a_preset_is_said(self):
        shadow = self.written(self.cases["hf_parakeet"])
        folder = self.enterContext(tempfile.TemporaryDirectory()) if sys.version_info >= (3, 11) else tempfile.mkdtemp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder)
        os.symlink(shadow, "seamless")
        said = "seamless is what melflow comes with, and the folder of this name is not read; write ./seamless for the folder"
        x = self.signals["speech"]
        for _ in range(2):  # each call says it
            with self.assertWarnsRegex(UserWarning, "^preset: " + said):
                self.assertEqual(melflow.features(x, 16000, preset="seamless").shape[1], 160)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(melflow.features(x, 16000, preset="./seamless").shape[1], 80)
        with open("p.yaml", "w", encoding="utf-8") as file:
            file.write(pipeline("seamless", "mel"))
        self.assertIn(f"rows.preset: {said}\n", self.program("validate", "p.yaml").stdout)
        for words in (("presets", "seamless"), ("compare", "seamless", "seamless")):
            self.assertIn(f"warning: {said}\n", self.program(*words).stderr)
        self.assertIn("seamless: is a folder, and the name of what melflow comes with; write ./seamless for the folder",
                      self.program("init", "--from", "seamless", "made.yaml", code=1).stderr)
        self.program("init", "--from", "./seamless", "made.yaml")
        # Nothing is said of a folder without a model, or of a name that is from a file.
        self.assertNotIn("made.yaml", self.program("validate", "made.yaml").stderr)
        os.unlink("seamless")
        os.mkdir("seamless")
        self.assertEqual(self.program("presets", "seamless").stderr, "")

    def test_what_the_class_does_with_long_recordings_is_said(self):
        preset, x = self.written(self.cases["hf_clap"]), self.signals["speech"]
        said = "^preset: ClapFeatureExtractor of transformers [0-9.]+: the class takes random parts of recordings longer than max_length_s, here they are cut there$"
        for _ in range(2):
            with self.assertWarnsRegex(UserWarning, said):
                melflow.features(x, 48000, preset=preset)
        with self.assertWarnsRegex(UserWarning, said) as warned:
            melflow.features([x, x, x], 48000, preset=preset)
        self.assertEqual((len(warned.warnings), warned.filename), (1, __file__))
        with self.assertWarnsRegex(UserWarning, said):
            made = melflow.Features(preset=preset)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made(x, 48000)
            melflow.features(x, 16000, preset="whisper")  # of what the user writes nothing is said
        folder = self.enterContext(tempfile.TemporaryDirectory()) if sys.version_info >= (3, 11) else tempfile.mkdtemp()
        self.write_wav(os.path.join(folder, "a.wav"), x)
        with self.assertWarnsRegex(UserWarning, said):
            melflow.folder(folder, preset=preset)
        with self.assertWarnsRegex(UserWarning, said):
            melflow.show(os.path.join(folder, "a.wav"), preset=preset)
        with self.assertWarnsRegex(UserWarning, "^preset: WhisperFeatureExtractor of .*: takes windows of 30s, and those here have 2s$"):
            melflow.features(x, 16000, preset=self.written(self.cases["hf_whisper"]), pad_to="2s")

    def test_resampled_recordings_have_as_many_samples_as_the_librarys(self):
        x = np.resize(self.signals["speech"], 44101)
        counts = {"round": 16000, "ceil": 16001, "librosa": 16001, None: 16000}  # 44101 * 160 / 441 = 16000.36
        for length, count in counts.items():
            given = {} if length is None else {"resample": {"length": length}}
            rows = melflow.features(x, 44100, preset="wav2vec2", **given)
            self.assertEqual(rows.size, count)
            np.testing.assert_array_equal(melflow.Features(preset="wav2vec2", **given)(x, 44100), rows)
            graph = json.loads(pipeline("wav2vec2", "samples"))
            graph["graph"]["at"] = {"stage": "resample", "from": "decode", "rate": 16000, **given.get("resample", {})}
            graph["graph"]["rows"]["from"] = "at"
            np.testing.assert_array_equal(melflow.Features(json.dumps(graph))(x, 44100), rows)
        folder = self.enterContext(tempfile.TemporaryDirectory()) if sys.version_info >= (3, 11) else tempfile.mkdtemp()
        self.write_wav(os.path.join(folder, "a.wav"), np.resize(x, 16002))
        options = {"sample_rate": 11025, "n_fft": 2, "hop": 1, "output": "spectrogram", "center": False}  # a row for each sample but one
        for length, count in (("round", 11026), ("ceil", 11027), ("librosa", 11027)):  # 16002 * 441 / 640 = 11026.38
            given = {**options, "resample": {"length": length, "quality": "low"}}
            rows = melflow.folder(folder, **given)["features"][0]
            self.assertEqual(len(rows), count - 1)
            np.testing.assert_array_equal(rows, melflow.features(os.path.join(folder, "a.wav"), **given))
        self.assertEqual(melflow.folder(folder, preset="moonshine")["features"][0].size, 16002)
        for wrong in ({"rate": 8000}, {"from": "x"}, "librosa", ["length"]):
            with self.assertRaisesRegex(TypeError, 'resample is a dict of options of the stage resample, such as {"length": "librosa"}, without the rate'):
                melflow.features(x, 44100, preset="wav2vec2", resample=wrong)
        with self.assertRaisesRegex(melflow.ConfigError, "resample.lenght: unknown option of resample. Did you mean 'length'"):
            melflow.Features(preset="wav2vec2", resample={"lenght": "ceil"})
        with self.assertRaisesRegex(melflow.ConfigError, "resample.length: 'floor' is not one of round, ceil, librosa"):
            melflow.features(x, 44100, preset="wav2vec2", resample={"length": "floor"})
        with self.assertRaisesRegex(TypeError, "resample: a pipeline has its own"):
            melflow.Features(json.dumps(graph), resample={"length": "ceil"})

    def test_init_writes_the_length_of_the_librarys_resampling(self):
        """Which rule, is in the libraries: librosa.load, librosa.resample in NeMo's AudioSegment, torchaudio's Resample, Lhotse's compute_num_samples."""
        known = {"hf_seamless": "librosa", "nemo_fastconformer": "librosa", "call_librosa": "librosa", "sb_ecapa": "ceil", "wespeaker": "ceil",
                 "funasr_paraformer": "ceil", "call_mel": "ceil", "lh_fbank": "round", "fbank_80": None, "espnet_asr": None}
        folder = self.enterContext(tempfile.TemporaryDirectory()) if sys.version_info >= (3, 11) else tempfile.mkdtemp()
        for name, length in known.items():
            with self.subTest(name):
                made = os.path.join(folder, name + ".yaml")
                self.program("init", "--from", self.written(self.cases[name]), made)
                with open(made, encoding="utf-8") as file:
                    node = file.read().split("  resample:")[1].split("\n\n")[0]
                self.assertEqual(re.findall(r"\n    length: (\w+) +# as many samples as by .", node), [length] if length else [])
                self.program("validate", made)

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
