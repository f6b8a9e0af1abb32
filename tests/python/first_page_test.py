"""The code of the site's first page, docs/site/index.md, in the order of the page."""

import contextlib
import os
import re
import tempfile
import unittest
import wave

import melflow
import numpy as np

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/site/index.md")


def write_wav(path, rate):
    with wave.open(path, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes((np.sin(np.arange(rate) * 0.2) * 9000).astype("<i2").tobytes())


class FirstPageTest(unittest.TestCase):
    def test_its_code_runs(self):
        with open(PAGE, encoding="utf-8") as file:
            blocks = re.findall(r"```(python|yaml)\n(.*?)```", file.read(), re.S)
        self.assertEqual([language for language, _ in blocks], ["python", "yaml", "python"])
        (_, calls), (_, pipeline), (_, training) = blocks
        names = {}
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            os.makedirs("clips/one")
            write_wav("clips/a.wav", 16000)
            write_wav("clips/one/b.wav", 44100)
            exec(calls, names)  # pylint: disable=exec-used
            self.assertEqual(names["rows"].shape, (100, 80))
            self.assertEqual(names["table"]["path"], ["a.wav", "one/b.wav"])
            report = melflow.run(pipeline)
            self.assertEqual((report["files"]["ok"], report["files"]["failed"]), (2, 0))
            exec(training, names)  # pylint: disable=exec-used
            self.assertEqual(sorted(names["batch"]["path"]), ["a.wav", "one/b.wav"])
            self.assertEqual((names["batch"]["mel"].shape[0], names["batch"]["mel"].shape[2]), (2, 80))


if __name__ == "__main__":
    unittest.main()
