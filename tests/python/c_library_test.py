"""melflow.h in the package's libmelflow.so gives the rows of melflow.features, bit for bit."""

import array
import glob
import io
import json
import os
import random
import sys
import unittest
import warnings
import wave

import melflow
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../apps"))
import c_libraries as c  # noqa: E402

LIBRARY = glob.glob(os.path.join(os.path.dirname(melflow.__file__), "lib", "libmelflow.so.*"))
PRESETS = c.presets()


def bits(array_):
    return np.ascontiguousarray(array_, np.float32).tobytes()


def wav(samples, rate):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    return out.getvalue()


class CLibraryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = c.Library(LIBRARY[0])

    def setUp(self):
        hidden = warnings.catch_warnings()
        hidden.__enter__()
        self.addCleanup(hidden.__exit__, None, None, None)
        warnings.simplefilter("ignore", UserWarning)  # of plans

    def front(self, kind, text, rate=0):
        return c.Front(self.library, kind, text, rate)

    def test_presets(self):
        self.assertGreater(len(PRESETS), 80)
        for number, name in enumerate(PRESETS):
            front = self.front("preset", name)
            rate = front.rate
            features = melflow.Features(preset=name, sample_rate=rate)
            samples = c.noise(rate + 100 * number, number)
            with self.subTest(name):
                self.assertEqual(front.fingerprint, features.fingerprint)
                rows = bits(features(np.array(samples), rate))
                self.assertEqual(front.rows(samples), rows)
                again = self.front("json", features.to_json())
                self.assertEqual((again.fingerprint, again.rows(samples)), (front.fingerprint, rows))

    def test_any_pieces_at_other_rates(self):
        random_ = random.Random(1)
        for name in ("librosa", "torchaudio", "kaldi", "kaldi_htk", "hifigan", "ast", "voxtral_realtime", "funasr_lfr76"):
            if name not in PRESETS:
                continue
            own = self.front("preset", name).rate
            for rate in (own, 8000, 44100):
                if name in ("librosa", "torchaudio") and rate != own:
                    continue  # have their frames in samples of any rate
                front = self.front("preset", name, rate)
                samples = c.noise(2 * rate, 2, "h")
                whole = bits(melflow.Features(preset=name, sample_rate=own)(np.array(samples), rate))
                for _ in range(3):
                    cuts = sorted(random_.choices(range(len(samples)), k=30))
                    with self.subTest(name, rate=rate):
                        self.assertEqual(front.stream(samples, cuts), whole)

    def test_files(self):
        samples = c.noise(44100, 3, "h")
        data = wav(samples, 44100)
        for name in ("whisper", "wav2vec2", "dac", "speechbrain_mfcc"):
            front = self.front("preset", name)
            with self.subTest(name):
                self.assertEqual(front.rows_of_file(data), bits(melflow.features(data, preset=name)))
                self.assertEqual(self.library.warning(), b"")
        by_hand = self.front("json", json.dumps({"stages": [{"stage": "mel", "n_mels": 40, "snip_edges": False}, {"stage": "deltas"}]}))
        options = dict(n_mels=40, snip_edges=False, center=False, after=[{"stage": "deltas"}])
        self.assertEqual(by_hand.rows_of_file(data), bits(melflow.features(data, sample_rate=16000, **options)))
        self.assertEqual(by_hand.rows(samples[:16000]), bits(melflow.features(np.array(samples[:16000]), 16000, **options)))
        for rate in (22050, 44100):  # frames in samples of any rate
            own = self.front("preset", "librosa", rate)
            features = melflow.Features(preset="librosa", sample_rate=rate)
            self.assertEqual((own.fingerprint, own.rows_of_file(data)), (features.fingerprint, bits(features(data))))
        for options in (dict(downmix="left"), dict(truncated="keep"), dict(pad_to="3s"), dict(pad_to="3s", downmix="left")):
            features = melflow.Features(preset="kaldi", **options)
            again = self.front("json", features.to_json())
            with self.subTest(options):
                self.assertEqual((again.fingerprint, again.rows_of_file(data)), (features.fingerprint, bits(features(data))))
        front.rows_of_file(data[:85000])
        self.assertIn(b"decode: ", self.library.warning())
        with self.assertRaisesRegex(RuntimeError, "^5: .*longer than max_seconds"):
            front.rows_of_file(data, 0.5)
        with self.assertRaisesRegex(RuntimeError, "^5: decode: "):
            front.rows_of_file(b"no sound")
        with self.assertRaisesRegex(RuntimeError, "^5: .*empty"):
            front.rows_of_file(b"")

    def test_pipelines(self):
        text = ("version: 1\ngraph:\n  files: {stage: file_list, root: /}\n  read: {stage: disk_read, from: files}\n"
                "  decode: {stage: decode, from: read}\n  resample: {stage: resample, from: decode, rate: 16000}\n"
                "  mel: {stage: mel, from: resample, preset: kaldi}\n  mfcc: {stage: mfcc, from: mel}\n"
                "  rows: {stage: batches, from: mfcc}\n")
        features = melflow.Features(text)
        front = self.front("yaml", text, 22050)
        samples = c.noise(22050, 4)
        rows = bits(features(np.array(samples), 22050))
        self.assertEqual(front.fingerprint, features.fingerprint)
        self.assertEqual(front.rows(samples), rows)
        self.assertEqual(front.stream(samples, [1, 5, 700, 5000]), rows)
        with self.assertRaisesRegex(RuntimeError, "^2: .*Did you mean 'mfcc'"):
            self.front("yaml", text.replace("stage: mfcc", "stage: mfc"))

    def test_what_cannot_be_a_stream_is_refused(self):
        samples = array.array("f", bytes(4 * 16000))
        for name, says in (("whisper", None), ("wav2vec2", "normalize_samples"), ("dac", "fit_samples")):
            front = self.front("preset", name)
            if says is None:
                self.assertIsNone(front.stream(samples, []))
                continue
            with self.assertRaisesRegex(RuntimeError, f"^3: .*{says}"):
                front.stream(samples, [], c.FINISH_ONLY)


if __name__ == "__main__":
    unittest.main()
