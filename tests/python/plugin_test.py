"""Plug-ins in this process and in those that it starts. The plug-in is the stage of apps/own_stage, compiled here and
linked with the library of the package."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import melflow
import numpy as np

import corpus

REPOSITORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LIBRARY = os.path.join(os.path.dirname(melflow.__file__), "lib", "libmelflow.so.0")
FEATURES = """
import sys, melflow, numpy
print(melflow.Features(sys.argv[1])(numpy.ones(8000, dtype=numpy.float32) / 2, 8000).shape)
"""


@unittest.skipUnless(shutil.which("c++"), "there is no compiler")
class PluginTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.plugin = os.path.join(cls.folder, "loudness.so")
        subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", "-DFMT_HEADER_ONLY", "-I", REPOSITORY, "-o",
                        cls.plugin, os.path.join(REPOSITORY, "apps", "own_stage", "loudness.cpp"), LIBRARY], check=True)
        root = os.path.join(cls.folder, "audio")
        corpus.make_corpus(root, 8)
        chain = "  loud: {stage: loudness, from: decode}\n" + corpus.MEL
        cls.written = os.path.join(cls.folder, "rows.h5")
        cls.text = corpus.pipeline(root, f"stage: hdf5_write, path: {cls.written}", chain=chain)
        cls.text = cls.text.replace("segment, from: decode", "segment, from: loud")
        cls.batches = cls.text.replace(f"stage: hdf5_write, path: {cls.written}", "stage: batches")

    def setUp(self):
        patch = unittest.mock.patch.dict(os.environ)
        patch.start()
        self.addCleanup(patch.stop)

    def python(self, text, **variables):
        """What a process of its own says, which has loaded nothing."""
        ended = subprocess.run([sys.executable, "-c", FEATURES, text], capture_output=True, text=True,
                               env={**os.environ, **variables})
        return ended.stdout + ended.stderr

    def test_by_the_pipeline_or_the_environment(self):
        self.assertIn("unknown stage 'loudness'; `melflow stages` lists all stages, and melflow.load_plugin(FILE) adds",
                      self.python(self.batches))
        self.assertIn("(101, 20)", self.python(f"plugins: {self.plugin}\n" + self.batches))
        self.assertIn("(101, 20)", self.python(self.batches, MELFLOW_PLUGINS=self.plugin))
        self.assertIn("ConfigError: MELFLOW_PLUGINS: none.so: there is no such file",
                      self.python(self.batches, MELFLOW_PLUGINS="none.so"))

    def test_loaded_here_and_by_what_is_started(self):
        melflow.load_plugin(self.plugin)
        melflow.load_plugin(self.plugin)
        self.assertEqual(os.environ["MELFLOW_PLUGINS"], self.plugin)
        rows = melflow.Features(self.batches)(np.ones(8000, dtype=np.float32) / 2, 8000)
        self.assertEqual(rows.shape, (101, 20))
        with self.assertRaisesRegex(melflow.RunError, "loud: has a level of -inf dB, below min_db -60"):
            melflow.Features(self.batches)(np.zeros(8000, dtype=np.float32), 8000)
        loaded = sum(len(batch["path"]) for batch in melflow.Loader(self.batches, batch_size=4))
        report = melflow.run(self.text)
        self.assertEqual(report["files"]["ok"], 7)
        self.assertGreater(loaded, 0)
        self.assertEqual(report["config"]["plugins"], [self.plugin])

    def test_what_is_refused(self):
        other = os.path.join(self.folder, "other.so")
        node = b"MELFLOW_" + melflow.__version__.rpartition(".")[0].encode()
        with open(self.plugin, "rb") as old, open(other, "wb") as new:
            new.write(old.read().replace(node, node[:-1] + b"x"))
        for name, said in ((other, f"other.so: was built for melflow .*x, and this is {melflow.__version__}"),
                           ("none.so", "none.so: there is no such file"),
                           (sys.executable, "cannot be loaded: "),
                           ("a:b.so", "a:b.so: the path of a plug-in has no ':'")):
            with self.subTest(name), self.assertRaisesRegex(melflow.ConfigError, said):
                melflow.load_plugin(name)
        self.assertNotIn("other.so", os.environ.get("MELFLOW_PLUGINS", ""))

    @unittest.skipUnless(importlib.util.find_spec("distributed"), "distributed is not installed")
    def test_jobs_on_a_cluster_load_those_of_the_client(self):
        from distributed import Client, LocalCluster
        from melflow import distributed

        path = os.path.join(self.folder, "named.yaml")
        with open(path, "w", encoding="utf-8") as out:
            out.write(f"plugins: [{self.plugin}]\n" + self.text.replace("rows.h5", "job.h5"))
        job = os.path.join(self.folder, "job")
        os.environ.pop("MELFLOW_PLUGINS", None)
        subprocess.run([os.environ["MELFLOW_PROGRAM"], "plan", path, "-o", job], check=True, stdout=subprocess.DEVNULL)
        with LocalCluster(n_workers=1, dashboard_address=None) as cluster, Client(cluster) as client:
            with self.assertRaisesRegex(melflow.ConfigError, r"give your own with melflow\.load_plugin\(FILE\)"):
                distributed.run(path, client, job=job)
            melflow.load_plugin(self.plugin)
            self.assertEqual(distributed.run(path, client, job=job, merge=False)["done"], 1)  # which would write beside the job


if __name__ == "__main__":
    unittest.main()
