"""Every configuration of tests/golden/front_ends.json: values of today's packages, and the nodes that give the same rows.

NumPy alone; tests/golden/make_front_ends.py made the values, by the libraries in double precision."""

import json
import os
import pathlib
import sys
import unittest
import warnings

import melflow
import numpy as np

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
sys.path.append(GOLDEN)

import front_end_cases  # noqa: E402
import front_end_signals  # noqa: E402


POWER = {"preset": "whisper", "log": "none", "normalize": "none", "top_db": None}  # Whisper's bands before the logarithm


def whisper(power):
    """transformers.WhisperFeatureExtractor, from its mel bands on."""
    levels = np.log10(np.maximum(np.asarray(power, float), 1e-10))
    return (np.maximum(levels, levels.max() - 8) + 4) / 4


def bounds_of(letters):
    return 2.0 ** (np.array([ord(c) for c in letters]) - ord("A") - 20)


class FrontEnds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(GOLDEN, "front_ends.json"), encoding="utf-8") as file:
            cls.cases = json.load(file)
        cls.signals = {name: make() for name, make in front_end_signals.SIGNALS.items()}

    def rows(self, case, signal, nodes=None):
        with warnings.catch_warnings():  # of bands without a bin, and of windows
            warnings.simplefilter("ignore")
            made = melflow.Features(front_end_cases.pipeline(nodes or case["nodes"], case["rate"]))(self.signals[signal], case["rate"])
        return made.reshape(-1, made.shape[-1]) if made.ndim == 3 else made.reshape(len(made), -1)

    def ratio(self, case, signal, rows):
        """The largest error in bounds; infinite where there are other rows than the library's, but for zeros of a batch."""
        expected = case["signals"][signal]
        count, *at = expected["rows"]
        values = np.array(expected["values"]).reshape(len(at), -1)
        bounds = bounds_of(expected["bounds"]).reshape(values.shape)
        there = [r for r in at if r < len(rows)]
        if len(rows) > count or np.any(values[len(there):]) or len(rows) < count - case["masked"]:
            return np.inf
        errors = np.abs(rows[np.ix_(there, case["columns"])] - values[:len(there)]) / bounds[:len(there)]
        return errors.max(initial=0)

    def test_each_is_the_librarys(self):
        for name, case in self.cases.items():
            for signal, expected in case["signals"].items():
                with self.subTest(name, signal=signal):
                    if "refused" in expected or expected["rows"][0] <= case["masked"]:
                        self.has_rows_or_says_why(case, signal)
                    else:
                        self.assertLessEqual(self.ratio(case, signal, self.rows(case, signal)), 1)

    def has_rows_or_says_why(self, case, signal):
        """Where the library has none: Kaldi's have no whole frame; others would have to reflect more than there is, or divide 0 by 0."""
        try:
            self.assertTrue(np.isfinite(self.rows(case, signal)).all())
        except melflow.RunError as error:
            self.assertRegex(str(error), "shorter than one frame|has 0 frames|has [0-9]+ frames, [0-9]+ are needed")

    def test_a_wrong_option_is_seen(self):
        for what, (name, nodes) in front_end_cases.WRONG.items():
            with self.subTest(what):
                case = self.cases[name]
                ratios = {signal: self.ratio(case, signal, self.rows(case, signal, nodes))
                          for signal, expected in case["signals"].items() if expected.get("rows", [0])[0] > 5}
                self.assertGreater(max(ratios.values()), 50, ratios)

    def test_a_preset_is_all_of_its_nodes(self):
        """As the nodes written out, in features and in a graph that goes on after it."""
        speech = self.signals["speech"]
        for preset in ("seamless", "kaldi_voxceleb", "speechbrain_mfcc", "ast_1024"):
            with self.subTest(preset):
                nodes = {"mel": {"preset": preset}}
                case = {"rate": 16000, "nodes": nodes}
                whole = self.rows(case, "speech")
                np.testing.assert_array_equal(melflow.features(speech, 16000, preset=preset), whole)
                mel = melflow.Features(front_end_cases.pipeline(nodes, 16000))
                written = melflow.Features(front_end_cases.pipeline(front_end_cases.written_out(preset), 16000))
                self.assertEqual(mel.fingerprint, written.fingerprint)
                np.testing.assert_array_equal(written(speech, 16000), whole)
                on = self.rows(case, "speech", {**nodes, "fit_rows": {"rows": 7}})
                np.testing.assert_array_equal(on[:min(7, len(whole))], whole[:7])

    def test_features_take_presets_of_samples_and_those_that_begin_before_mel(self):
        speech = self.signals["speech"]
        for stage, preset in (("samples", "wav2vec2"), ("mel", "neucodec"), ("mel", "gemma4")):
            with self.subTest(preset):
                case = {"rate": 16000, "nodes": {stage: {"preset": preset}}}
                made = melflow.features(speech, 16000, preset=preset)
                np.testing.assert_array_equal(made.reshape(len(made), -1), self.rows(case, "speech"))
        with self.assertRaisesRegex(melflow.ConfigError, "granite_speech_5.*no options give its number of frames"):
            melflow.features(speech, 16000, preset="granite_speech_5")

    def test_a_maximum_is_that_of_all_rows_of_a_window(self):
        """Also of rows of padding, which are at the floor that follows from it; each window has its own."""
        speech = self.signals["speech"][:12000]
        x = np.concatenate([speech, speech // 8])
        with warnings.catch_warnings():  # of windows that are not of 30 s
            warnings.simplefilter("ignore")
            windows, power = (melflow.Features(front_end_cases.pipeline({"segment": {"length": 10000, "tail": "pad"}, "mel": mel}, 16000))(x, 16000)
                              for mel in ({"preset": "whisper"}, POWER))
        self.assertEqual(len(windows), 3)
        for got, bands in zip(windows, power):
            np.testing.assert_allclose(got, whisper(bands), atol=2e-6)
            self.assertGreater(got[-1].max(), -1.5)  # of silence alone: log10(1e-10)
        whole = melflow.features(x, 16000, preset="whisper")
        self.assertLess(windows[2].min(), whole.min() - 0.2)

    def test_a_maximum_is_that_of_rows_that_are_left_out_later(self):
        x = self.signals["speech"][:12800] // 50
        x[-10:] = 30000 * (-1) ** np.arange(10)  # in the middle of the first row that is left out
        rows = melflow.features(x, 16000, preset="dots3")
        power = melflow.features(x, 16000, **{**POWER, "preset": "whisper_large_v3"}, before=[{"stage": "fit_samples", "multiple": 1280, "pad_right": 320}])
        self.assertEqual((len(rows), len(power)), (80, 82))
        np.testing.assert_allclose(rows, whisper(power)[:80], atol=2e-6)
        self.assertGreater(np.abs(rows - whisper(power[:80])).max(), 0.1)

    def test_what_a_model_does_to_samples_first_is_said_not_done(self):
        """LAION-CLAP rounds to 16 bits, which its preset's text says; rows of samples that are not rounded are others."""
        x = self.signals["speech"] * np.float32(1e-8)  # a thousandth of the last bit at full scale
        rounded = (np.clip(x, -1, 1) * 32767).astype(np.int16)
        rows = melflow.features(x, 48000, preset="laion_clap")
        self.assertGreater(np.abs(rows - melflow.features(rounded / np.float32(32767), 48000, preset="laion_clap")).max(), 10)
        page = pathlib.Path(__file__).resolve().parents[2] / "docs/features.md"
        self.assertRegex(page.read_text(encoding="utf-8"), r"\| `laion_clap` \| .*, of samples that it does not round to 16 bits \|")

    def test_one_frame_is_normalised_to_zeros(self):
        """NeMo gives zeros, the class of transformers 0 / 0."""
        rows = melflow.features(self.signals["short"], 16000, preset="nemo")
        self.assertEqual((len(rows), np.abs(rows).max()), (1, 0))


if __name__ == "__main__":
    unittest.main()
