"""melflow.Features, melflow.run and the rest beside what the program writes."""

import os
import sys
import tempfile
import types
import unittest
import unittest.mock
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
        with self.assertRaisesRegex(melflow.RunError, "sampled at 44100 Hz"):
            melflow.features(samples, 44100, preset="whisper")
        with self.assertRaisesRegex(melflow.ConfigError, "Did you mean 'preset'"):
            melflow.features(samples, 16000, presett="whisper")
        for wrong in (samples.reshape(2, -1), samples.astype(np.int32), samples[:0]):
            with self.assertRaises(ValueError):
                melflow.features(wrong, 16000, preset="whisper")

    def test_the_program_as_functions(self):
        path, out = self.yaml("program")
        first = melflow.run(path, sets={"rows.n_mels": 24}, workers=1)
        self.assertEqual(first["outputs"][0]["path"] if "outputs" in first else out, out)
        self.assertEqual(melflow.open(out).shape[1], 24)
        again = melflow.update(path, sets={"rows.n_mels": 24})
        self.assertEqual(again["files"]["ok"], first["files"]["ok"])
        self.assertEqual(melflow.inspect(out)["rows"], len(melflow.open(out)))
        with self.assertRaisesRegex(melflow.RunError, "unknown option"):
            melflow.run(path, sets={"rows.nmels": 24})

    def test_a_bar_of_tqdm(self):
        class Bar:
            def __init__(self, **_):
                self.n, self.total, self.seen, self.said = 0, None, [], []
                bars.append(self)

            def update(self, by):
                self.n += by
                self.seen.append((self.n, self.total))

            def set_postfix_str(self, text):
                self.said.append(text)

            def __enter__(self):
                return self

            def __exit__(self, *_):
                self.closed = True

        bars = []
        program = os.path.join(self.folder.name, "program")
        with open(program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho 'loading 500 of 2,500 files (20%), 3.00 MB read, 50 files/s, 0:15 left' >&2\n"
                       "echo '1,000 of 2,500 files (40%), 0 failed, 0 skipped, 1,234,567 rows, 3.00 MB read, 50 files/s, 61,000 rows/s, "
                       "0:15 left' >&2\n[ $1 = run ] || { echo broken >&2; exit 1; }\n"
                       "echo '{\"files\": {\"found\": 2500, \"ok\": 2498, \"failed\": 1, \"skipped\": 1}}'\n")
        os.chmod(program, 0o755)
        tqdm = {"tqdm": types.ModuleType("tqdm"), "tqdm.auto": types.SimpleNamespace(tqdm=Bar)}
        with unittest.mock.patch.dict(os.environ, MELFLOW_PROGRAM=program):
            with unittest.mock.patch.dict(sys.modules, tqdm):
                self.assertEqual(melflow.run("any.yaml", progress=True)["files"]["ok"], 2498)
                with self.assertRaisesRegex(melflow.RunError, "^broken$"):
                    melflow.update("any.yaml", progress=True)
            with unittest.mock.patch.dict(sys.modules, {"tqdm": None, "tqdm.auto": None}):
                self.assertEqual(melflow.run("any.yaml", progress=True)["files"]["ok"], 2498)
        self.assertEqual([bar.seen for bar in bars], [[(500, 2500), (1000, 2500), (2500, 2500)], [(500, 2500), (1000, 2500)]])
        self.assertEqual([bar.said for bar in bars], [["1,234,567 rows, 61,000 rows/s"]] * 2)
        self.assertTrue(all(bar.closed for bar in bars))


if __name__ == "__main__":
    unittest.main()
