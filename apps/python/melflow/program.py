"""The program melflow, as a child process that gives its report as an object."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
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


_PROGRESS = re.compile(r"(?:loading )?([\d,]+) of ([\d,]+) files \((?:.*?([\d,]+ rows?),.* ([\d.,]+ rows/s),)?|looking for files")
_EVERY = "0.5s"  # between two lines of progress


def _bar() -> Any:
    """A bar of tqdm; None where it is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(unit="file")


def _call_with_bar(arguments: List[str], accepts: tuple, bar: Any) -> Dict[str, Any]:
    """call(), with the lines of progress that the program writes to stderr shown as the bar."""
    said = []
    with bar, tempfile.TemporaryFile("w+", encoding="utf-8") as out:
        with subprocess.Popen([path(), *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                              text=True) as child:
            try:
                for line in child.stderr:
                    progress = _PROGRESS.match(line)
                    if not progress:
                        said.append(line)
                    elif progress[1]:
                        closed, bar.total = (int(text.replace(",", "")) for text in progress.group(1, 2))
                        bar.update(closed - bar.n)
                        if progress[3]:
                            bar.set_postfix_str(f"{progress[3]}, {progress[4]}")
            except BaseException:
                child.kill()
                raise
        if child.returncode not in accepts:
            raise RunError("".join(said).strip() or f"melflow ended with status {child.returncode}")
        out.seek(0)
        report = json.load(out)
        bar.total = report["files"]["found"]
        bar.update(bar.total - bar.n)
    return report


def assignments(flag: str, values: Optional[Mapping[str, Any]]) -> List[str]:
    out = []
    for name, value in (values or {}).items():
        out += [flag, f"{name}={'true' if value is True else 'false' if value is False else value}"]
    return out


def _work(verb: str, pipeline: "os.PathLike[str] | str", vars: Optional[Mapping[str, Any]],
          sets: Optional[Mapping[str, Any]], workers: Optional[int], progress: bool) -> Dict[str, Any]:
    bar = _bar() if progress else None
    arguments = [verb, os.fspath(pipeline), "--json"] + (["--progress-every", _EVERY] if bar is not None else ["--quiet"])
    if workers is not None:
        arguments += ["--workers", str(workers)]
    # 3: some recordings failed, which the report names.
    arguments += assignments("--var", vars) + assignments("--set", sets)
    return call(arguments, (0, 3)) if bar is None else _call_with_bar(arguments, (0, 3), bar)


def run(pipeline: "os.PathLike[str] | str", *, vars: Optional[Mapping[str, Any]] = None,
        sets: Optional[Mapping[str, Any]] = None, workers: Optional[int] = None,
        progress: bool = False) -> Dict[str, Any]:
    """`melflow run`: gives the report. Raises RunError, with what the program says, where there is no output.
    `progress`: shows a bar of files where tqdm is installed, with the rows so far and how many come a second; it moves twice a
    second."""
    return _work("run", pipeline, vars, sets, workers, progress)


def update(pipeline: "os.PathLike[str] | str", *, vars: Optional[Mapping[str, Any]] = None,
           sets: Optional[Mapping[str, Any]] = None, workers: Optional[int] = None,
           progress: bool = False) -> Dict[str, Any]:
    """`melflow update`, likewise."""
    return _work("update", pipeline, vars, sets, workers, progress)


def inspect(path: "os.PathLike[str] | str") -> Dict[str, Any]:
    """`melflow inspect`: what a file of rows says of itself."""
    return call(["inspect", os.fspath(path), "--json"], (0,))
