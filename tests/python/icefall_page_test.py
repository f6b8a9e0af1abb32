"""docs/icefall.md as it is, on a corpus like LibriSpeech: run, export, and batches for training where torch and lhotse are installed."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

import melflow
import numpy as np

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/icefall.md")
MISSING = [name for name in ("lhotse", "kaldi_native_io", "soundfile", "torch") if importlib.util.find_spec(name) is None]


def blocks(kind):
    with open(PAGE, encoding="utf-8") as file:
        return re.findall(rf"```{kind}\n(.*?)```", file.read(), re.S)


def make_corpus(root):
    """Utterances of 1 to 4 s as LibriSpeech has them; their samples by name."""
    import soundfile

    random = np.random.default_rng(1)
    samples = {}
    for split, speaker in (("train-clean-100", 19), ("train-clean-100", 26), ("dev-clean", 84)):
        folder = os.path.join(root, split, str(speaker), "198")
        os.makedirs(folder)
        with open(os.path.join(folder, f"{speaker}-198.trans.txt"), "w", encoding="utf-8") as texts:
            for i in range(6):
                name = f"{speaker}-198-{i:04}"
                samples[name] = (random.standard_normal(random.integers(16000, 64000)) * 3000).astype(np.int16)
                soundfile.write(os.path.join(folder, name + ".flac"), samples[name], 16000)
                texts.write(f"{name} SAID {i} BY {speaker}\n")
    return samples


@unittest.skipIf(MISSING, f"{', '.join(MISSING)}: not installed")
class IcefallPageTest(unittest.TestCase):
    def test_from_corpus_to_batches(self):
        from lhotse import CutSet, Fbank, FbankConfig, validate

        commands = [line.split("#")[0].split() for block in blocks("sh") for line in block.splitlines() if line.startswith("melflow ")]
        self.assertEqual([words[1] for words in commands], ["run", "export"])
        code = blocks("python")[0]
        with tempfile.TemporaryDirectory() as folder:
            samples = make_corpus(os.path.join(folder, "LibriSpeech"))
            with open(os.path.join(folder, "fbank.yaml"), "w", encoding="utf-8") as file:
                file.write(blocks("yaml")[0])
            program = os.environ.get("MELFLOW_PROGRAM") or melflow.program.path()
            for words in commands:
                exact = [word for word in words[1:] if word not in ("--compression", "2")]
                subprocess.run([program, *exact], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                               env={**os.environ, "MELFLOW_PYTHON": sys.executable})
            theirs = Fbank(FbankConfig(dither=0.0, snip_edges=False))
            before = os.getcwd()
            os.chdir(folder)
            try:
                cuts = CutSet.from_file("fbank/train-clean-100/cuts.jsonl.gz")
                self.assertEqual(len(list(cuts)), 12)
                for cut in cuts:
                    validate(cut, read_data=True)
                    self.assertEqual(cut.duration, len(samples[cut.id]) / 16000)
                    self.assertEqual(cut.supervisions[0].speaker, cut.id.split("-")[0])
                    rows = theirs.extract(samples[cut.id].astype(np.float32) / 32768, 16000)
                    self.assertLess(np.abs(rows - cut.load_features()).max(), 2e-3)
                page = {}
                exec(compile(code.replace("    batch[\"inputs\"]", "    batches.append(batch)\n    batch[\"inputs\"]"), PAGE, "exec"),
                     page | (names := {"batches": []}))
            finally:
                os.chdir(before)
            self.assertEqual(sum(len(batch["supervisions"]["text"]) for batch in names["batches"]), 12)
            for batch in names["batches"]:
                self.assertEqual(batch["inputs"].shape[2], 80)
                for text, cut in zip(batch["supervisions"]["text"], batch["supervisions"]["cut"]):
                    self.assertEqual(text, cut.supervisions[0].text)

    def test_three_speeds(self):
        from lhotse import CutSet, validate

        page, nodes = blocks("yaml")
        lines = page.splitlines(keepends=True)
        decode = next(i for i, line in enumerate(lines) if line.startswith("  decode:"))
        text = "".join([*lines[:decode], nodes, *lines[decode + 2:]])
        self.assertEqual(text.count("stage: mel"), 1)
        _, code = blocks("python")
        with tempfile.TemporaryDirectory() as folder:
            samples = make_corpus(os.path.join(folder, "LibriSpeech"))
            before = os.getcwd()
            os.chdir(folder)
            try:
                melflow.run(text, vars={"DATA": "LibriSpeech", "OUT": "fbank.h5"})
                with self.assertWarns(UserWarning) as warned:
                    melflow.export("fbank.h5", "fbank", "lhotse", utterance="id")
                self.assertEqual([str(one.message) for one in warned.warnings],
                                 ["lhotse: 18 of 18 recordings have cuts with features alone: each has several results, such as speeds or channels, and no file "
                                  "has the audio of one"])
                exec(compile(code, PAGE, "exec"), page := {"CutSet": CutSet})
                cuts = {cut.id: cut for cut in page["cuts"]}
                for cut in cuts.values():
                    validate(cut, read_data=True)
                    self.assertFalse(cut.has_recording)
            finally:
                os.chdir(before)
            names = [name for name in samples if not name.startswith("84-")]
            self.assertEqual(sorted(cuts), sorted(name + speed for name in names for speed in ("_sp0.9", "", "_sp1.1")))
            for name in names:
                for end, speed in (("_sp0.9", 0.9), ("", 1), ("_sp1.1", 1.1)):
                    self.assertAlmostEqual(cuts[name + end].duration, len(samples[name]) / 16000 / speed, delta=0.011)
                    self.assertEqual(cuts[name + end].supervisions[0].text, cuts[name].supervisions[0].text)


if __name__ == "__main__":
    unittest.main()
