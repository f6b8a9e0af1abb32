"""Checks a trace of a run against the JSON report of the same run; prints what is wrong.

    check_trace.py TRACE.json REPORT.json
"""
import collections
import json
import sys


def main(trace_path, report_path):
    with open(trace_path, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    with open(report_path, encoding="utf-8") as f:
        report = json.load(f)
    problems = []

    def check(is_so, text):
        if not is_so:
            problems.append(text)

    spans = [e for e in events if e["ph"] == "X"]
    flows = [e for e in events if e["ph"] in "stf"]
    counters = [e for e in events if e["ph"] == "C"]
    check({e["ph"] for e in events} <= set("XMstfC"), "unknown phases")
    for e in events:
        check(isinstance(e["pid"], int) and isinstance(e["tid"], int), f"pid, tid: {e}")
        if e["ph"] != "M":
            check(e["ts"] >= 0, f"ts: {e}")
    titles = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}

    # Spans of one track are nested or consecutive.
    tracks = collections.defaultdict(list)
    for e in spans:
        check(e["dur"] >= 0 and e["tid"] in titles, f"dur, track: {e}")
        tracks[e["tid"]].append(e)
    exact = 0.0015  # [us], for two rounded figures
    for track in tracks.values():
        open_until = []
        for e in sorted(track, key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= e["ts"] + exact:
                open_until.pop()
            end = e["ts"] + e["dur"]
            check(not open_until or end <= open_until[-1] + exact, f"overlaps: {e}")
            open_until.append(end)
    workers = [t for t in titles.values() if t.startswith("worker ")]
    check(1 <= len(workers) <= report["workers"], f"workers: {titles}")

    # Flows begin, continue and end, each within a span of its track.
    ways = collections.defaultdict(list)
    for e in flows:
        ways[e["id"]].append(e)
        check(any(abs(s["ts"] - e["ts"]) < exact for s in tracks[e["tid"]]), f"flow: {e}")
    check(ways, "no flows")
    for way in ways.values():
        way.sort(key=lambda e: (e["ts"], "stf".index(e["ph"])))
        phases = "".join(e["ph"] for e in way)
        check(phases == "s" + "t" * (len(way) - 2) + "f", f"flow: {phases}")

    names = {c["name"] for c in counters}
    for stage in report["stages"]:
        name, time = stage["name"], stage["seconds"]
        busy = sum(e["dur"] for e in spans if e["name"] == name and e["cat"] == "stage") / 1e6
        allowed = 0.02 * time["busy"] + 0.0001
        check(abs(busy - time["busy"]) <= allowed, f"{name}: {busy} s busy, not {time['busy']}")
        points = sorted((c for c in counters if c["name"] == name + " states"),
                        key=lambda c: c["ts"])
        for state, field in (("busy", "busy"), ("input", "waiting_input"),
                             ("output", "blocked_output"), ("core", "waiting_core"),
                             ("idle", "idle_after_end")):
            seconds = sum(a["args"][state] * (b["ts"] - a["ts"]) / 1e6
                          for a, b in zip(points, points[1:]))
            check(abs(seconds - time[field]) <= 0.02 * time[field] + 0.001,
                  f"{name}: {seconds} s {state}, not {time[field]}")
    if report["series"]["seconds"]:
        check("memory" in names, "no memory")
        for stage in report["stages"][1:]:
            check("queue before " + stage["name"] in names, f"no queue before {stage['name']}")
    print("\n".join(problems[:20]))


main(*sys.argv[1:])
