"""Checks the metrics of a run against its JSON report and the list in docs/profiling.md; prints what is wrong.

    check_metrics.py METRICS.prom REPORT.json PROFILING.md

The parser follows https://prometheus.io/docs/instrumenting/exposition_formats/ (text, version 0.0.4).
"""
import json
import os
import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf'({NAME})(?:\{{((?:{NAME}="(?:[^"\\\n]|\\["\\n])*",?)*)\}})? ([-+]?[0-9.]+(?:e[-+]?[0-9]+)?)')
LABEL = re.compile(rf'({NAME})="((?:[^"\\\n]|\\["\\n])*)"')


def parse(text):
    """{name: (help, type, {labels as a frozenset of pairs: value})}. Raises ValueError where a line is not as the format has it."""
    if not text.endswith("\n"):
        raise ValueError("the last line does not end")
    out, name = {}, None
    for line in text[:-1].split("\n"):
        if found := re.fullmatch(rf"# HELP ({NAME}) (.+)", line):
            name = found[1]
            if name in out:
                raise ValueError(f"{name} comes twice")
            out[name] = [found[2], None, {}]
        elif found := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|histogram|summary|untyped)", line):
            if found[1] != name or out[name][1] is not None or out[name][2]:
                raise ValueError(f"not where it belongs: {line}")
            out[name][1] = found[2]
        elif found := SAMPLE.fullmatch(line):
            unescaped = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}
            labels = frozenset((key, re.sub(r"\\.", lambda m: unescaped[m[0]], value)) for key, value in LABEL.findall(found[2] or ""))
            if found[1] != name or out[name][1] is None or labels in out[name][2]:
                raise ValueError(f"not where it belongs: {line}")
            out[name][2][labels] = float(found[3])
        else:
            raise ValueError(f"no line of the format: {line!r}")
    return out


def documented(page):
    """The names in the page's table, with what each is."""
    with open(page, encoding="utf-8") as lines:
        return set(re.findall(r"`(melflow_[a-z_]+)", lines.read()))


def main(metrics_path, report_path, page):
    with open(metrics_path, encoding="utf-8") as file:
        found = parse(file.read())
    with open(report_path, encoding="utf-8") as file:
        report = json.load(file)
    run = ("run", os.path.basename(metrics_path)[:-len(".prom")])

    def values(name, key=None):
        samples = found[f"melflow_run_{name}"][2]
        for labels in samples:
            if dict([run]).items() - dict(labels).items() or len(labels) != 1 + (key is not None):
                print(f"{name}: labels are {dict(labels)}")
        return {dict(labels)[key]: value for labels, value in samples.items()} if key else next(iter(samples.values()))

    files = report["files"]
    expected = {
        "seconds": report["seconds"], "found_files": files["found"], "warned_files": files["ok_with_remark"], "rows": report["rows"],
        "read_bytes": report["machine"]["bytes_read"], "reserved_bytes": 0,
        "processor_seconds": report["machine"]["user_seconds"] + report["machine"]["system_seconds"]}
    for name, value in expected.items():
        if abs(values(name) - value) > 1e-6 * abs(value):
            print(f"{name}: {values(name)}, and {value} in the report")
    states = values("state", "state")
    if [state for state, value in states.items() if value] != [report["ending"]] or set(states.values()) != {0, 1}:
        print(f"state: {states}")
    outcomes = values("files", "outcome")
    if outcomes != {name: files[name] for name in ("ok", "skipped", "failed", "not_run")}:
        print(f"files: {outcomes}, and {files} in the report")
    busy = values("node_busy_seconds", "node")
    if list(busy) != [stage["name"] for stage in report["stages"]]:
        print(f"nodes: {list(busy)}")
    for stage in report["stages"]:
        if abs(busy[stage["name"]] - stage["seconds"]["busy"]) > 1e-6:
            print(f"busy: {stage['name']}: {busy[stage['name']]}")
    if set(values("node_waiting_items", "node").values()) != {0}:
        print("items wait after the end")
    began = os.stat(metrics_path).st_mtime - values("start_time_seconds")
    if not -1 < began < 600 or not 1e5 < values("resident_bytes") < 1e12:
        print(f"began {began} s before the end; {values('resident_bytes')} bytes")
    if any(kind != "gauge" for _, kind, _ in found.values()):
        print("not all are gauges")
    listed = {name for name in documented(page) if name.startswith("melflow_run_")}
    if listed != set(found):
        print(f"docs/profiling.md and the file differ: {sorted(listed ^ set(found))}")


if __name__ == "__main__":
    main(*sys.argv[1:])
