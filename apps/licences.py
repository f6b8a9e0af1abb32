#!/usr/bin/env python3
"""The licences of the libraries that a wheel or a bundle carries.

In:  licences.py FOLDER --notices OUT [--compiled-in PACKAGE...] [--gpl]
         FOLDER: what is to be packed, on the Debian system whose libraries were copied. Writes into OUT the notices of
         their packages and the texts that these refer to, and LIBRARIES.txt: each library with its licence, its source
         package and version, and where that is to be had. Prints the licence expression (SPDX) of all that is inside.
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
    "nanobind": "BSD-3-Clause",
}
TEXTS = pathlib.Path("/usr/share/common-licenses")  # which Debian's notices refer to


def name_of(path: str) -> str:
    """`libsndfile` for libsndfile-0123abcd.so.1.0.33, as auditwheel names it."""
    return re.sub(r"(-[0-9a-f]{8}|-2\.\d+|\.abi3|\.cpython-.*)?\.so[0-9.]*$", "", path.rsplit("/", 1)[-1])


def is_library(path: str, head: bytes) -> bool:
    return head[:4] == b"\x7fELF" and re.search(r"\.so[0-9.]*$", path) is not None


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


def package_of(library: pathlib.Path) -> tuple[str, str, str] | None:
    """The Debian package that the library was copied from: its name, source package and version."""
    plain = re.sub(r"-[0-9a-f]{8}(\.so)", r"\1", library.name)
    found = subprocess.run(["dpkg-query", "-S", f"*/{plain}"], capture_output=True, text=True, check=False).stdout
    packages = {line.split(":")[0] for line in found.splitlines() if line.endswith(f"/{plain}")}
    return None if not packages else described(sorted(packages)[0])


def described(package: str) -> tuple[str, str, str]:
    about = subprocess.run(["dpkg-query", "-W", "-f", "${source:Package} ${source:Version}\n", package], capture_output=True, text=True,
                           check=True).stdout.split("\n", 1)[0]
    source, version = about.split()
    return package, source, version


def expression(licences: set[str]) -> str:
    return " AND ".join(sorted(licences, key=lambda one: (one != "MIT", one)))


def write_notices(folder: pathlib.Path, out: pathlib.Path, compiled_in: list[str]) -> str:
    carried = libraries_in(folder)
    lines: list[tuple[str, str, tuple[str, str, str]]] = []
    licences, packages = {"MIT"}, set()
    for library in carried:
        licence = LICENCES[name_of(library)]
        licences.add(licence)
        package = package_of(pathlib.Path(library))
        if package is None:
            if name_of(library) not in ("libmelflow", "_melflow"):
                sys.exit(f"licences: {library}: of no package of this system")
            continue
        packages.add(package)
        lines.append((library, licence, package))
    for one in compiled_in:
        licences.add(LICENCES[one])
        if one == "nanobind":
            continue
        packages.add(described(one))
        lines.append((f"{one}, compiled in", LICENCES[one], described(one)))
    out.mkdir(parents=True, exist_ok=True)
    for package, _, _ in packages:
        shutil.copyfile(f"/usr/share/doc/{package}/copyright", out / f"{package}.txt")
    for text in ("GPL-2", "GPL-3", "LGPL-2", "LGPL-2.1", "Apache-2.0"):
        shutil.copyfile(TEXTS / text, out / text)
    with open(out / "LIBRARIES.txt", "w", encoding="utf-8") as file:
        for library, licence, (_, source, version) in lines:
            file.write(f"{library}\n    {licence}\n    Debian's source package {source}, version {version}:\n"
                       f"    https://snapshot.debian.org/package/{source}/{version}/\n")
    return expression(licences)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=pathlib.Path, metavar="PATH")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--gpl", action="store_true")
    parser.add_argument("--notices", type=pathlib.Path, metavar="OUT")
    parser.add_argument("--compiled-in", nargs="*", default=[], metavar="PACKAGE")
    arguments = parser.parse_args()
    complaints = [f"{path}: {said}" for path in arguments.paths for one in libraries_in(path) if (said := complaint(one, arguments.gpl))]
    for line in complaints:
        print(f"licences: {line}", file=sys.stderr)
    if complaints:
        return 1
    if arguments.notices:
        print(write_notices(arguments.paths[0], arguments.notices, arguments.compiled_in))
    return 0


if __name__ == "__main__":
    sys.exit(main())
