#!/usr/bin/env python3
"""The licences of the libraries that a wheel or a bundle carries.

In:  licences.py FOLDER --notices OUT [--compiled-in PACKAGE...] [--built LIBRARIES] [--gpl]
         FOLDER: what is to be packed. Writes into OUT the notices of the packages that its libraries are from and the
         texts that these refer to, and LIBRARIES.txt: each library with its licence, its source package and version,
         and where that is to be had. Prints the licence expression (SPDX) of all that is inside.
         The libraries were copied from this Debian system, or from LIBRARIES of apps/python/old_system.sh.
     licences.py --check WHEEL_OR_ARCHIVE_OR_FOLDER...
         checks what is packed.
Out: exit status 1, with a line each, where a library is not in the table below or is under the GPL.

PACKAGE: Debian packages whose code is compiled in. --gpl: libraries under the GPL are allowed.
"""

from __future__ import annotations

import argparse
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from typing import NamedTuple

# By the name of the library up to `.so`, or of a package that is compiled in: the licence of the code in it.
# A Debian package may hold more under other licences; programs, documents and tests of it are not carried.
LICENCES = {
    # libraries of Debian
    "libFLAC": "BSD-3-Clause",
    "libaec": "BSD-2-Clause",
    "libdeflate": "MIT",
    "libfmt": "MIT",
    "libgcc_s": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libgomp": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libmp3lame": "LGPL-2.0-or-later",
    "libmpg123": "LGPL-2.1-only",
    "libogg": "BSD-3-Clause",
    "libopus": "BSD-3-Clause",
    "libpng16": "libpng-2.0",
    "libre2": "BSD-3-Clause",
    "libsndfile": "LGPL-2.1-or-later",
    "libsoxr": "LGPL-2.1-or-later",
    "libstdc++": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libsz": "BSD-2-Clause",  # of libaec
    "libtbb": "Apache-2.0",
    "liburing": "MIT",  # or the LGPL, as one likes
    "libvorbis": "BSD-3-Clause",
    "libvorbisenc": "BSD-3-Clause",
    "libxxhash": "BSD-2-Clause",
    "libyaml-cpp": "MIT",
    "libz": "Zlib",
    "libfftw3": "GPL-2.0-or-later",
    "libfftw3f": "GPL-2.0-or-later",
    # melflow itself
    "libmelflow": "MIT",
    "_melflow": "MIT",
    # of the bundle alone
    **dict.fromkeys(
        ["ld-linux-x86-64", "ld-linux-aarch64", "libanl", "libc", "libdl", "libm", "libmvec", "libpthread", "libresolv",
         "librt", "libutil"],
        "LGPL-2.1-or-later"),  # glibc
    # compiled in
    "libhdf5-dev": "BSD-3-Clause",
    "nlohmann-json3-dev": "MIT",
    "libcli11-dev": "BSD-3-Clause",
    "libstdc++-12-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "nanobind": "BSD-3-Clause",
}
OWN = ("libmelflow", "_melflow", "nanobind")  # their texts come with them
# Debian's notices refer to these files for the texts of licences that begin so.
TEXTS = pathlib.Path("/usr/share/common-licenses")
TEXT_OF = {"GPL-2": "GPL-2", "GPL-3": "GPL-3", "LGPL-2.0": "LGPL-2", "LGPL-2.1": "LGPL-2.1", "Apache-2.0": "Apache-2.0"}


def name_of(path: str) -> str:
    """`libsndfile` for libsndfile-0123abcd.so.1.0.33, as auditwheel names it."""
    return re.sub(r"(-[0-9a-f]{8}|-2\.\d+|\.abi3|\.cpython-.*)?\.so[0-9.]*$", "", path.rsplit("/", 1)[-1])


def is_library_name(path: str) -> bool:
    return re.search(r"\.so[0-9.]*$", path) is not None


def is_library(path: str, head: bytes) -> bool:
    return head[:4] == b"\x7fELF" and is_library_name(path)


