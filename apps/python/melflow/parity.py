"""`melflow verify-parity`: compares features with those of libraries, from golden vectors or from the library itself.

Rows are computed and compared twice, in single and in double precision.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import arguments, parity_models, parity_vectors
from ._melflow import RunError
from ._melflow import version as _version
from .parity_rows import PRECISIONS, UNLIMITED, Ours, Theirs, Worst, chain, deltas, worst

DELTAS = "deltas"  # the preset's name in reports on derivatives
FOLDER = os.path.dirname(__file__)
TEST_SIGNALS = ("voice", "noise", "silence", "impulse", "full_scale")

Object = Mapping[str, Any]
Rows = Union[Ours, parity_models.Samples]
Result = Dict[str, Any]  # of a case, a recording, or all cases of a preset, as the JSON document has it


class Made(NamedTuple):
    what: str  # heads the lines
    lines: List[Result]  # to print
    results: List[Result]
    head: Object  # of the JSON document
    said: str  # before the lines


def of_verb(words: str) -> Tuple[int, str, str]:
    """The verb: its arguments as JSON. Gives its exit status, what it prints, and its complaint."""
    given = json.loads(words)
    vectors = parity_vectors.read(given["vectors"] or os.path.join(FOLDER, "presets.json"))
    with np.errstate(all="ignore"):
        made = (_of_library if "asked" in given else _of_vectors)(given, vectors)
    is_compared = any(one["left_out"] < one["cases"] for one in made.results)
    passed = is_compared and all(one["passed"] for one in made.results)
    kind = given["instruction_set"]
    if given["json"]:
        printed = _json_text({"melflow_version": _version, "backend": "cpu", "instruction_set": kind, "passed": passed, **made.head})
    else:
        printed = f"{made.said}melflow {_version} (cpu, {kind})\n\n{_text(made)}"
    return int(not passed), printed, "" if is_compared else "nothing was compared, so nothing is proven; the verdicts say why"


def _of_vectors(given: Object, vectors: parity_vectors.Vectors) -> Made:
    tolerances = {**vectors.tolerances, DELTAS: parity_vectors.OWN_TOLERANCE}
    for name in given["presets"]:
        if name not in tolerances:
            raise RunError(f"there are no golden vectors of a preset '{name}'. {arguments.meant(name, tolerances)}")
    wanted = given["presets"] or tolerances
    cases = [_check_case(one, tolerances[one.preset], one.preset in given["in_double"]) for one in vectors.cases if one.preset in wanted]
    if DELTAS in wanted:
        cases += [_check_deltas(one, tolerances[DELTAS]) for one in vectors.deltas]
    presets = _by_preset(cases)
    what, lines = ("case", cases) if given["all"] else ("preset", presets)
    return Made(what, lines, cases, {"presets": presets, "cases": cases}, "")


def _of_library(given: Object, vectors: parity_vectors.Vectors) -> Made:
    asked = given["asked"]
    model = parity_models.Model(asked["model"]) if "model" in asked else None
    rate = model.rate if model else asked["settings"]["sample_rate"]
    preset = model.title if model else asked["preset"]
    tolerance = parity_vectors.OWN_TOLERANCE if model and model.preset not in vectors.tolerances else parity_vectors.tolerance_of(
        model.preset if model else preset, vectors.tolerances)
    recordings = _recordings(given["files"], rate) or [_test_signal(name, rate) for name in TEST_SIGNALS]
    question = model.question() if model else {"options": asked["settings"]}
    library, function, rows = _ask(given["python"] or sys.executable, {**asked, **question}, recordings)
    is_double = preset in given["in_double"]

    def ours(samples: np.ndarray) -> Callable[[str], Rows]:
        return lambda precision: model.rows(precision, samples) if model else Ours(asked["settings"], precision, samples)

    results = [_check_recording(one, theirs, _result(one.path, preset, library, tolerance), ours(one.samples), is_double)
               for one, theirs in zip(recordings, rows)]
    head = {"reference": asked["reference"], **{k: asked[k] for k in ("pipeline", "node", "model") if k in asked}, "preset": preset,
            "changed": asked["changed"], "sample_rate": rate, "function": function, "files": results}
    other = "; other than in its preset: " * bool(asked["changed"]) + ", ".join(asked["changed"])
    said = [f"{asked['node']} of {asked['pipeline']}, beside {asked['reference']}{other}"] if "node" in asked else []
    said += model.said if model else [asked["remark"]] * bool(asked["remark"])
    said += [f"the library's calls: {function}"]
    said += [f"{one.path}: resampled from {one.rate} to {rate} Hz, for both" for one in recordings if one.rate not in (0, rate)]
    return Made("file" if given["files"] else "signal", results, results, head, "".join(_line(text) + "\n" for text in said))


# ---- recordings, and what the library makes of them

class Recording(NamedTuple):
    path: str
    samples: np.ndarray  # float32, mono
    rate: int = 0  # of the file itself [Hz]
    problem: str = ""  # why there are no samples


def _recordings(paths: Sequence[str], rate: int) -> List[Recording]:
    """The recordings' samples as the mel stage of a pipeline would get them."""
    decoder = chain(("resample", {"rate": rate}), ("segment", {}), ("samples", {}))

    def read(path: str) -> Recording:
        try:
            samples, _, own_rate = decoder.rows_of_file(UNLIMITED, None, path)
        except RunError as error:
            return Recording(path, np.zeros(0, np.float32), problem=str(error))
        return Recording(path, samples.reshape(-1), own_rate)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(read, paths))


