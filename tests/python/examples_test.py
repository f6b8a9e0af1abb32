"""The examples of docs/examples that train: from audio and from rows they come to the same end."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import melflow

import corpus

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/examples")
CASE = dict(segment=", length: 4000, hop: 4000", files=", splits: ratio, split_ratios: {train: 70, val: 30}",
            chain=corpus.MEL.replace("n_mels: 20", "n_mels: 40").replace("  rows:", "  mel:"))


def has(name):
    return importlib.util.find_spec(name) is not None


def pipeline(root, sink):
    return corpus.pipeline(root, sink, **CASE).replace("from: rows", "from: mel")


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = os.path.join(folder.name, "audio")
        corpus.make_corpus(root)
        for i in range(12, 60, 13):  # broken ones, of which audio gives what is before the break, and a file nothing
            os.remove(os.path.join(root, ("ant", "bee", "cat")[i % 3], f"{i:03}.wav"))
        self.audio = os.path.join(folder.name, "train.yaml")
        with open(self.audio, "w", encoding="utf-8") as out:
            out.write(pipeline(root, "stage: batches"))
        self.rows = corpus.write_rows(folder.name, "rows", pipeline(
            root, f"stage: hdf5_write, path: {folder.name}/rows.h5"))

    def check(self, example):
        ended = [subprocess.run([sys.executable, "-W", "ignore", os.path.join(EXAMPLES, example), source, "2"],
                                capture_output=True, text=True, timeout=300) for source in (self.audio, self.rows)]
        for e in ended:
            self.assertEqual(e.returncode, 0, e.stderr)
        self.assertRegex(ended[0].stdout, r"(?s)epoch 0: .*epoch 1: .*val: \d+ of \d+ recordings")
        self.assertEqual(ended[0].stdout, ended[1].stdout)

    @unittest.skipUnless(has("torch"), "torch is not installed")
    def test_torch(self):
        self.check("train_torch.py")

    @unittest.skipUnless(has("jax"), "jax is not installed")
    def test_jax(self):
        self.check("train_jax.py")

    @unittest.skipUnless(has("torch"), "torch is not installed")
    def test_batches_go_through_torchs_loader(self):
        from torch.utils.data import DataLoader

        for batches in (melflow.Loader(self.audio, batch_size=4), melflow.open(self.audio).batches(4)):
            expected = [b["file"].tolist() for b in batches]
            batches.set_epoch(0)
            through = DataLoader(batches.as_torch(), batch_size=None, collate_fn=lambda b: b["file"].tolist())
            self.assertEqual(list(through), expected)
            with self.assertRaisesRegex(RuntimeError, "num_workers=0"):
                list(DataLoader(batches.as_torch(), batch_size=None, collate_fn=lambda b: 0, num_workers=1))

    @unittest.skipUnless(has("nbclient") and has("ipykernel"), "nbclient or ipykernel is not installed")
    def test_tutorial(self):
        import nbclient
        import nbformat

        with open(os.path.join(EXAMPLES, "tutorial.ipynb"), encoding="utf-8") as file:
            notebook = nbformat.read(file, 4)
        nbclient.NotebookClient(notebook, timeout=120).execute()
        shown = ["".join(str(output) for output in cell.get("outputs", [])) for cell in notebook.cells]
        self.assertEqual(sum("image/png" in text for text in shown), 1)
        self.assertEqual(sum("iframe srcdoc" in text for text in shown), 2)  # the graph, and a report
        self.assertEqual(sum("(10, 40)" in text for text in shown), 1)  # the update: new recordings, and those kept


if __name__ == "__main__":
    unittest.main()
