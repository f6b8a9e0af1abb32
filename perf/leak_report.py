#!/usr/bin/env python3
"""Checks the rows of the two-stage job and prints its figures as a Markdown table.

In:   leak_report.py FILE FILES, with the output of "melflow inspect --json" on stdin;
      FILE is what measure.py wrote, FILES the number of recordings.
Out:  the table on stdout; FILE gains the ratios, the rows and the machine.
      Exit status 1 when the rows are not 237 a file.
"""
import json
import os
import platform
import sys

ROWS_PER_FILE = 237
PROMISED_PEAK_MIB = 512  # a budget of 448 MiB + 64 MiB


def cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def main():
    path, files = sys.argv[1], int(sys.argv[2])
    inspected = json.load(sys.stdin)
    with open(path, encoding="utf-8") as file:
        results = json.load(file)
    rivals = {name: r for name, r in results.items() if name != "melflow"}
    ratios = {
        name: {which: results["melflow"][which] / r[which] for which in ("best", "median")}
        for name, r in rivals.items()
    }
    machine = f"{cpu()}, {len(os.sched_getaffinity(0))} cores"

    runs = len(results["melflow"]["runs"])
    print(f"{files} files, {machine}, best and median of {runs}, warm\n")
    columns = "program | best [s] | median [s] | files/s | user + sys [s] | peak [MiB]"
    print(f"| {columns} | melflow / this |")
    print("|---|---|---|---|---|---|---|")
    for name, r in results.items():
        ratio = f"{ratios[name]['best']:.2f}" if name in ratios else "1"
        print(
            f"| {name} | {r['best']:.2f} | {r['median']:.2f} | {files / r['best']:,.0f} "
            f"| {r['cpu_of_best']:.2f} | {r['peak_kib'] / 1024:.0f} | {ratio} |"
        )

    rows, expected = inspected["rows"], files * ROWS_PER_FILE
    peak = results["melflow"]["peak_kib"] / 1024
    print(f"\nrows: {rows:,} of {expected:,}")
    print(f"peak memory of melflow: {peak:.0f} of {PROMISED_PEAK_MIB} MiB")
    results.update({"ratio": ratios, "rows": rows, "files": files, "machine": machine})
    with open(path, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=2)
        file.write("\n")
    if rows != expected:
        sys.exit("leak: the number of rows is wrong")


if __name__ == "__main__":
    main()
