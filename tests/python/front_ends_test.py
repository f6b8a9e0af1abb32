"""Every configuration of tests/golden/front_ends.json: values of today's packages, and the nodes that give the same rows.

NumPy alone; tests/golden/make_front_ends.py made the values, by the libraries in double precision."""

import json
import os
import sys
import unittest

import melflow
import numpy as np

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
sys.path.append(GOLDEN)

import front_end_cases  # noqa: E402
import front_end_signals  # noqa: E402


def bounds_of(letters):
    return 2.0 ** (np.array([ord(c) for c in letters]) - ord("A") - 20)


class FrontEnds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(GOLDEN, "front_ends.json"), encoding="utf-8") as file:
            cls.cases = json.load(file)
        cls.signals = {name: make() for name, make in front_end_signals.SIGNALS.items()}

    def rows(self, case, signal, nodes=None):
        made = melflow.Features(front_end_cases.pipeline(nodes or case["nodes"], case["rate"]))(self.signals[signal], case["rate"])
        return made.reshape(-1, made.shape[-1]) if made.ndim == 3 else made.reshape(len(made), -1)

    def ratio(self, case, signal, rows):
        """The largest error in bounds; infinite where there are other rows than the library's, but for zeros of a batch."""
        expected = case["signals"][signal]
        count, *at = expected["rows"]
        values = np.array(expected["values"]).reshape(len(at), -1)
        bounds = bounds_of(expected["bounds"]).reshape(values.shape)
        there = [r for r in at if r < len(rows)]
        if len(rows) > count or np.any(values[len(there):]) or len(rows) < count - case.get("masked", 0):
            return np.inf
        errors = np.abs(rows[np.ix_(there, case["columns"])] - values[:len(there)]) / bounds[:len(there)]
        return errors.max(initial=0)

    def test_each_is_the_librarys(self):
        for name, case in self.cases.items():
            for signal, expected in case["signals"].items():
                if "refused" in expected:
                    continue
                with self.subTest(name, signal=signal):
                    if expected["rows"][0] == 0:
                        with self.assertRaisesRegex(melflow.RunError, "shorter than one frame"):
                            self.rows(case, signal)
                        continue
                    self.assertLessEqual(self.ratio(case, signal, self.rows(case, signal)), 1)


if __name__ == "__main__":
    unittest.main()
