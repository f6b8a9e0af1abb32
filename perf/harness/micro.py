"""Runs melflow_micro and makes a table of it, with what the mel kernel takes beside FFTW's real transform.

Out:  figures by name: median and least CPU time of the repetitions, for what one is counted.
"""
import json
import re
import subprocess

from measure import Failure

KERNEL = re.compile(r"mel_.*_(\d+)_\d+_(int16|float)")  # the number is n_fft
OWN = re.compile(r"fft_own(_double)?/\d+")
COUNTED = {
    "s_per_frame": "frame",
    "s_per_value": "value",
    "s_per_item_node": "item and node",
}


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


def run(setup, repetitions):
    program = setup.bin / "melflow_micro"
    if not program.exists():
        raise Failure("melflow_micro is not built: libbenchmark-dev is missing")
    out = setup.output("micro.json")
    command = [program, f"--benchmark_out={out}", "--benchmark_out_format=json"]
    command += [f"--benchmark_repetitions={repetitions}", "--benchmark_min_time=0.1"]
    # Alternates the benchmarks, as the jobs do.
    command += ["--benchmark_enable_random_interleaving=true"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise Failure(f"melflow_micro: exit status {done.returncode}")
    return figures(json.loads(out.read_text(encoding="utf-8")))


def figures(document):
    samples = {}
    for entry in document["benchmarks"]:
        if entry.get("error_occurred"):
            raise Failure(f"melflow_micro: {entry['name']}: {entry['error_message']}")
        if entry.get("run_type") != "iteration":
            continue
        name = entry["run_name"].removesuffix("/real_time")
        key = next((k for k in COUNTED if k in entry), None)
        scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[entry["time_unit"]]
        taken = entry[key] if key else entry["cpu_time"] * scale
        samples.setdefault(name, (COUNTED.get(key, "call"), []))[1].append(taken)
    out = {
        name: {"per": per, "median": median(values), "best": min(values)}
        for name, (per, values) in samples.items()
    }
    for name in filter(KERNEL.fullmatch, out):
        size = KERNEL.fullmatch(name)[1]
        compare(out, name, [f"fft_real/{size}", f"fft_timed/{size}"])
    for name in filter(OWN.fullmatch, out):
        compare(out, name, [name.replace("own", "real")])
    return dict(sorted(out.items(), key=lambda pair: by_number(pair[0])))


def compare(figures, name, rivals):
    """Adds the ratio to the fastest of the rivals, of which a build without FFTW has none."""
    there = [figures[rival] for rival in rivals if rival in figures]
    if there:
        figures[name]["times_transform"] = {
            which: figures[name][which] / min(t[which] for t in there) for which in ("median", "best")
        }


def by_number(name):
    """fft/512 before fft/1024."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def text(results):
    lines = ["### Micro-benchmarks, one core", ""]
    lines += ["| what | per | median [ns] | best [ns] | ÷ real transform |", "|---" * 5 + "|"]
    for name, r in results.items():
        ratio = f"{r['times_transform']['median']:.2f}" if "times_transform" in r else ""
        lines.append(
            f"| {name} | {r['per']} | {r['median'] * 1e9:,.1f} | {r['best'] * 1e9:,.1f} | {ratio} |"
        )
    notes = (
        "The last column: FFTW's real transform alone, for a kernel the faster of its two plans. "
        "graph/NODES/WORKERS and plain_tbb/NODES/WORKERS are wall time, the others CPU time; "
        "perf/micro_*.cpp say what each of them is."
    )
    return "\n".join([*lines, "", f"- {notes}"]) + "\n"
