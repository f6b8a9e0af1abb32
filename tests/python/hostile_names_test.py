"""Some hundred of the names of hostile_names.py in each place; all: hostile_names.py MELFLOW."""

import os
import unittest

import hostile_names


class HostileNamesTest(unittest.TestCase):
    def test_each_place(self):
        for place in hostile_names.PLACES:
            with self.subTest(place):
                *found, _ = hostile_names.differences(os.environ["MELFLOW_PROGRAM"], place, 150, 1)
                self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