def _test_signal(name: str, rate: int) -> Recording:
    return Recording(name, (parity_vectors.signal(name, rate) / 32768).astype(np.float32))


def _ask(python: str, asked: Object, recordings: Sequence[Recording]) -> Tuple[str, str, List[Union[Theirs, str]]]:
    """Runs parity_reference.py, or parity_extractor.py for a model: gives the library with its version, what was called, and of each
    recording the library's rows, or why there are none. Raises RunError where Python cannot be started or lacks the library, and
    where the library has no counterpart of a changed option, or does not read the model."""
    script = "parity_extractor.py" if "model" in asked else "parity_reference.py"
    with tempfile.TemporaryDirectory(prefix="melflow-") as folder:
        request, answer, output = (os.path.join(folder, name) for name in ("request.json", "answer.json", "output"))
        inputs = [{what: os.path.join(folder, f"{i}.{what}") for what in ("samples", "rows", "own_errors")} for i in range(len(recordings))]
        for one, its in zip(recordings, inputs):
            one.samples.astype("<f4").tofile(its["samples"])
        with open(request, "w", encoding="utf-8") as file:
            json.dump({**asked, "inputs": inputs}, file)
        with open(output, "wb") as said:
            try:
                status = subprocess.run([python, os.path.join(FOLDER, script), request, answer], stdin=subprocess.DEVNULL,
                                        stdout=said, stderr=said).returncode
            except OSError as error:
                raise RunError(f"{python}: cannot be started: {error.strerror}") from None
        try:
            with open(answer, encoding="utf-8") as file:
                got = json.load(file)
        except (OSError, ValueError):
            got = None
        if status != 0 or not isinstance(got, dict):
            with open(output, encoding="utf-8", errors="replace") as file:
                end = " | ".join(file.read()[-1000:].splitlines())
            raise RunError(f"{python} exited with status {status if status >= 0 else 128 - status} and without an answer: {end}")
        if "missing" in got:
            why = "; ".join(f"{package}: {error}" for _, package, error in got["missing"])
            packages = " ".join(package for _, package, _ in got["missing"])
            raise RunError(f"{python} lacks what the library needs ({why}): {python} -m pip install {packages}, or name another Python with "
                           "--python")
        if "failed" in got:
            raise RunError(f"{asked['model']['file']}: {got['library']} {got['version']} does not read it: {got['failed']}")
        if got["unknown"]:
            raise RunError(f"{got['function']} has no setting for {', '.join(got['unknown'])}, so nothing can be compared")
        library = f"{got['library']} {got['version']}".rstrip()
        return library, got["function"], [_rows(one, its) for one, its in zip(got["outputs"], inputs)]


