"""Runs programs in turn, several times, and measures each from outside.

In:   Program: a command line and what it makes.
Out:  Result: wall, user and sys seconds and the peak resident set of every run.
      A program's own children are in its times, and the largest of them in its peak.

Every program runs once unmeasured (programs and fresh memory warm up), then N rounds of all of
them in turn, so that a noisy neighbour hits every one. What melflow makes is removed before its next
run, what a rival makes behind each of its own: the memory in use is the same in every round.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Callable, Optional


class Failure(Exception):
    """A job cannot be done, or its result is wrong."""


@dataclass
class Program:
    name: str
    command: list
    amount: float  # of work, in the job's unit
    output: Optional[pathlib.Path] = None
    env: dict = field(default_factory=dict)
    report: Optional[pathlib.Path] = None  # destination of melflow's --json
    rows: Optional[int] = None  # number that it must make
    own_clock: bool = False  # its own "seconds=" and "cpu=" count, not the process's: a Python library
    is_melflow: bool = False
    baseline: bool = False  # the denominator of ratios, but where `like` names another program
    like: Optional[str] = None
    note: str = ""
    prepare: Optional[Callable[[], None]] = None  # called before every run, after its output was removed
    # Checks the output of the last run and what the program printed; returns the findings.
    verify: Optional[Callable[[dict], dict]] = None


def said(text):
    """The key=value pairs of the last line that a program printed."""
    lines = text.strip().splitlines()
    pairs = [word.split("=", 1) for word in lines[-1].split() if "=" in word] if lines else []
    return dict(pairs)


def check_rows(program, out):
    if program.report:
        report = json.loads(program.report.read_text(encoding="utf-8"))
        rows, files = report["rows"], report["files"]
        if files["failed"] or files["not_run"]:
            raise Failure(f"{program.name}: {files['failed']} files failed")
        out["memory"] = report["memory"]
    elif "rows" in out:
        rows = int(out["rows"])
    else:
        return
    if program.rows is not None and rows != program.rows:
        raise Failure(f"{program.name}: made {rows} rows, {program.rows} were expected")
    out["rows"] = rows


def run_once(program, launcher):
    for path in (program.output, program.report):
        if path:
            path.unlink(missing_ok=True)
    if program.prepare:
        program.prepare()
    os.sync()  # so that no program pays for writing back another one's data
    with tempfile.TemporaryFile("w+", encoding="utf-8") as text, tempfile.NamedTemporaryFile(
        "r", encoding="utf-8"
    ) as usage_file:
        done = subprocess.run(
            [str(word) for word in (launcher, usage_file.name, *program.command)],
            stdin=subprocess.DEVNULL,
            stdout=text,
            env={**os.environ, **{key: str(value) for key, value in program.env.items()}},
            check=False,
        )
        if done.returncode != 0:
            words = " ".join(str(word) for word in program.command)
            raise Failure(f"{program.name}: exit status {done.returncode}: {words}")
        usage = said(usage_file.read())
        text.seek(0)
        out = said(text.read())
    check_rows(program, out)
    if program.own_clock and "seconds" not in out:
        raise Failure(f"{program.name}: did not say how long it took")
    wall, user, system = (float(usage[key]) for key in ("wall", "user", "sys"))
    return {
        "seconds": float(out["seconds"]) if program.own_clock else wall,
        "cpu": float(out["cpu"]) if program.own_clock and "cpu" in out else user + system,
        "wall": wall,
        "user": user,
        "sys": system,
        "peak_kib": int(usage["peak_kib"]),
        "said": out,
    }


def summary(program, runs):
    seconds = [run["seconds"] for run in runs]
    best = min(runs, key=lambda run: run["seconds"])
    return {
        "amount": program.amount,
        "best": best["seconds"],
        "median": statistics.median(seconds),
        "cpu_median": statistics.median(run["cpu"] for run in runs),
        "peak_kib": max(run["peak_kib"] for run in runs),
        "per_second": program.amount / statistics.median(seconds),
        "is_melflow": program.is_melflow,
        "note": program.note,
        "memory": runs[-1]["said"].get("memory"),
        "runs": runs,
    }


def add_ratios(programs, results):
    """Time for one unit divided by melflow's: of the bests, of the medians, and the median over the
    rounds of the ratio within each round, which a slow hour does not change; `cpu` is that of the
    processor time, which other programs change least."""
    base = next((p for p in programs if p.baseline), None)
    if base is None:
        return
    for program in programs:
        ours, theirs = results[program.like or base.name], results[program.name]
        scale = ours["amount"] / program.amount
        pairs = list(zip(theirs["runs"], ours["runs"]))
        rounds = [t["seconds"] / o["seconds"] for t, o in pairs]
        cpu = [t["cpu"] / o["cpu"] for t, o in pairs]
        theirs["ratio"] = {
            "best": theirs["best"] / ours["best"] * scale,
            "median": theirs["median"] / ours["median"] * scale,
            "rounds": statistics.median(rounds) * scale,
            "cpu": statistics.median(cpu) * scale,
        }


def free_cores(cores, seconds=0.25):
    """How many cores' worth of time as many busy processes get: fewer when neighbours compute."""
    children, total = [], 0.0
    for _ in range(cores):
        child = os.fork()
        if child == 0:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                pass
            os._exit(0)
        children.append(child)
    for child in children:
        usage = os.wait4(child, 0)[2]
        total += usage.ru_utime + usage.ru_stime
    return total / seconds


def measure(programs, runs, launcher):
    """Results by name; `launcher` is perf/measure_child.cpp. Raises Failure when a program fails or makes something else."""
    collected = {program.name: [] for program in programs}
    found = {}
    for round_ in range(runs + 1):
        for program in programs:
            result = run_once(program, launcher)
            label = f"round {round_}" if round_ else "warm-up"
            line = f"  {label:8} {program.name:34} {result['seconds']:8.3f} s"
            print(line, file=sys.stderr, flush=True)
            if round_:
                collected[program.name].append(result)
            if round_ == runs and program.verify:
                found[program.name] = program.verify(result["said"])
            if program.output and not program.is_melflow:
                program.output.unlink(missing_ok=True)
    results = {program.name: summary(program, collected[program.name]) for program in programs}
    for name, facts in found.items():
        results[name]["verified"] = facts
    add_ratios(programs, results)
    return results
