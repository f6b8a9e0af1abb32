"""What melflow.open makes of files that are damaged, say what is not so, or change while they are open."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
import zlib

import h5py
import melflow
import numpy as np

import hostile_outputs


class HostileOutputsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.originals = hostile_outputs.make_originals(os.environ["MELFLOW_PROGRAM"], cls.folder.name)

    def fresh(self, name):
        return hostile_outputs.copy_of(self.originals[name], self.folder.name, "fresh")

    def test_module_and_program_say_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            table, found = hostile_outputs.differences(os.environ["MELFLOW_PROGRAM"], folder, 40, 1)
        self.assertEqual(found, [])
        self.assertEqual(sum(row["files"] for row in table.values()), len(hostile_outputs.CASES) + 40)

    def test_what_is_wrong_is_named(self):
        for case, said in {
                "virtual": "fresh.h5: this file is damaged, .*: /mel is not stored in the file itself",
                "compact": "/mel is stored in the head of the file .layout compact., where rows are in one piece or in chunks",
                "checksums": "/mel has the filter 3 in the place 1 of 1, where only shuffle of 4 bytes .2. and deflate",
                "a link to another file": "/files/path is a link to another file, where the file itself has to have it",
                "a text that is not there": "reading /files/path: there is no text of .* bytes with the number 2139062143 at ",
                "not complete": "fresh.h5: this file is not complete .its attribute 'complete' is 0, not 1.: .* goes on with it",
                "label out of range": "has label number 1000",
                "another path": "this file is damaged: .* is not what was written .index_hash is [0-9a-f]{16}, not [0-9a-f]{16}.; copy",
        }.items():
            path = self.fresh("whole")
            hostile_outputs.case(path, case)
            with self.subTest(case), self.assertRaisesRegex(melflow.RunError, said):
                melflow.open(path)
        with self.assertRaisesRegex(melflow.RunError, "nothing.h5: there is no such file"):
            melflow.open(os.path.join(self.folder.name, "nothing.h5"))

    def test_npy_is_what_hdf5_is(self):
        npy, hdf5 = melflow.open(self.originals["npy"]), melflow.open(self.originals["whole"])
        np.testing.assert_array_equal(npy[:], hdf5[:])
        for name in ("path", "columns", "label_names", "split_names"):
            self.assertEqual(getattr(npy, name), getattr(hdf5, name))
        for name in ("offset", "count", "status", "label", "split", "_hashes", "_size", "_modified"):
            np.testing.assert_array_equal(getattr(npy, name), getattr(hdf5, name))

    def test_index_is_that_of_h5py(self):
        rows = melflow.open(self.originals["whole"])
        with h5py.File(self.originals["whole"]) as file:
            for name in ("offset", "count", "status", "label", "split"):
                expected = file["files"][name][:]
                self.assertEqual(getattr(rows, name).dtype, expected.dtype)
                np.testing.assert_array_equal(getattr(rows, name), expected)
            self.assertEqual(rows.columns, {"animal": file["columns/animal"].asstr()[:].tolist()})
            self.assertEqual(rows.label_names, file["labels/name"].asstr()[:].tolist())
            self.assertEqual(rows.unit, file["mel"].attrs["unit"])
            np.testing.assert_array_equal(rows.mean, file["statistics/mean"][:])
            self.assertEqual(rows.attributes, {name: value for name, value in file.attrs.items()})

    def test_a_chunk_without_a_filter(self):
        """HDF5 may leave any filter of a chunk out, and says so beside it."""
        path = self.fresh("packed")
        expected = melflow.open(path)[:]
        with h5py.File(path, "r+") as file:
            rows = file["mel"]
            first = np.zeros(rows.chunks, rows.dtype)
            first[:] = rows[:rows.chunks[0]]
            rows.id.write_direct_chunk((0, 0), zlib.compress(first.tobytes()), filter_mask=1)
        np.testing.assert_array_equal(melflow.open(path)[:], expected)

    def test_a_file_that_changes_is_told(self):
        for name in ("whole", "packed"):
            path = self.fresh(name)
            rows, batches = melflow.open(path), iter(melflow.open(path).batches(2, prefetch=1))
            next(batches)
            size = path.stat().st_size
            os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
            said = f"fresh.h5: was changed since it was opened, when it had {size} bytes .now {size}., so that its rows may be others"
            with self.subTest(name), self.assertRaisesRegex(melflow.RunError, said):
                rows[0]
            with self.subTest(name), self.assertRaisesRegex(melflow.RunError, said):
                list(batches)

    def test_one_in_its_place_changes_nothing(self):
        path = self.fresh("whole")
        rows = melflow.open(path)
        expected = rows[:]
        os.replace(hostile_outputs.copy_of(self.originals["packed"], self.folder.name, "other"), path)
        np.testing.assert_array_equal(rows[:], expected)

    def test_a_file_cut_off_ends_no_process(self):
        program = textwrap.dedent("""
            import faulthandler, os, sys, melflow
            rows = melflow.open(sys.argv[1])
            faulthandler.enable()  # which takes SIGBUS as well
            batches = iter(rows.batches(2, prefetch=1))
            next(batches)
            os.truncate(sys.argv[1], 4096)
            for what in (lambda: rows[len(rows) - 1], lambda: list(batches)):
                try:
                    what()
                except melflow.RunError as error:
                    print(error)
        """)
        for name in ("whole", "packed"):
            ended = subprocess.run([sys.executable, "-c", program, self.fresh(name)], capture_output=True, text=True)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            self.assertEqual(ended.stdout.count("bytes (now 4096), so that its rows may be others"), 2, ended.stdout)


if __name__ == "__main__":
    unittest.main()
