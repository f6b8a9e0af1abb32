"""fit_samples and normalize_samples beside NumPy: in melflow.features, melflow.Features, a Loader and by number."""

import os
import tempfile
import unittest
import wave

import melflow
import numpy as np

RATE = 8000


def deviation(x, eps=1e-7):
    return (x - x.mean()) / np.sqrt(x.var() + eps)


def vibevoice(x):
    x = x * 10 ** (-25 / 20) / (np.sqrt(np.mean(x ** 2)) + 1e-6)
    peak = np.abs(x).max()
    return x / (peak + 1e-6) if peak > 1 else x


def to_multiple(x, multiple, mode="constant"):
    return np.pad(x, (0, -len(x) % multiple), mode)


def repeatpad(x, length):  # longer ones are cut at the end
    x = np.tile(x, length // len(x)) if len(x) < length else x[:length]
    return np.pad(x, (0, length - len(x)))


CASES = (
    ("wav2vec2", deviation, [{"stage": "normalize_samples"}]),
    ("omniasr", lambda x: deviation(x, 1e-5), [{"stage": "normalize_samples", "eps": 1e-5}]),
    ("vibevoice", lambda x: to_multiple(vibevoice(x), 3200),
     [{"stage": "normalize_samples", "by": "rms", "level": "-25dB", "limit": True}, {"stage": "fit_samples", "multiple": 3200}]),
    ("peak", lambda x: x * 10 ** (-3 / 20) / np.abs(x).max(), [{"stage": "normalize_samples", "by": "peak", "level": -3}]),
    ("pe_audio", lambda x: to_multiple(x, 1920, "reflect"), [{"stage": "fit_samples", "multiple": 1920, "pad_mode": "reflect"}]),
    ("kyutai", lambda x: np.pad(x, (800, 1200)), [{"stage": "fit_samples", "pad_left": "100ms", "pad_right": 1200}]),
    ("clap", lambda x: repeatpad(x, 9000), [{"stage": "fit_samples", "length": 9000, "pad_mode": "repeat_whole"}]),
    ("clap repeat", lambda x: np.tile(x, 9000 // len(x) + 1)[:9000], [{"stage": "fit_samples", "length": 9000, "pad_mode": "repeat"}]),
)
MEL = dict(n_fft=256, hop=100, n_mels=8)


def nodes(stages):
    """The nodes of a pipeline's text, from decode to `cut`."""
    last, out = "decode", ""
    for number, node in enumerate(stages):
        options = "".join(f", {name}: {str(value).replace('True', 'true')}" for name, value in node.items())
        out += f"  n{number}: {{from: {last}{options}}}\n"
        last = f"n{number}"
    return out + f"  cut: {{stage: segment, from: {last}}}\n"


class SampleNumbersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        random = np.random.default_rng(3)
        cls.samples = {}
        for name, count in (("a.wav", 700), ("b.wav", 4800), ("c.wav", 12345), ("d.wav", 90000)):
            loud = np.abs(np.sin(np.arange(count) / 900))
            cls.samples[name] = (random.normal(300, 4000, count) * loud).astype(np.int16)
            with wave.open(os.path.join(cls.folder.name, name), "wb") as file:
                file.setparams((1, 2, RATE, 0, "NONE", ""))
                file.writeframes(cls.samples[name].tobytes())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def pipeline(self, stages, last, write="stage: batches", block="64KiB"):
        return ("version: 1\ngraph:\n"
                f"  files: {{stage: file_list, root: {self.folder.name}, include: ['*.wav'], labels: none}}\n"
                "  read: {stage: disk_read, from: files}\n"
                f"  decode: {{stage: decode, from: read, block: {block}}}\n" + nodes(stages) +
                f"  last: {{{last}, from: cut, sample_rate: {RATE}}}\n  out: {{{write}, from: last}}\n")

    def test_samples_are_those_of_numpy_in_every_way_to_them(self):
        for name, formula, stages in CASES:
            with self.subTest(name):
                expected = {of: formula(x / 32768.0) for of, x in self.samples.items()}
                text = self.pipeline(stages, "stage: samples")
                features, by_number = melflow.Features(text), melflow.open(text)
                out = os.path.join(self.folder.name, f"{name}.h5")
                melflow.run(self.pipeline(stages, "stage: samples", f"stage: hdf5_write, path: '{out}'", "1MiB"))
                rows = melflow.open(out)
                features.check(rows.attributes["feature_fingerprint"])
                loaded = {path: batch["waveform"][i, :batch["length"][i]].ravel()
                          for batch in melflow.Loader(text, batch_size=2, shuffle=False, workers=2)
                          for i, path in enumerate(batch["path"])}
                for i, path in enumerate(rows.path):
                    is_ = rows.recording(i).ravel()
                    np.testing.assert_array_equal(features(self.samples[path], RATE).ravel(), is_)
                    np.testing.assert_array_equal(by_number.recording(i).ravel(), is_)
                    np.testing.assert_array_equal(loaded[path], is_)
                    np.testing.assert_allclose(is_, expected[path], rtol=2e-7, atol=2e-10)

    def test_features_take_the_stages_before_and_behind_mel(self):
        stack = [{"stage": "stack", "frames": 2}, {"stage": "fit_rows", "multiple": 8}]
        for name, _, stages in CASES:
            with self.subTest(name):
                text = self.pipeline(stages, "stage: mel, " + ", ".join(f"{k}: {v}" for k, v in MEL.items()))
                expected = melflow.Features(text)
                for path, samples in self.samples.items():
                    rows = melflow.features(samples, RATE, before=stages, **MEL)
                    np.testing.assert_array_equal(rows, expected(samples, RATE))
                    file = melflow.features(os.path.join(self.folder.name, path), RATE, before=stages, **MEL)
                    np.testing.assert_array_equal(file, rows)
                    pairs = melflow.features(samples, RATE, before=stages, after=stack, **MEL)
                    whole = rows[:len(rows) // 2 * 2].reshape(-1, 16)
                    np.testing.assert_array_equal(pairs, np.pad(whole, ((0, -len(whole) % 8), (0, 0))))
        table = melflow.folder(self.folder.name, sample_rate=RATE, include=["*.wav"], before=CASES[0][2], after=stack, **MEL)
        for path, rows in zip(table["path"], table["features"]):
            np.testing.assert_array_equal(rows, melflow.features(self.samples[path], RATE, before=CASES[0][2], after=stack, **MEL))

    def test_a_resample_node_before_mel_is_one_more(self):
        """Not one in place of the node that makes the rate of files that of mel."""
        own, low = ({"stage": "resample", "rate": rate} for rate in (RATE, RATE // 2))
        for before in ([own], [low, own]):
            with self.subTest(before):
                expected = melflow.Features(self.pipeline([own, *before], "stage: mel, " + ", ".join(f"{k}: {v}" for k, v in MEL.items())))
                for path, samples in self.samples.items():
                    rows = melflow.features(samples, RATE, before=before, **MEL)
                    np.testing.assert_array_equal(rows, expected(samples, RATE))
                    np.testing.assert_array_equal(melflow.features(os.path.join(self.folder.name, path), RATE, before=before, **MEL), rows)

    def test_wrong_nodes_are_named(self):
        for before in ("fit_samples", {"stage": "fit_samples"}, [{"multiple": 2}], [3]):
            with self.assertRaisesRegex(TypeError, "before is a list of nodes such as"):
                melflow.features(self.samples["a.wav"], RATE, before=before, **MEL)
        with self.assertRaisesRegex(melflow.ConfigError, "fit_samples: needs length, multiple"):
            melflow.features(self.samples["a.wav"], RATE, before=[{"stage": "fit_samples"}], **MEL)
        with self.assertRaisesRegex(melflow.RunError, "is longer than hold: more than 80 samples"):
            melflow.features(self.samples["a.wav"], RATE, before=[{"stage": "normalize_samples", "hold": "10ms"}], **MEL)


if __name__ == "__main__":
    unittest.main()
