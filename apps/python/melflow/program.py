"""The program melflow, as a child process that gives its report as an object."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any, Dict, List, Mapping, Optional

from ._melflow import RunError


def path() -> str:
    found = os.environ.get("MELFLOW_PROGRAM") or shutil.which("melflow")
    if not found:
        raise RunError("the program melflow is not in PATH; install it, or set MELFLOW_PROGRAM to where it is")
    return found


def call(arguments: List[str], accepts: tuple) -> Dict[str, Any]:
    child = subprocess.run([path(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if child.returncode not in accepts:
        raise RunError(child.stderr.strip() or f"melflow ended with status {child.returncode}")
    return json.loads(child.stdout)


def assignments(flag: str, values: Optional[Mapping[str, Any]]) -> List[str]:
    out = []
    for name, value in (values or {}).items():
        out += [flag, f"{name}={'true' if value is True else 'false' if value is False else value}"]
    return out


def _work(verb: str, pipeline: "os.PathLike[str] | str", vars: Optional[Mapping[str, Any]],
          sets: Optional[Mapping[str, Any]], workers: Optional[int]) -> Dict[str, Any]:
    arguments = [verb, os.fspath(pipeline), "--json", "--quiet"]
    if workers is not None:
        arguments += ["--workers", str(workers)]
    # 3: some recordings failed, which the report names.
    return call(arguments + assignments("--var", vars) + assignments("--set", sets), (0, 3))


def run(pipeline: "os.PathLike[str] | str", *, vars: Optional[Mapping[str, Any]] = None,
        sets: Optional[Mapping[str, Any]] = None, workers: Optional[int] = None) -> Dict[str, Any]:
    """`melflow run`: gives the report. Raises RunError, with what the program says, where there is no output."""
    return _work("run", pipeline, vars, sets, workers)


def update(pipeline: "os.PathLike[str] | str", *, vars: Optional[Mapping[str, Any]] = None,
           sets: Optional[Mapping[str, Any]] = None, workers: Optional[int] = None) -> Dict[str, Any]:
    """`melflow update`, likewise."""
    return _work("update", pipeline, vars, sets, workers)


def inspect(path: "os.PathLike[str] | str") -> Dict[str, Any]:
    """`melflow inspect`: what a file of rows says of itself."""
    return call(["inspect", os.fspath(path), "--json"], (0,))