def _rows(output: Object, its: Object) -> Union[Theirs, str]:
    if output.get("refused"):
        return str(output["refused"])
    shape, is_measured = (output["frames"], output["columns"]), bool(output.get("has_own_errors"))
    values = np.fromfile(its["rows"], "<f4").reshape(shape).astype(float)
    errors = np.fromfile(its["own_errors"], "<f4").reshape(shape).astype(float) if is_measured else np.zeros(shape)
    return Theirs(np.arange(shape[0]), values, errors, is_measured=is_measured, masked=output.get("masked", 0))


# ---- comparisons

def _result(name: str, preset: str, library: str, tolerance: Object) -> Result:
    return {"name": name, "preset": preset, "libraries": [library], "cases": 1, "left_out": 0, "frames": 0, "largest_difference": None,
            "worst": None, "tolerance": tolerance, "passed": True, "reason": None}


def _failed(result: Result, why: str) -> Result:
    return {**result, "passed": False, "reason": why}


def _take(result: Result, found: Optional[Worst]) -> None:
    if found is None:
        return
    result["largest_difference"] = max(result["largest_difference"] or 0.0, found.largest)
    if result["worst"] is None or found.value["share"] > result["worst"]["share"]:
        result["worst"] = {"case": result["name"], **found.value}
    result["passed"] = result["passed"] and found.value["share"] <= 1


def _compare(result: Result, ours_in: Callable[[str], Rows], theirs: Theirs, shape: Tuple[int, ...]) -> Result:
    """ours_in: makes melflow's rows in a precision. shape: of all rows of the library."""
    by = f"{shape[0]} x {shape[1]} by {result['libraries'][0]}"
    for precision in PRECISIONS:
        try:
            ours = ours_in(precision)
        except RunError as error:
            if shape[0] == 0:  # neither has a frame
                continue
            return _failed(result, f"{error}; {by}")
        if 0 < (more := shape[0] - len(ours.values)) <= theirs.masked:
            theirs, shape = theirs.without(more), (len(ours.values), shape[1])
        if ours.values.shape != shape:
            return _failed(result, f"{ours.values.shape[0]} x {ours.values.shape[1]} values (frames x columns) here, {by}")
        _take(result, worst(ours.values[theirs.frames], theirs, ours.limits(theirs, result["tolerance"]), precision))
    result["frames"] = len(theirs.values)
    return result


def _check_case(one: parity_vectors.Case, tolerance: Object, is_double: bool) -> Result:
    result = _result(one.name, one.preset, one.library, tolerance)
    if one.rows is None:
        return {**result, "left_out": 1, "reason": one.left_out}
    samples = parity_vectors.signal(one.signal, one.settings["sample_rate"])
    if len(samples) != one.samples:
        return _failed(result, f"its signal has {len(samples)} samples here, must have {one.samples}")
    after = [("mfcc", one.cepstrum)] if one.cepstrum is not None else []
    return _compare(result, lambda precision: Ours(one.settings, precision, samples, after), one.rows._replace(is_double=is_double), one.shape)


def _check_deltas(one: parity_vectors.Deltas, tolerance: Object) -> Result:
    result = _result(one.name, DELTAS, one.library, tolerance)
    theirs = Theirs(np.arange(len(one.output)), one.output, np.zeros(one.output.shape))
    _take(result, worst(deltas(one.input, one.options), theirs, tolerance["atol"] + tolerance["rtol"] * np.abs(one.output), PRECISIONS[0]))
    result["frames"] = len(one.output)
    return result


