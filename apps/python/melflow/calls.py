"""Functions of Python as nodes of a pipeline: the stage `python`.

    def louder(samples, rate, gain=2.0):        # [samples] float32, 1 is full scale
        if len(samples) < rate:
            melflow.skip("is shorter than a second")
        return samples * gain

A class is instantiated with the node's arguments, once for each call at the same time; its objects are called with samples and rate.
What a function raises fails the recording, with its text and place. With `batch` a call gets several recordings; with `blocks`
an object of a class gets one recording, block by block.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import sys
import weakref
from typing import Any, Callable, Dict, Tuple

from . import _melflow, inputs
from ._melflow import RunError
from .call_loading import load, of_this_process
from .call_processes import Children
from .call_results import described, of_thread
from .callers import Batches, Here


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function in a pipeline: MODULE:NAME or, if it cannot be imported, a name that only this process knows."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module and module != "__main__" and name:
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is function:
            return f"{module}:{name}"
    # Others of that code may have other values in their closures.
    return known(f"{name or type(function).__name__}-{_code_hash(function)[:12]}", function)


def known(begin: str, function: Callable[..., Any]) -> str:
    """Registers a function that cannot be imported; returns its name in this process."""
    name = f"@{begin}:here"
    for n in range(1, len(of_this_process) + 2):
        if of_this_process.setdefault(name, function) is function:
            break
        name = f"@{begin}-{n}:here"
    return name


def shown_name(name: str) -> str:
    """The name in the code of a function that only this process knows."""
    function = of_this_process.get(name)
    return name if function is None else getattr(function, "__qualname__", type(function).__name__).split("<locals>.")[-1]


_objects: Dict[int, Tuple[Any, str]] = {}
_read: "set[int]" = set()


def known_object(value: Any) -> str:
    """Registers a function that gives `value`; returns its name in this process."""
    def once() -> Any:
        """Gives the value once: an iterator has its items only once."""
        if hasattr(value, "__next__") and id(value) in _read:
            raise RunError("this iterator has been read to its end; give a list, or a function that makes it")
        _read.add(id(value))
        return value

    once.__qualname__ = "items"  # of Graph.items
    if id(value) not in _objects:
        _objects[id(value)] = (value, known(once.__qualname__, once))
    return _objects[id(value)][1]


def check_outside() -> None:
    """Raises RuntimeError in a function that a node calls, and while its module is imported: a pipeline there would wait for
    itself."""
    if getattr(of_thread, "is_loading", False) or hasattr(of_thread, "notes"):
        raise RuntimeError("a pipeline cannot be run by a function that a pipeline calls, nor by its module: put what runs it "
                           "under if __name__ == '__main__'")


def _file_hash(path: str) -> str:
    return hashlib.sha256(inputs.read(path, inputs.SOURCE)).hexdigest()[:32]


def _code_hash(target: Any) -> str:
    """Hash of a function's code with all that is defined in it, and of the values that it encloses; "" if it has no code."""
    def parts(code: Any) -> str:
        return repr((code.co_code, code.co_names, [parts(c) if hasattr(c, "co_code") else c for c in code.co_consts]))

    code = getattr(target, "__code__", None)
    if code is None:
        return ""
    enclosed = [repr(cell.cell_contents) for cell in target.__closure__ or () if cell.cell_contents is not target]
    return hashlib.sha256(repr((parts(code), target.__defaults__, enclosed)).encode()).hexdigest()[:32]


_hashes: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()  # of files when their functions were first seen


def _hash_of(target: Any, name: str) -> str:
    """Hash of the file with the code, or of the code itself if that cannot be imported. Raises RunError if the file has changed
    since it was imported."""
    if name.startswith("@"):
        return _code_hash(target)
    try:
        path = inspect.getsourcefile(inspect.unwrap(target))
    except (TypeError, OSError):
        path = None
    if path is None or not os.path.exists(path):
        return _code_hash(target)
    now = _file_hash(path)
    try:
        if _hashes.setdefault(target, now) != now:
            raise RunError(f"{path}: has changed since {name} was imported; import it again (importlib.reload), or start Python again")
    except TypeError:  # no weak references to it
        pass
    return now


class Call:
    """A function as a stage calls it."""

    def __init__(self, name: str, arguments: str, gives: str, processes: int, timeout: float, batch: int, has_blocks: bool,
                 columns: int, dtype: str) -> None:
        target, self.arguments = load(name), json.loads(arguments)
        if processes and name.startswith("@"):
            raise RunError(f"{shown_name(name)}: other processes cannot import it; put it into a module, or use processes: 0")
        if has_blocks and not inspect.isclass(target):
            raise RunError(f"{shown_name(name)}: is no class; with blocks, an object of a class is made for each recording")
        try:
            signature = inspect.signature(target)
            (signature.bind if inspect.isclass(target) else signature.bind_partial)(**self.arguments)
        except TypeError as error:
            raise RunError(f"{shown_name(name)}: {error}; `arguments` of the node are {self.arguments}") from None
        except ValueError:  # no signature, as of functions in C
            pass
        self.source_hash = _hash_of(target, name)
        try:
            if hasattr(target, "fingerprint"):
                self.source_hash += str(target.fingerprint(**self.arguments))
            if hasattr(target, "_melflow_check"):
                target._melflow_check(columns, dtype, **self.arguments)
        except RunError:
            raise
        except Exception as error:
            raise RunError(described(error)) from None
        self.function: Any
        if processes:
            where, _, inner = name.rpartition(":")
            name = f"{os.path.abspath(where)}:{inner}" if where.endswith(".py") else name  # children start at any time
            self.function = Children(name, self.arguments, gives, dtype, batch, processes, timeout)
        else:
            self.function = Here(target, self.arguments, gives, dtype, batch)
        if batch:
            self.function = Batches(self.function, batch, max(1, processes))


_melflow.set_calls(Call)
