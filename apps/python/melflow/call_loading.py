"""The functions that pipelines name: MODULE:NAME, FILE.py:NAME, or by a name that only this process knows."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import types
from typing import Any, Callable, Dict

from . import inputs, module_search
from ._melflow import RunError
from .call_results import described, of_thread

of_this_process: Dict[str, Callable[..., Any]] = {}  # functions that cannot be imported, by name


def load(name: str) -> Any:
    """Returns the function of that name; while it is imported no pipeline can be run. Raises RunError."""
    was_loading = getattr(of_thread, "is_loading", False)
    of_thread.is_loading = True
    try:
        return _imported(name)
    finally:
        of_thread.is_loading = was_loading


def _imported(name: str) -> Any:
    """Imports MODULE:NAME or FILE.py:NAME. Raises RunError."""
    if name in of_this_process:
        return of_this_process[name]
    where, _, inner = name.rpartition(":")
    if name.startswith("@"):
        raise RunError(f"{name}: is a function of another Python process; put it into a module, and name it MODULE:NAME")
    try:
        if where.endswith(".py"):
            path = os.path.abspath(where)
            known = "melflow_file_" + hashlib.sha256(path.encode()).hexdigest()[:16]
            source = inputs.read(path, inputs.SOURCE)
            module = sys.modules.get(known)
            if module is None or module.__dict__.get("_melflow_source") != source:
                # Not by importlib, which would take the bytecode of an earlier file of the same size and second.
                module = sys.modules[known] = types.ModuleType(known)
                module.__dict__.update(__file__=path, _melflow_source=source)
                try:
                    with module_search.find_beside(path):
                        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
                except BaseException:
                    del sys.modules[known]
                    raise
        else:
            module_search.find_here(where)
            module = importlib.import_module(where)
    except FileNotFoundError:
        raise RunError(f"{where}: there is no such file in {os.getcwd()}") from None
    except BaseException as error:
        raise RunError(f"{where} cannot be imported: {described(error)}") from None
    target: Any = module
    for part in inner.split("."):
        target = getattr(target, part, None)
    if not callable(target):
        here = where.replace(".", "/") + ".py"
        is_here = not where.endswith(".py") and os.path.exists(here)
        raise RunError(f"{where} has no function {inner!r}" + is_here * f"; to call one of the file here, write {here}:{inner}")
    return target
