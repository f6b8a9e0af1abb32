"""melflow.Features, melflow.run and the rest beside what the program writes."""

import array
import enum
import importlib.util
import io
import json
import os
import pathlib
import shutil
import tempfile
import unittest
import warnings
import wave

import melflow
import numpy as np

import corpus


class FeaturesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = os.path.join(cls.folder.name, "audio")
        corpus.make_corpus(cls.root, 30)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def yaml(self, name, **options):
        out = os.path.join(self.folder.name, name + ".h5")
        text = corpus.pipeline(self.root, f"stage: hdf5_write, path: {out}, overwrite: true", **options)
        path = os.path.join(self.folder.name, name + ".yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path, out

    def test_rows_of_samples_are_those_of_files(self):
        for name, options in (("whole", {}), ("windows", dict(segment=", length: 2000")),
                              ("samples", dict(segment=", length: 2000", chain=corpus.SAMPLES))):
            path, out = self.yaml(name, **options)
            report = melflow.run(path)
            self.assertEqual(report["files"]["failed"], 2)
            rows = melflow.open(out)
            features = melflow.Features(corpus.pipeline(self.root, "stage: batches", **options))
            features.check(rows.attributes["feature_fingerprint"])
            with self.assertRaisesRegex(melflow.RunError, "trained on features"):
                features.check("other")
            with self.assertRaisesRegex(TypeError, "^samples: this argument is called audio since melflow 0.2$"):
                features(samples=np.zeros(9, np.int16), sample_rate=corpus.RATE)
            compared = 0
            for i in np.flatnonzero(rows.count > 0):
                with wave.open(os.path.join(self.root, rows.path[i])) as sound:
                    samples = np.frombuffer(sound.readframes(sound.getnframes()), np.int16)
                np.testing.assert_array_equal(features(samples, corpus.RATE), rows.recording(i))
                np.testing.assert_array_equal(features(samples.astype(np.float32) / 32768, corpus.RATE), rows.recording(i))
                compared += 1
            self.assertGreater(compared, 20)

    def test_one_call(self):
        samples = np.sin(np.arange(32000, dtype=np.float32) / 20)
        self.assertEqual(melflow.features(samples, 16000, preset="whisper").shape, (200, 80))
        self.assertEqual(melflow.features(samples, 22050, n_fft=512, hop=128, n_mels=40).shape[1], 40)
        self.assertEqual(melflow.features(samples, 44100, preset="whisper").shape, (72, 80))
        self.assertEqual(melflow.features(samples, 44100, preset="whisper", n_fft=1024, hop=441).shape[1], 80)
        with self.assertRaisesRegex(melflow.ConfigError, "^presett: unknown option of mel. Did you mean 'preset'"):
            melflow.features(samples, 16000, presett="whisper")
        for wrong in (samples.reshape(2, -1), samples.astype(np.int32), samples[:0]):
            with self.assertRaises(ValueError):
                melflow.features(wrong, 16000, preset="whisper")

    def test_a_preset_for_any_rate_takes_that_of_the_samples(self):
        samples = np.sin(np.arange(16000, dtype=np.float32) / 20)
        of_its_rate = melflow.features(samples, 22050, preset="librosa")
        other = melflow.features(samples, 16000, preset="librosa")
        self.assertEqual(other.shape, of_its_rate.shape)
        self.assertFalse(np.array_equal(other, of_its_rate))  # bands of 0 to 8 kHz
        path = os.path.join(self.root, "ant", "000.wav")
        with wave.open(path) as file:
            recording = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        expected = melflow.features(recording, 8000, preset="librosa")
        np.testing.assert_array_equal(melflow.features(path, 8000, preset="librosa"), expected)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the damaged ones
            table = melflow.folder(self.root, preset="librosa", sample_rate=8000, include="ant/*.wav")
        np.testing.assert_array_equal(table["features"][table["path"].index("ant/000.wav")], expected)
        np.testing.assert_array_equal(
            other, melflow.features(samples, 16000, n_fft=2048, hop=512, n_mels=128, pad_mode="constant", mel_scale="slaney",
                                    norm="slaney"))

    def test_values_may_be_of_numpy_and_pathlib(self):
        class Scale(enum.Enum):
            HTK = "htk"

        samples = np.sin(np.arange(8000, dtype=np.float32) / 20)
        plain = dict(n_fft=512, hop=128, n_mels=40, fmin=20.0, htk_compat=False, mel_scale="htk", top_db=None, norm_mean=[1.5],
                     norm_std=[2.0], normalize="fixed")
        numpy = dict(n_fft=np.int64(512), hop=np.int16(128), n_mels=np.uint8(40), fmin=np.float32(20), htk_compat=np.bool_(False),
                     mel_scale=Scale.HTK, top_db=None, norm_mean=np.array([1.5]), norm_std=(np.float64(2),),
                     normalize=np.str_("fixed"))
        expected = melflow.features(samples, 8000, **plain)
        np.testing.assert_array_equal(melflow.features(samples, np.int32(8000), **numpy), expected)
        text = corpus.pipeline('"${ROOT}"', "stage: batches")
        for values in (plain, numpy):
            sets = {"rows." + name: value for name, value in values.items()} | {"rows.sample_rate": np.int64(8000)}
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                made = melflow.Features(text, vars={"ROOT": pathlib.Path(self.root)}, sets=sets)
            np.testing.assert_array_equal(made(samples, 8000), expected)
        for wrong in (b"512", {1, 2}, object()):
            with self.assertRaisesRegex(TypeError, "^sets: rows.n_fft: .* is no value of an option"):
                melflow.Features(text, vars={"ROOT": self.root}, sets={"rows.n_fft": wrong})
        with self.assertRaisesRegex(TypeError, "^vars: ROOT: a variable stands for one value"):
            melflow.Features(text, vars={"ROOT": ["a", "b"]})
        with self.assertRaisesRegex(TypeError, "^vars is a dict"):
            melflow.Features(text, vars="ROOT=a")

    def test_a_preset_that_leaves_options_says_so(self):
        text = corpus.pipeline(self.root, "stage: batches")
        for make in (melflow.Features, melflow.Loader):
            with self.assertWarnsRegex(UserWarning, "rows.preset: librosa leaves .*n_fft is 256 and not 2048, .*n_mels is 20 and not"):
                make(text, sets={"rows.preset": "librosa"})
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                make(text, sets={"rows.preset": None})
        path, _ = self.yaml("leaves")
        with self.assertWarnsRegex(UserWarning, "rows.preset: librosa leaves"):
            melflow.run(path, sets={"rows.preset": "librosa"})

    def test_a_pipeline_is_a_path_a_text_or_a_dict(self):
        path, out = self.yaml("forms")
        expected = None
        graph = {"files": {"stage": "file_list", "root": pathlib.Path(self.root), "labels": "top_dir"},
                 "read": {"stage": "disk_read", "from": "files"},
                 "decode": {"stage": "decode", "from": "read", "truncated": "fail", "block": "64KiB"},
                 "segment": {"stage": "segment", "from": "decode"},
                 "batch": {"stage": "batch", "from": "segment", "files": np.int64(4)},
                 "rows": {"stage": "mel", "from": "batch", "sample_rate": 8000, "n_fft": 256, "hop": 80, "n_mels": 20}}
        given = {"version": 1, "memory": {"host": "64MiB"},
                 "graph": graph | {"out": {"stage": "hdf5_write", "from": "rows", "path": out, "overwrite": True}}}
        with open(path, encoding="utf-8") as file:
            text = file.read()
        as_json = json.dumps(json.loads(json.dumps(given, default=lambda v: v.item() if hasattr(v, "item") else str(v))))
        for form in (path, pathlib.Path(path), text, given, as_json):
            for act in (melflow.run, melflow.update):
                act(form)
                rows = melflow.open(out)[:]
                expected = rows if expected is None else expected
                np.testing.assert_array_equal(rows, expected)
        given["graph"] = graph | {"out": {"stage": "batches", "from": "rows"}}
        one_line = as_json.replace('"stage": "hdf5_write"', '"stage": "batches"')
        one_line = one_line.replace(f', "path": "{out}", "overwrite": true', "")
        self.assertNotIn("\n", one_line)
        for form in (given, one_line):
            np.testing.assert_array_equal(melflow.open(form, index=False, scan=True)[:], expected)
            self.assertEqual(sum(int(b["length"].sum()) for b in melflow.Loader(form)), len(expected))
            self.assertEqual(melflow.Features(form)(np.zeros(8000, np.float32), 8000).shape[1], 20)
        given["graph"]["rows"]["n_melz"] = 3
        for act in (melflow.run, melflow.Loader, melflow.Features, melflow.open):
            with self.assertRaisesRegex(melflow.ConfigError, r"(?m)^rows.n_melz: unknown option"):
                act(given)
            with self.assertRaisesRegex(TypeError, "a pipeline is a Graph, the path of a YAML file, the text of one, or a dict, not 3"):
                act(3)

    def test_files_bytes_and_lists(self):
        path = os.path.join(self.root, "ant", "000.wav")
        with wave.open(path) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        options = dict(n_fft=256, hop=80, n_mels=20)
        expected = melflow.features(samples, 8000, **options)
        with open(path, "rb") as file:
            data = file.read()
        with open(path, "rb") as file:
            for audio in (path, pathlib.Path(path), data, file, io.BytesIO(data)):
                np.testing.assert_array_equal(melflow.features(audio, 8000, **options), expected)
        of_datasets = [{"array": samples, "sampling_rate": 8000}, {"bytes": data, "path": "gone"}, {"bytes": None, "path": path}]
        for audio in (bytearray(data), memoryview(data), memoryview(array.array("h", samples)), *of_datasets):
            np.testing.assert_array_equal(melflow.features(audio, 8000, **options), expected)
        np.testing.assert_array_equal(melflow.features(of_datasets[0], **options), expected)
        half = (samples / np.float32(32768)).astype(np.float16)
        np.testing.assert_array_equal(melflow.features(half, 8000, **options), melflow.features(half.astype(np.float32), 8000, **options))
        for rows in melflow.features([path, data] * 8, 8000, **options):
            np.testing.assert_array_equal(rows, expected)
        self.assertEqual(melflow.features(path, preset="whisper").shape[1], 80)  # resampled to 16 kHz
        for rate in (8000.0, "8kHz", "8000 Hz"):
            np.testing.assert_array_equal(melflow.features(path, rate, **options), expected)
        self.assertEqual(melflow.features([], preset="whisper"), [])
        for error, what, audio, given in [
            (FileNotFoundError, "there is no such file in .*: 'nowhere.wav'", "nowhere.wav", {"sample_rate": 8000}),
            (melflow.RunError, "^audio: decode: ", b"no sound", {"sample_rate": 8000}),
            (melflow.RunError, r"^1 of 2 recordings gave no rows:\n  \[1\] .*there is no such file in .*nowhere.wav'$", [path, "nowhere.wav"], {"sample_rate": 8000}),
            (TypeError, "need a preset of a model, or sample_rate", path, {}),
            (TypeError, "need a preset of a model, or sample_rate", path, {"preset": "librosa"}),
            (melflow.ConfigError, r"^preset: 'wisper' is not one of whisper, .* and \d+ more .*\. Did you mean 'whisper'\?$", path, {"preset": "wisper"}),
            (melflow.ConfigError, r"^preset: 'wisper' is not one of ", samples, {"preset": "wisper", "sample_rate": 8000}),
            (melflow.ConfigError, r"^preset: 'openai' is not one of .*; write whisper$", path, {"preset": "openai"}),
            (TypeError, "^downmix is for files", samples, {"downmix": "left", "sample_rate": 8000}),
            (TypeError, "^truncated is for files", samples, {"truncated": "keep", "sample_rate": 8000}),
            (melflow.ConfigError, "^truncated: 'kep' is not one of .* Did you mean 'keep'", path, {"truncated": "kep", "sample_rate": 8000}),
            (melflow.ConfigError, r"^hop_length: unknown option of mel; use 'hop' instead: 80, in samples", path, {"hop_length": 80, "sample_rate": 8000}),
            (TypeError, "an array needs sample_rate", samples, {}),
            (TypeError, "audio is a file's path.* not None", None, {"sample_rate": 8000}),
            (ValueError, r"these are int32: divide by 2\*\*31", samples.astype(np.int32), {"sample_rate": 8000}),
            (ValueError, r"these are int64: give np.array\(samples, np.int16\)", [1, 2, 3], {"sample_rate": 8000}),
            (ValueError, r"these are uint8: of 8 bits without a sign", samples.astype(np.uint8), {"sample_rate": 8000}),
            (ValueError, "^300 of 900 values are masked; fill them", np.ma.array(np.zeros(900), mask=[0, 0, 1] * 300), {"sample_rate": 8000}),
            (TypeError, "audio is a pair of samples and their rate; write features", (samples, 8000), {}),
            (TypeError, "an array needs sample_rate", [0.5, 0.25], {}),
            (ValueError, "^https://a.b/c.wav: is a URL", "https://a.b/c.wav", {"sample_rate": 8000}),
            (ValueError, "lacks `sampling_rate`", {"array": samples}, {}),
            (ValueError, "samples of the dict have 8000 Hz, and sample_rate is 16000", {"array": samples, "sampling_rate": 8000},
             {"sample_rate": 16000}),
            (TypeError, "audio is a file's path.* not <generator", (i for i in range(3)), {"sample_rate": 8000}),
            (ValueError, "sample_rate is a rate, such as 16000 or '16kHz', not 'fast'", samples, {"sample_rate": "fast"}),
            (TypeError, "binary mode", io.StringIO("a"), {"sample_rate": 8000}),
            (melflow.ConfigError, "^n_melz: unknown option", path, {"sample_rate": 8000, "n_melz": 3}),
        ]:
            with self.subTest(what), self.assertRaisesRegex(error, what):
                melflow.features(audio, **given)

    def test_samples_in_another_scale_are_warned_of(self):
        samples, options = np.sin(np.arange(4000) / 20), dict(n_fft=256, hop=80, n_mels=20)
        features = melflow.Features(corpus.pipeline(self.root, "stage: batches"))
        for call in (lambda x: melflow.features(x, 8000, **options), lambda x: features(x, 8000)):
            for factor in (-9830, 9830):
                with self.assertWarnsRegex(UserWarning, r"^samples up to 9830; full scale is 1 \(divide"):
                    call(factor * samples)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                call(4 * samples)
                call((9830 * samples).astype(np.int16))

    def test_a_folder_leaves_pythons_record_of_warnings(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("default")
            shown = {}
            for _ in range(3):
                warnings.warn_explicit("once by place", UserWarning, "place.py", 1, registry=shown)
                melflow.folder(self.root, include="ant/01*.wav", preset="whisper")
        said = [str(one.message) for one in said]
        self.assertEqual(said.count("once by place"), 1)
        self.assertFalse([one for one in said if "windows of 30 s" in one])

    def test_a_folder_is_a_table(self):
        options = dict(sample_rate=8000, n_fft=256, hop=80, n_mels=20)
        with self.assertWarnsRegex(UserWarning, r"^3 of 30 recordings gave no rows:\n  ant/012\.wav: .*\n  bee/007\.wav: .*\n  bee/025\.wav: .*$"):
            table = melflow.folder(self.root, labels="top_dir", **options)
        self.assertEqual(list(table), ["path", "label", "features", "frames"])
        self.assertEqual({os.path.dirname(path) for path in table["path"]}, set(table["label"]))
        for i in range(0, len(table["path"]), 7):
            rows = melflow.features(os.path.join(self.root, table["path"][i]), **options)
            np.testing.assert_array_equal(table["features"][i], rows)
            self.assertEqual(table["frames"][i], len(rows))
        if importlib.util.find_spec("pandas"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                frame = melflow.folder(self.root, include="ant/*.wav", table="pandas", **options)
            self.assertTrue(all(path.startswith("ant/") for path in frame["path"]))
        with self.assertRaisesRegex(NotADirectoryError, "there is no such folder in .*nowhere"):
            melflow.folder("nowhere", **options)
        if importlib.util.find_spec("polars"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                frame = melflow.folder(self.root, include="ant/*.wav", table="polars", **options)
            for path, rows in zip(frame["path"], frame["features"]):
                np.testing.assert_array_equal(rows.to_numpy(), table["features"][table["path"].index(path)])
        with self.assertRaisesRegex(melflow.ConfigError, "^preset: 'wisper' is not one of .* Did you mean 'whisper'"):
            melflow.folder(self.root, preset="wisper")
        with self.assertRaisesRegex(ValueError, "^preset whisper is for samples at 16000 Hz, and sample_rate is 44100: leave it out, or"):
            melflow.folder(self.root, preset="whisper", sample_rate=44100)
        with self.assertRaisesRegex(TypeError, "mel has no option 'hop_length'; use 'hop' instead: 80, in samples"):
            melflow.folder(self.root, **{**options, "hop_length": 80})
        with self.assertRaisesRegex(ValueError, "^table is dict, pandas or polars, not 'excel'"):
            melflow.folder(self.root, table="excel", **options)

    def test_lost_recordings_beyond_the_first_are_in_remarks(self):
        options = dict(sample_rate=8000, n_fft=256, hop=80, n_mels=20)
        broken = os.path.join(self.folder.name, "broken")
        os.makedirs(broken, exist_ok=True)
        for i in range(5):
            with open(os.path.join(broken, f"{i}.wav"), "wb") as file:
                file.write(b"RIFF")
        shutil.copy(os.path.join(self.root, "ant", "000.wav"), os.path.join(broken, "good.wav"))
        remarks = []
        with self.assertWarnsRegex(UserWarning, r"^5 of 6 recordings gave no rows:\n(  .*\n){3}  and 2 more; a list given as `remarks` gets all$"):
            table = melflow.folder(broken, remarks=remarks, **options)
        self.assertEqual(table["path"], ["good.wav"])
        self.assertEqual([(r["path"], r["status"]) for r in remarks], [(f"{i}.wav", "failed") for i in range(5)])
        remarks = []
        with self.assertRaisesRegex(melflow.RunError, "and 2 more; a list given as `remarks` gets all$"):
            melflow.features([os.path.join(broken, name) for name in sorted(os.listdir(broken))], remarks=remarks, **options)
        self.assertEqual([(r["index"], r["status"]) for r in remarks], [(i, "failed") for i in range(5)])
        self.assertIn("decode: ", remarks[4]["reason"])
        with self.assertRaisesRegex(TypeError, "^remarks is a list, to which"):
            melflow.folder(broken, remarks={}, **options)

    def test_arguments_that_are_not_there(self):
        path = os.path.join(self.root, "ant", "000.wav")
        for error, what, call in [
            (TypeError, r"^melflow.folder has no argument 'label'. Did you mean 'labels'\?$", lambda: melflow.folder(self.root, label="parent_dir", preset="whisper")),
            (TypeError, "^melflow.features has no argument 'labels'; melflow.folder has it$", lambda: melflow.features(path, labels="parent_dir", preset="whisper")),
            (TypeError, "^melflow.show has no argument 'titel'. Did you mean 'title'", lambda: melflow.show(path, titel="x", preset="whisper")),
            (melflow.ConfigError, "^presets: unknown option of mel. Did you mean 'preset'", lambda: melflow.features(path, presets="whisper")),
        ]:
            with self.subTest(what), self.assertRaisesRegex(error, what):
                call()
        for call in (lambda: melflow.run("{}", stop_after="2s"), lambda: melflow.explain("{}", seconds="2s"), lambda: melflow.tune("{}", budget="1min")):
            with self.assertRaisesRegex(TypeError, "is a number of seconds, not '"):
                call()

    def test_damaged_recordings_are_told(self):
        options = dict(sample_rate=8000, n_fft=256, hop=80, n_mels=20)
        with open(os.path.join(self.root, "ant", "000.wav"), "rb") as file:
            data = file.read()
        root = os.path.join(self.folder.name, "damaged")
        os.makedirs(root)
        for name, share in (("half.wav", 0.5), ("most.wav", 0.95), ("whole.wav", 1)):
            with open(os.path.join(root, name), "wb") as file:
                file.write(data[:int(len(data) * share)])
        half, most, whole = (os.path.join(root, name) for name in ("half.wav", "most.wav", "whole.wav"))
        why = r'decode: short: the header promises .* of it is lost, more than a tenth \(truncated="keep" uses the rest\)$'
        for audio in (half, data[:len(data) // 2], io.BytesIO(data[:len(data) // 2]), [whole, half]):
            with self.assertRaisesRegex(melflow.RunError, why):
                melflow.features(audio, **options)
        with self.assertRaisesRegex(melflow.RunError, why):
            melflow.show(half, **options)
        for audio in (most, data[:int(len(data) * 0.95)], [whole, most]):
            with self.assertWarnsRegex(UserWarning, "(most.wav|audio): decode: short: the header promises") as said:
                rows = melflow.features(audio, **options)
            self.assertEqual(said.filename, __file__)
        self.assertEqual(len(rows), 2)
        for audio in (half, data[:len(data) // 2], [whole, half]):
            with self.assertWarnsRegex(UserWarning, "short: the header promises"):
                rows = melflow.features(audio, truncated="keep", **options)
            rows = rows[1] if isinstance(rows, list) else rows
            np.testing.assert_array_equal(rows, melflow.features(np.frombuffer(data[44:len(data) // 2 & ~1], np.int16), **options))
        with self.assertWarnsRegex(UserWarning, "half.wav: decode: short"):
            melflow.show(half, truncated="keep", **options)
        with self.assertRaisesRegex(melflow.RunError, "most.wav: decode: short: the header promises"):
            melflow.features(most, truncated="fail", **options)
        with self.assertRaises(melflow.RunError) as raised:
            melflow.features([half, whole, "nowhere.wav", half, half[:-8] + "none.wav", most], **options)
        self.assertRegex(str(raised.exception), r"^4 of 6 recordings gave no rows:\n  \[0\] .*half.wav: decode: short.*\n  \[2\] .*nowhere.wav'\n"
                         r"  \[3\] .*half.wav: decode: short: .*\n  and 1 more; a list given as `remarks` gets all$")
        with self.assertWarnsRegex(UserWarning, r"^2 of 3 recordings have a warning:\n  \[0\] .*most.wav: decode: short.*\n  \[2\] audio: decode: short"):
            melflow.features([most, whole, data[:int(len(data) * 0.95)]], **options)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            melflow.features([whole, whole], **options)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            table = melflow.folder(root, **options)
        self.assertEqual(table["path"], ["most.wav", "whole.wav"])
        self.assertRegex(str(said[0].message), '^1 of 3 recordings gave no rows:\n  half.wav: short: .* more than a tenth \\(truncated="keep" uses')
        self.assertRegex(str(said[1].message), "^1 of 3 recordings have a warning:\n  most.wav: short: ")
        with self.assertWarnsRegex(UserWarning, "^2 of 3 recordings have a warning:\n  half.wav: short: .*\n  most.wav: short: "):
            table = melflow.folder(root, truncated="keep", **options)
        self.assertEqual(table["path"], ["half.wav", "most.wav", "whole.wav"])
        with self.assertRaisesRegex(melflow.RunError, r'all files failed \(1\) by decode: short: .* \(truncated="keep" uses the rest\)'):
            melflow.folder(root, include="half.wav", **options)

    def test_a_channel_of_a_file(self):
        path = os.path.join(self.folder.name, "opposite.wav")
        left = (np.sin(np.arange(8000) / 9) * 9000).astype(np.int16)
        with wave.open(path, "wb") as out:
            out.setnchannels(2)
            out.setsampwidth(2)
            out.setframerate(8000)
            out.writeframes(np.stack([left, -left], 1).tobytes())
        options = dict(sample_rate=8000, n_fft=256, hop=80, n_mels=20)
        with self.assertWarnsRegex(UserWarning, 'opposite.wav: decode: its channels cancel each other, .*; downmix="left" takes'):
            melflow.features(path, **options)
        expected = melflow.features(left, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(melflow.features(path, downmix="left", **options), expected)
            rows = melflow.folder(self.folder.name, include="opposite.wav", downmix=1, **options)["features"][0]
        np.testing.assert_array_equal(rows, expected)

    def test_none_unsets_what_a_preset_sets(self):
        root = os.path.join(self.folder.name, "faint")
        os.makedirs(root)
        samples = (np.sin(np.arange(16000) / 5) * np.repeat([20000, 0.6], 8000)).astype(np.int16)
        with wave.open(os.path.join(root, "a.wav"), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(16000)
            out.writeframes(samples.tobytes())

        def of_graph(**options):
            graph = melflow.Graph()
            graph.file_list(root=root).disk_read().decode().mel(preset="whisper", **options).batches()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of windows of 30 s
                return next(iter(melflow.Loader(graph)))["mel"][0]

        clipped, whole = melflow.features(samples, 16000, preset="whisper"), melflow.features(samples, 16000, preset="whisper", top_db=None)
        self.assertLess(whole.min(), clipped.min() - 0.1)
        for make in (of_graph, lambda **options: melflow.features(os.path.join(root, "a.wav"), preset="whisper", **options),
                     lambda **options: melflow.folder(root, preset="whisper", **options)["features"][0]):
            np.testing.assert_array_equal(make(), clipped)
            np.testing.assert_array_equal(make(top_db=None), whole)
        self.assertEqual(melflow.Graph.of("version: 1\ngraph: {mel: {stage: mel, top_db: null}}\n").to_dict()["graph"]["mel"],
                         melflow.Graph().add("mel", top_db=None).options)

    def test_pictures(self):
        path, out = self.yaml("shown")
        melflow.run(path)
        rows = melflow.open(out)
        shown = [melflow.show(rows, 3), melflow.show(out, rows.path[3]), melflow.show(np.random.default_rng(1).random((50, 20)), unit="power"),
                 melflow.show(os.path.join(self.root, "ant", "000.wav"), preset="whisper")]
        for picture in shown:
            self.assertTrue(picture._repr_svg_().startswith("<svg "), picture)
        to = os.path.join(self.folder.name, "picture.svg")
        shown[0].save(to)
        with open(to, encoding="utf-8") as file:
            self.assertEqual(file.read(), shown[0].svg)
        self.assertEqual(shown[0].svg, shown[1].svg)
        self.assertIn(">音/a.wav</text>", melflow.show(np.zeros((5, 4)), title="音/a.wav").svg)
        with self.assertRaisesRegex(AttributeError, 'is SVG since melflow 0.2: .svg has it, and .save'):
            getattr(shown[0], "png")
        self.assertFalse(hasattr(shown[0], "other"))
        with self.assertRaisesRegex(ValueError, "a.png': pictures are written as SVG; end the name in .svg"):
            shown[0].save("a.png")
        with self.assertRaisesRegex(ValueError, "there is no recording 'ant/00.wav'. Did you mean 'ant/00\\d.wav'"):
            melflow.show(rows, "ant/00.wav")
        with self.assertRaisesRegex(IndexError, "recording 30 of 30"):
            melflow.show(out, 30)
        with self.assertRaisesRegex(ValueError, r"rows have the axes \[frames, bands\], these have the shape \(3,\)"):
            melflow.show([1, 2, 3])
        with self.assertRaisesRegex(TypeError, "preset: for a file's path"):
            melflow.show(np.zeros((3, 3)), preset="whisper")

    def test_the_program_as_functions(self):
        path, out = self.yaml("program")
        first = melflow.run(path, sets={"rows.n_mels": 24}, workers=1)
        self.assertEqual(first["outputs"][0]["path"] if "outputs" in first else out, out)
        self.assertEqual(melflow.open(out).shape[1], 24)
        again = melflow.update(path, sets={"rows.n_mels": 24})
        self.assertEqual(again["files"]["ok"], first["files"]["ok"])
        self.assertEqual(melflow.inspect(out)["rows"], len(melflow.open(out)))
        with self.assertRaisesRegex(melflow.ConfigError, "unknown option"):
            melflow.run(path, sets={"rows.nmels": 24})


if __name__ == "__main__":
    unittest.main()
