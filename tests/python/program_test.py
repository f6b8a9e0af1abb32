"""The program that the package has."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import melflow
from melflow import program

STARTED = os.path.join(os.path.dirname(sys.executable), "melflow")


def started(*words, **options):
    return subprocess.run([STARTED, *words], capture_output=True, text=True, **options)


class ProgramTest(unittest.TestCase):
    def test_it_is_beside_python_with_all_verbs_and_pipelines(self):
        self.assertEqual(started("--version").stdout.splitlines()[0], f"melflow {melflow.__version__}")
        verbs = subprocess.run([program.path(), "--help"], capture_output=True, text=True).stdout
        self.assertIn("\n  verify-parity ", verbs)
        self.assertEqual(started("--help").stdout, verbs)
        self.assertEqual(started("validate", "demo", "--var", "DATA=.", "--var", "OUT=o.h5").returncode, 0)

    def test_it_has_melflows_own_transform_and_says_so(self):
        self.assertEqual(started("--version").stdout.splitlines()[1:], ["transform: melflow"])
        said = {}
        for n_fft in (512, 401):
            graph = f"{{files: {{stage: file_list, root: .}}, mel: {{stage: mel, from: files, n_fft: {n_fft}, hop: 160, sample_rate: 16000}}, "
            graph += "out: {stage: hdf5_write, from: mel, path: out.h5}}"
            shown = started("inspect", "--features", "-", "--json", input=f"version: 1\ngraph: {graph}\n")
            said[n_fft] = json.loads(shown.stdout)["instruction_set"]
        self.assertEqual(said[401], said[512] + ", transform by melflow")

    def test_input_and_exit_status_pass_through(self):
        ended = started("validate", "-", input="version: 1\ngraph: {}\n")
        self.assertEqual((ended.returncode, ended.stdout), (78, ""))
        self.assertIn("-:2", ended.stderr)

    def test_a_stage_of_ones_own_takes_headers_which_it_has_not(self):
        with tempfile.TemporaryDirectory() as folder:
            said = started("init", "--stage", "peak_level", cwd=folder).stdout
        self.assertIn("-DCMAKE_PREFIX_PATH=PREFIX    # where melflow and its headers are\n", said)


if __name__ == "__main__":
    unittest.main()
