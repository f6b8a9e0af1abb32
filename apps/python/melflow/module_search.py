"""Where modules with functions of pipelines are found, beside those of Python and of packages."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from typing import Iterator, List

_last: List[str] = []  # folders that were appended to sys.path


def _search_last(folder: str) -> None:
    """Searches the folder last, so that its files replace neither Python's own modules nor those of packages."""
    if folder not in sys.path:
        sys.path.append(folder)
        _last.append(folder)


def find_here(module: str) -> None:
    """Makes a module found in the current folder, where it is nowhere else."""
    package = module.partition(".")[0]
    if package not in sys.modules and importlib.util.find_spec(package) is None:
        _search_last(os.getcwd())


@contextlib.contextmanager
def find_beside(path: str) -> Iterator[None]:
    """While a file of Python runs, its folder is searched for modules first, as Python does for a script; but not the current
    folder. Functions that import something when they are called find it there, too."""
    folder = os.path.dirname(path)
    is_first = folder not in sys.path and folder != os.getcwd()
    if is_first:
        sys.path.insert(0, folder)
    else:
        _search_last(folder)
    try:
        yield
    finally:
        if is_first:
            sys.path.remove(folder)
            _search_last(folder)


def for_child() -> "tuple[List[str], List[str]]":
    """sys.path for a Python that this one starts: until it has imported this package, and for the functions that it calls then.
    The current folder is not in the first one, unless the package is there."""
    path = [os.path.abspath(entry) for entry in sys.path if entry not in _last]
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [entry for entry in path if entry == package or entry != os.path.abspath("")], path
