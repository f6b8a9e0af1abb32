#!/usr/bin/env python3
"""Runs several commands in turn, several times, and compares them.

In:   measure.py --runs N --fresh PATH --json FILE NAME='command' [NAME='command' ...]
      Each command is run once unmeasured (programs and fresh memory warm up), then N rounds of
      all of them in turn, so that a noisy neighbour hits every one. PATH is removed before every
      run, and its pages with it.
Out:  FILE: per name the wall, user and sys seconds and the peak resident set [KiB] of every run,
      best and median. A command that fails stops everything.
Why:  wait4 gives one child's own user + sys time and ru_maxrss, which for a process is its VmHWM.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import time


def run(command, fresh):
    if os.path.exists(fresh):
        os.remove(fresh)
    os.sync()  # nobody pays for writing back what another one wrote
    begin = time.monotonic()
    child = subprocess.Popen(shlex.split(command), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        print(f"measure: exit status {child.returncode}: {command}", file=sys.stderr)
        sys.exit(1)
    return {
        "wall": wall,
        "user": usage.ru_utime,
        "sys": usage.ru_stime,
        "peak_kib": usage.ru_maxrss,
    }


def summary(runs):
    best = min(runs, key=lambda r: r["wall"])
    return {
        "best": best["wall"],
        "median": statistics.median(r["wall"] for r in runs),
        "cpu_of_best": best["user"] + best["sys"],
        "peak_kib": max(r["peak_kib"] for r in runs),
        "runs": runs,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--fresh", required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("commands", nargs="+", metavar="NAME=COMMAND")
    options = parser.parse_args()
    commands = dict(c.split("=", 1) for c in options.commands)
    results = {name: [] for name in commands}
    for round_ in range(options.runs + 1):
        for name, command in commands.items():
            result = run(command, options.fresh)
            label = f"round {round_}" if round_ else "warm-up"
            print(f"{label:8} {name:20} {result['wall']:7.3f} s", file=sys.stderr, flush=True)
            if round_:
                results[name].append(result)
    with open(options.json, "w", encoding="utf-8") as out:
        json.dump({name: summary(runs) for name, runs in results.items()}, out, indent=2)
        out.write("\n")


if __name__ == "__main__":
    main()
