"""melflow.check_front_end: code of one's own beside a front end."""

import json
import os
import subprocess
import sys
import unittest

import melflow
import numpy as np


def program(*words, code=0):
    started = os.path.join(os.path.dirname(sys.executable), "melflow")
    ended = subprocess.run([started, *words], capture_output=True, text=True, check=False)
    if ended.returncode != code:
        raise AssertionError(ended)
    return ended


class FrontEndCheckTest(unittest.TestCase):
    def test_an_equal_function_is_equal(self):
        check = melflow.check_front_end(lambda x, rate: melflow.features(x, rate, preset="kaldi"), preset="kaldi")
        self.assertTrue(check.ok)
        self.assertEqual(str(check), f"equal on {check.signals} signals")
        self.assertGreaterEqual(check.signals, 6)

    def test_the_usual_mistakes_are_named(self):
        for preset, change, text in (("kaldi", {"periodic": True}, "periodic: true"), ("nemo", {"drop_last": False}, "drop_last: false"),
                                     ("whisper", {"mel_scale": "htk"}, "mel_scale: htk"), ("whisper", {"top_db": None}, "top_db: null")):
            with self.subTest(text):
                check = melflow.check_front_end(lambda x, rate: melflow.features(x, rate, preset=preset, **change), preset=preset)
                self.assertFalse(check.ok)
                self.assertIn(text, check.as_with)
        self.assertIn("rows, not", str(melflow.check_front_end(lambda x, rate: melflow.features(x, rate, preset="nemo", drop_last=False), preset="nemo")))

    def test_the_frame_and_the_size_of_a_difference(self):
        def wrong(x, rate):
            rows = melflow.features(x, rate, preset="kaldi").copy()
            rows[-1, 3] += 0.5
            return rows

        check = melflow.check_front_end(wrong, preset="kaldi")
        voice = check.differences[0]
        self.assertEqual((voice.signal, voice.frames, voice.at), ("voice", [voice.rows - 1], (voice.rows - 1, 3)))
        self.assertAlmostEqual(voice.largest, 0.5, places=5)
        self.assertEqual(check.as_with, [])

    def test_wrong_shapes(self):
        with self.assertRaisesRegex(ValueError, r"not \[frames, 23\]; transpose it"):
            melflow.check_front_end(lambda x, rate: np.zeros((23, 98)), preset="kaldi")
        with self.assertRaisesRegex(TypeError, "preset of a model, or sample_rate"):
            melflow.check_front_end(lambda x, rate: None)

    def test_vectors_are_the_rows_of_their_samples(self):
        made = json.loads(json.dumps(melflow.vectors(preset="kaldi")))
        self.assertEqual((len(made["cases"]), made["sample_rate"], made["mel"]["window"]), (20, 16000, "povey"))
        for case in made["cases"]:
            samples = np.array(made["signals"][case["signal"]][:case["count"]], np.int16)
            if case["rows"]:
                self.assertTrue(np.array_equal(np.array(case["rows"], np.float32), melflow.features(samples, 16000, preset="kaldi")))
            else:
                self.assertLess(len(samples), 400)

    def test_the_verb_prints_them(self):
        made = json.loads(program("vectors", "--preset", "kaldi", "--set", "n_mels=40", "--set", "window=hamming").stdout)
        self.assertEqual((made["mel"]["n_mels"], made["mel"]["window"]), (40, "hamming"))
        for words, text in ((("--preset", "kaldi", "--set", "n_mels"), "'n_mels' is not OPTION=VALUE"), ((), "preset of a model, or sample_rate"),
                            (("--preset", "kalid"), "kalid")):
            ended = program("vectors", *words, code=1)
            self.assertIn(text, ended.stderr)


if __name__ == "__main__":
    unittest.main()
