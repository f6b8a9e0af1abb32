"""apps/licences.py: what may be carried in wheels and bundles."""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "apps", "licences.py")
ELF = b"\x7fELF" + bytes(60)


class LicencesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def check(self, path):
        ended = subprocess.run([sys.executable, SCRIPT, "--check", path], capture_output=True, text=True, check=False)
        return ended.returncode, ended.stderr

    def wheel(self, *names):
        path = self.path("melflow-0.1.0-cp312-abi3-manylinux_2_34_x86_64.whl")
        with zipfile.ZipFile(path, "w") as wheel:
            for name in names:
                wheel.writestr(name, ELF)
        return path

    def test_libraries_of_the_table_may_be_in_a_wheel(self):
        wheel = self.wheel("melflow/_melflow.abi3.so", "melflow/lib/libmelflow.so.0", "melflow/bin/melflow",
                           "melflow.libs/libsndfile-0123abcd.so.1.0.33", "melflow.libs/libyaml-cpp-0a1b2c3d.so.0.7.0",
                           "melflow.libs/libstdc++-89abcdef.so.6.0.30")
        self.assertEqual(self.check(wheel), (0, ""))

    def test_a_library_under_the_gpl_is_refused(self):
        status, said = self.check(self.wheel("melflow/_melflow.abi3.so", "melflow.libs/libfftw3f-0123abcd.so.3.6.9"))
        self.assertEqual(status, 1)
        self.assertIn("melflow.libs/libfftw3f-0123abcd.so.3.6.9: is under GPL-2.0-or-later", said)

    def test_an_unknown_library_is_refused_in_an_archive_and_in_a_folder(self):
        bundle = self.path("bundle.tar.gz")
        with tarfile.open(bundle, "w:gz") as archive:
            for name in ("melflow/lib/libtbb.so.12", "melflow/lib/libplanted.so.1", "melflow/licences/libplanted.so.txt"):
                member = tarfile.TarInfo(name)
                member.size = len(ELF)
                archive.addfile(member, io.BytesIO(ELF))
        status, said = self.check(bundle)
        self.assertEqual((status, said.count("\n")), (1, 1))
        self.assertIn("melflow/lib/libplanted.so.1: is not in the table", said)
        with tarfile.open(bundle) as archive:
            archive.extractall(self.path("open"))
        self.assertEqual(self.check(self.path("open"))[0], 1)

    def test_a_text_is_no_library(self):
        with open(self.path("libplanted.so.1"), "w", encoding="utf-8") as file:
            file.write("a linker's script")
        self.assertEqual(self.check(self.folder), (0, ""))


if __name__ == "__main__":
    unittest.main()
