"""Opens files that a user or data name: only regular files up to a size for each kind, as others may block or never end."""

from __future__ import annotations

import errno
import os
from typing import BinaryIO, Union

from . import _melflow

# [bytes]
SOURCE = 64 << 20  # of Python
MODEL = 64 << 30
SOUND = 4 << 30  # which Python reads as a whole
DOCUMENT = 16 << 20
VECTORS = 256 << 20
INDEX = 16 << 30
PIPELINE = 1 << 20


def opened(path: "Union[str, bytes, os.PathLike[str]]", most: int, may_be_pipe: bool = False) -> BinaryIO:
    """Opens a file of at most `most` bytes. may_be_pipe: also a pipe named by its descriptor (/dev/stdin, <(...)). Raises OSError."""
    name = os.fsdecode(path)
    file = open(_melflow.open_input(name, may_be_pipe), "rb")
    if (size := os.fstat(file.fileno()).st_size) > most:
        file.close()
        raise OSError(errno.EFBIG, f"has {size} bytes, and such a file may have at most {most}", name)
    return file


def read(path: "Union[str, bytes, os.PathLike[str]]", most: int, may_be_pipe: bool = False) -> bytes:
    """Reads all bytes of such a file. Raises OSError."""
    with opened(path, most, may_be_pipe) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"has more than {most} bytes", os.fsdecode(path))
    return data