def _check_recording(one: Recording, theirs: Union[Theirs, str], result: Result, ours: Callable[[str], Rows],
                     is_double: bool) -> Result:
    if one.problem:
        return _failed(result, one.problem)
    if isinstance(theirs, str):  # some libraries refuse recordings shorter than their padding, or with one frame only
        return {**result, "left_out": 1, "reason": theirs}
    return _compare(result, ours, theirs._replace(is_double=is_double), theirs.values.shape)


def _by_preset(cases: Sequence[Result]) -> List[Result]:
    """Combines the results of each preset, in the order of the presets."""
    out: Dict[str, Result] = {}
    for one in cases:
        if one["preset"] not in out:
            out[one["preset"]] = {**one, "name": one["preset"], "libraries": list(one["libraries"]), "reason": None}
            continue
        its = out[one["preset"]]
        its["libraries"] += [library for library in one["libraries"] if library not in its["libraries"]]
        for key in ("cases", "left_out", "frames"):
            its[key] += one[key]
        if one["worst"] is not None:
            its["largest_difference"] = max(its["largest_difference"] or 0.0, one["largest_difference"])
            its["worst"] = max(filter(None, (its["worst"], one["worst"])), key=lambda value: value["share"])
        its["passed"] = its["passed"] and one["passed"]
    return list(out.values())


# ---- the report

def _line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\t", "\\t")


def _json_text(document: Object) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items()}
        if isinstance(value, list):
            return [plain(v) for v in value]
        return value if not isinstance(value, float) or math.isfinite(value) else None

    text = json.dumps(plain(document), indent=2, ensure_ascii=False)
    return re.sub(r"[\ud800-\udfff]", lambda byte: f"\\u{ord(byte[0]):04x}", text) + "\n"  # bytes that are not UTF-8


def _text(made: Made) -> str:
    """A table with a line for each preset or case, followed by every failure with its row and value."""
    table = [[made.what, "library", "cases", "frames", "largest", "nearest", "limit", "of it", "tolerance", "verdict"], *map(_cells, made.lines)]
    if made.what != "preset":  # one case per line
        table = [row[:2] + row[3:] for row in table]
    widths = [max(map(len, column)) for column in zip(*table)]
    is_left = [title in (made.what, "library", "tolerance") for title in table[0]]
    out = [[cell.ljust(width) if left else cell.rjust(width) for cell, width, left in zip(row[:-1], widths, is_left)] + row[-1:] for row in table]
    failures = [f"  {_line(one['name'])}: {_failure(one)}" for one in made.results if not one["passed"]]
    return "".join(line + "\n" for line in ["  ".join(row) for row in out] + ["", "failed:"] * bool(failures) + failures)


def _cells(one: Result) -> List[str]:
    figures, at, tolerance = ["-"] * 4, one["worst"], one["tolerance"]
    if at is not None:
        figures = [f"{one['largest_difference']:.1e}", f"{at['error']:.1e}", f"{at['limit']:.1e}", f"{100 * at['share']:.0f} %"]
    verdict = "FAILED" if not one["passed"] else "ok" if one["left_out"] < one["cases"] else f"omitted: {one['reason'] or ''}"
    return [_line(one["name"]), ", ".join(one["libraries"]), f"{one['cases'] - one['left_out']:,}", f"{one['frames']:,}", *figures,
            f"{tolerance['atol']:.0e}" + (f" + {tolerance['rtol']:.0e} |x|" if tolerance["rtol"] else ""), _line(verdict)]


def _failure(one: Result) -> str:
    if one["reason"]:
        return _line(one["reason"])
    at = one["worst"]
    ours, theirs = (f"{np.float32(at[whose])}".removesuffix(".0") for whose in ("ours", "theirs"))
    return (f"frame {at['frame']}, column {at['column']}: {ours} here in {at['precision']}, {theirs} by {', '.join(one['libraries'])}: differs by "
            f"{abs(at['ours'] - at['theirs']):.3g}, at most {at['limit'] + at['own_error']:.3g} is allowed")
