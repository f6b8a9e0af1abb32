"""The program melflow, as a child process that gives its report as an object."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import arguments
from . import _melflow
from ._melflow import ConfigError, RunError, with_arguments


def path() -> str:
    """The program of this package, or the one that MELFLOW_PROGRAM names, which may have further stages."""
    return os.environ.get("MELFLOW_PROGRAM") or os.path.join(os.path.dirname(__file__), "bin", "melflow")


def failure(said: str, verb: str, status: int) -> RunError:
    """What the program says of a run that failed; a pipeline that came as a text has the name that
    it has in the rest of the package."""
    said = re.sub(r"^-:", "pipeline:", said.strip(), flags=re.MULTILINE)
    return RunError(with_arguments(said) or f"melflow {verb} ended with status {status}")


def load_plugin(path: "os.PathLike[str] | str") -> None:
    """Loads a plug-in, a shared library with further stages, for this process and, by MELFLOW_PLUGINS, for those that it
    starts. Its code runs with all rights of this process. Raises ConfigError where it cannot be loaded."""
    name = os.path.abspath(arguments.path("path", path))
    if ":" in name:
        raise ConfigError(f"{name}: the path of a plug-in has no ':', which separates those of MELFLOW_PLUGINS")
    _melflow.load_plugin(name)
    known = [plugin for plugin in os.environ.get("MELFLOW_PLUGINS", "").split(":") if plugin]
    if name not in known:
        os.environ["MELFLOW_PLUGINS"] = ":".join([*known, name])


TEXTS: Dict[str, Any] = {"encoding": "utf-8", "errors": "surrogateescape"}  # like file names


def call(words: List[str], accepts: tuple, text: str = "") -> Dict[str, Any]:
    """text: what the program gets by its standard input."""
    child = subprocess.run([path(), *words], input=text, capture_output=True, **TEXTS)
    if child.returncode not in accepts:
        raise failure(child.stderr, words[0], child.returncode)
    return json.loads(child.stdout)


_PROGRESS = re.compile(r"(?:loading )?([\d,]+) of ([\d,]+) files \((?:.*?([\d,]+ rows?),.* ([\d.,]+ rows/s),)?|looking for files")
_EVERY = "0.5s"  # between progress lines


def _bar() -> Any:
    """A bar of tqdm; None where it is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(unit="file")


def _call_with_bar(words: List[str], accepts: tuple, text: str, bar: Any) -> Dict[str, Any]:
    """call(), with the lines of progress that the program writes to stderr shown as the bar."""
    said = []
    with bar, tempfile.TemporaryFile("w+", **TEXTS) as out, \
            tempfile.TemporaryFile("w+", **TEXTS) as given:
        given.write(text)
        given.seek(0)
        with subprocess.Popen([path(), *words], stdin=given, stdout=out, stderr=subprocess.PIPE,
                              **TEXTS) as child:
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
            raise failure("".join(said), words[0], child.returncode)
        out.seek(0)
        report = json.load(out)
        bar.total = report["files"]["found"]
        bar.update(bar.total - bar.n)
    return report


def pipeline_words(pipeline: arguments.Pipeline, vars: Optional[Mapping[str, Any]],
                   sets: Optional[Mapping[str, Any]]) -> Tuple[List[str], str]:
    """A pipeline's words of a command line, and what comes by the standard input."""
    name, text = arguments.pipeline(pipeline)
    words = ["-" if text else name]
    for what, values in (("vars", vars), ("sets", sets)):
        for option, value in arguments.assigned(what, values).items():
            words += ["--" + what[:-1], f"{option}={value}"]
    return words, text


def _work(verb: str, pipeline: arguments.Pipeline, vars: Optional[Mapping[str, Any]],
          sets: Optional[Mapping[str, Any]], workers: Optional[int],
          progress: bool) -> Dict[str, Any]:
    named, text = pipeline_words(pipeline, vars, sets)
    progress = arguments.flag("progress", progress)
    bar = _bar() if progress else None
    words = [verb, *named, "--json"]
    words += ["--progress-every", _EVERY] if bar is not None else ["--quiet"]
    if workers is not None:
        words += ["--workers", str(arguments.workers(workers, 0))]
    accepts = (0, 3)  # 3: some recordings failed, as the report says
    if bar is None:
        report = call(words, accepts, text)
    else:
        report = _call_with_bar(words, accepts, text, bar)
    arguments.warn(report.get("warnings", []), 3)
    return report


def run(pipeline: arguments.Pipeline, *, vars: Optional[Mapping[str, Any]] = None,
        sets: Optional[Mapping[str, Any]] = None, workers: Optional[int] = None,
        progress: bool = False) -> Dict[str, Any]:
    """`melflow run`: gives the report, and shows its warnings. Raises RunError, with what the program
    says, where there is no output. pipeline, vars, sets: as those of melflow.Loader; a name may be
    that of a pipeline that comes with melflow.
    `progress`: shows a bar of files where tqdm is installed, with the rows so far and how many come a second; it moves twice a
    second."""
    return _work("run", pipeline, vars, sets, workers, progress)


def update(pipeline: arguments.Pipeline, *, vars: Optional[Mapping[str, Any]] = None,
           sets: Optional[Mapping[str, Any]] = None, workers: Optional[int] = None,
           progress: bool = False) -> Dict[str, Any]:
    """`melflow update`, likewise."""
    return _work("update", pipeline, vars, sets, workers, progress)


def inspect(path: "os.PathLike[str] | str") -> Dict[str, Any]:
    """`melflow inspect`: what a file of rows says of itself."""
    return call(["inspect", arguments.path("path", path), "--json"], (0,))