def packed(path: pathlib.Path) -> Iterator[tuple[str, bytes]]:
    """Each file's path within a folder, wheel or archive, and its contents."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield str(file.relative_to(path)), file.read_bytes()
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for one in archive.namelist():
                yield one, archive.read(one)
    else:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile():
                    yield member.name, (archive.extractfile(member) or io.BytesIO()).read()


def libraries_in(path: pathlib.Path) -> list[str]:
    return [name for name, data in packed(path) if is_library(name, data)]


def complaint(name: str, is_gpl: bool) -> str | None:
    licence = LICENCES.get(name_of(name))
    if licence is None:
        return f"{name}: is not in the table of {pathlib.Path(__file__).name}; look its licence up and add it"
    if re.search(r"(?<!L)GPL", licence) and "WITH" not in licence and not is_gpl:
        return f"{name}: is under {licence}, and so would all be that is given away with it"
    return None


class Package(NamedTuple):
    """A package of Debian that something carried is from."""
    source: str
    version: str
    notice: pathlib.Path


class Installed:
    """The packages of this system."""

    def of(self, name: str) -> Package | None:
        if is_library_name(name):
            said = self._ask("-S", f"*/{name}")
            found = sorted({line.split(":")[0] for line in said.splitlines() if line.endswith(f"/{name}")})
        else:
            found = [name]
        about = self._ask("-W", "-f", "${source:Package} ${source:Version}\n", found[0]) if found else ""
        if not about:
            return None
        source, version = about.split("\n", 1)[0].split()
        return Package(source, version, pathlib.Path("/usr/share/doc", found[0], "copyright"))

    @staticmethod
    def _ask(*arguments: str) -> str:
        return subprocess.run(["dpkg-query", *arguments], capture_output=True, text=True, check=False).stdout


class Built:
    """The packages that apps/python/old_system.sh compiled."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        with open(folder / "sources.tsv", encoding="utf-8") as file:
            self._table = {name: (source, version) for name, source, version in (line.split() for line in file)}

    def of(self, name: str) -> Package | None:
        if name not in self._table:
            return None
        source, version = self._table[name]
        return Package(source, version, self._folder / "share/doc" / source / "copyright")


def expression(licences: set[str]) -> str:
    return " AND ".join(sorted(licences, key=lambda one: (one != "MIT", one)))


HEAD = "The libraries inside, each with its licence and its source: the package of Debian that it is compiled from.\n\n"
# In wheels names of libraries have a hash of the contents; in the bundle a file of the same name will do.
REPLACING = """To put another build of a library in its place, such as your own of an LGPL one, NEW:

    cp NEW melflow.libs/NAME                      NAME: as the file is called there now
    cd melflow.libs
    patchelf --set-soname NAME --set-rpath '$ORIGIN' NAME
    patchelf --replace-needed libogg.so.0 libogg-0123abcd.so.0.8.5 NAME

the last for each library that `patchelf --print-needed NAME` lists and that is in melflow.libs under another name.

"""


def write_notices(folder: pathlib.Path, out: pathlib.Path, compiled_in: list[str], packages: Installed | Built) -> str:
    out.mkdir(parents=True, exist_ok=True)
    licences = {"MIT"}
    with open(out / "LIBRARIES.txt", "w", encoding="utf-8") as file:
        file.write(HEAD)
        if (folder / "melflow.libs").is_dir():
            file.write(REPLACING)
        for path in [*libraries_in(folder), *compiled_in]:
            licence = LICENCES[name_of(path)]
            licences.add(licence)
            if name_of(path) in OWN:
                continue
            package = packages.of(re.sub(r"-[0-9a-f]{8}(\.so)", r"\1", path.rsplit("/", 1)[-1]))
            if package is None:
                sys.exit(f"licences: {path}: of no known package")
            shutil.copyfile(package.notice, out / f"{package.source}.txt")
            file.write(f"{path}{', compiled in' if path in compiled_in else ''}\n    {licence}\n"
                       f"    Debian's source package {package.source}, version {package.version}:\n"
                       f"    https://snapshot.debian.org/package/{package.source}/{package.version}/\n")
    for begin, text in TEXT_OF.items():
        if any(one.startswith(begin) for one in licences):
            shutil.copyfile(TEXTS / text, out / text)
    return expression(licences)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=pathlib.Path, metavar="PATH")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--gpl", action="store_true")
    parser.add_argument("--notices", type=pathlib.Path, metavar="OUT")
    parser.add_argument("--built", type=pathlib.Path, metavar="LIBRARIES")
    parser.add_argument("--compiled-in", nargs="*", default=[], metavar="PACKAGE")
    arguments = parser.parse_args()
    complaints = [f"{path}: {said}" for path in arguments.paths for one in libraries_in(path) if (said := complaint(one, arguments.gpl))]
    for line in complaints:
        print(f"licences: {line}", file=sys.stderr)
    if complaints:
        return 1
    if arguments.notices:
        packages = Built(arguments.built) if arguments.built else Installed()
        print(write_notices(arguments.paths[0], arguments.notices, arguments.compiled_in, packages))
    return 0


if __name__ == "__main__":
    sys.exit(main())
