"""Some of the random pipelines of tests/long/random_python_graphs.py, each compared with a loop in NumPy."""

import os
import random
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../long"))
import random_python_graphs as graphs  # noqa: E402


class RandomGraphsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.root = folder.name, os.path.join(folder.name, "audio")
        graphs.make_corpora(self.root)

    def check(self, seed, times=1):
        plan = graphs.Plan(random.Random(seed), 0)
        outputs, outcomes = graphs.expected(plan, self.root)
        for i in range(times):
            with self.subTest(seed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                graphs.run(plan, self.root, self.folder, 1 + i % 3, outputs, outcomes)

    def test_rows_are_those_of_a_loop(self):
        for seed in range(20):
            self.check(seed, 2)

    def test_a_recording_that_is_lost_in_one_output_and_waits_in_another(self):
        self.check(11 * 1000003 + 2131, 20)  # rows behind it were lost in one run of forty


if __name__ == "__main__":
    unittest.main()
