#!/usr/bin/env python3
"""Whether `melflow explain` finds a limit that is known, and whether its hint brings what it says.

In:  tests/long/known_limits.py [--melflow PROGRAM] [--dir DIR] [--only NAME,...] [--rounds 1]
     DIR: corpora and outputs (2 GB; default build/known_limits). Every tests/long/known_limits/*.yaml says in its head:
       # corpus: NAME          one of CORPORA below
       # limit: CAUSE [NODE]   what holds it back, as `explain --json` says it (of cores, any node: it names the stage with
                             most of the work); alternatives joined by " or "
       # change: OPTION        what the best hint is to change; "none": it must say that there is nothing to gain by an
                               option; "reuse": that audio decoded once would save time; alternatives joined by " or "
Out: a line for each, and how many limits and changes are right; of the hints, |predicted / measured throughput - 1|: the
     median, and what 90 % stay below. Exit status 0 where all limits and changes are right, 1 else.

`melflow explain --verify` runs each once, then three times without and three times with its best hint, in turn. Nothing
else should run on the machine: what others had of the cores stands in the last column.
"""

import argparse
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# Arguments of melflow_make_corpus; those of a list all write into one folder.
CORPORA = {
    "speech": ["--files 1500 --rate 16000 --seconds-min 2 --seconds-max 6"],
    "music": ["--files 120 --rate 44100 --seconds-min 20 --seconds-max 40 --channels 2 --format mp3"],
    "tiny": ["--files 20000 --rate 8000 --seconds 0.25 --split-dirs 20"],
    "flac": ["--files 400 --rate 44100 --seconds 10 --format flac"],
    "long": ["--files 6 --rate 44100 --seconds 300 --channels 2"],
    "single": ["--files 1 --rate 44100 --seconds 1200"],
    "one_long": ["--files 200 --rate 16000 --seconds 2", "--files 1 --rate 16000 --seconds 1500"],
}


def corpus(program, folder, name):
    path = os.path.join(folder, "corpora", name)
    if not os.path.exists(path + ".whole"):
        shutil.rmtree(path, ignore_errors=True)
        for i, arguments in enumerate(CORPORA[name]):
            subprocess.run([os.path.join(os.path.dirname(program), "melflow_make_corpus"), "--out",
                            os.path.join(path, str(i)), *arguments.split()], check=True, stdout=sys.stderr)
        open(path + ".whole", "w").close()
    for place, _, files in os.walk(path):  # into the page cache
        for file in files:
            with open(os.path.join(place, file), "rb") as f:
                while f.read(1 << 20):
                    pass
    return path


class Graph:
    def __init__(self, path):
        self.path, self.name = path, os.path.basename(path)[:-5]
        with open(path) as f:
            said = dict(re.findall(r"^# (corpus|limit|change): *(.*?) *$", f.read(), re.MULTILINE))
        self.corpus = said["corpus"]
        self.limits, self.changes = said["limit"].split(" or "), said["change"].split(" or ")

    def explain(self, program, folder):
        out = os.path.join(folder, "out")
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        ended = subprocess.run([program, "explain", self.path, "--verify", "--json", "--no-progress"], capture_output=True, text=True,
                               env={**os.environ, "DATA": corpus(program, folder, self.corpus), "OUT": out})
        if ended.returncode != 0:
            sys.exit(f"{self.name}: exit {ended.returncode}: {ended.stderr}")
        return json.loads(ended.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--melflow", default="build/release/bin/melflow")
    parser.add_argument("--dir", default="build/known_limits")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=1)
    a = parser.parse_args()
    program, folder = os.path.abspath(a.melflow), os.path.abspath(a.dir)
    os.makedirs(folder, exist_ok=True)
    graphs = [Graph(path) for path in sorted(glob.glob(os.path.join(HERE, "known_limits", "*.yaml")))]
    if a.only:
        graphs = [g for g in graphs if g.name in a.only.split(",")]
    right, errors = 0, []
    print("| graph | limit | hint | predicted | measured | by others |\n|---|---|---|---|---|---|")
    for graph in graphs * a.rounds:
        said = graph.explain(program, folder)
        limit, verified = said["limit"], said["verification"]
        cause = " ".join(filter(None, (limit["cause"], limit["node"])))
        if limit["hints"]:
            change = " ".join(limit["hints"][0]["set"])
        else:
            change = "reuse" if limit["reuse"] else "none"
        # Where no node is expected, any will do; for cores, the named node is the stage with most of the work.
        ok = any(cause == limit or limit == cause.split()[0] or limit.split()[0] == cause == "cores"
                 for limit in graph.limits) and any(c in change.split() for c in graph.changes)
        right += ok
        predicted = measured = ""
        if verified:
            p, m = verified["predicted"]["likely"], verified["measured"]["middle"]
            errors.append(abs(p / m - 1))
            predicted, measured = f"{p:.2f}", f"{m:.2f}"
        wrong = "" if ok else f" **expected {' or '.join(graph.limits)}; {' or '.join(graph.changes)}**"
        print(f"| {graph.name} | {cause}, {100 * limit['share']:.0f} % | {change}{wrong} | {predicted} | {measured} | "
              f"{limit['taken_by_others']:.2f} |", flush=True)
    runs = len(graphs) * a.rounds
    print(f"\n{right} of {runs} right; {len(errors)} hints made: error " + (
        f"{statistics.median(errors):.1%} in the median, {sorted(errors)[int(0.9 * (len(errors) - 1))]:.1%} in 90 %" if errors else "of none"))
    return 0 if right == runs else 1


if __name__ == "__main__":
    sys.exit(main())
