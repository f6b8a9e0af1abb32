"""The tables and the JSON document of a run.

In:   jobs with their results (measure.py), figures of the micro-benchmarks (micro.py).
Out:  Markdown; one dictionary.
"""
import json
import os
import platform


def cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def machine():
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory,
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", platform.system()),
        "kernel": platform.release(),
        "load_before": os.getloadavg()[0],
    }


def peak(result):
    """[MiB], and for melflow the most that was promised: memory.host and 64 MiB."""
    mebibytes = f"{result['peak_kib'] / 1024:.0f}"
    if result["memory"]:
        mebibytes += f" of {(result['memory']['budget'] >> 20) + 64}"
    return mebibytes


def seconds(value):
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def table(job, results):
    columns = ["program", "median [s]", "best [s]", f"{job.unit}/s", "user + sys [s]"]
    columns += ["peak [MiB]"] + (["µs each"] if job.per_unit else []) + ["time ÷ first"]
    columns += ["user + sys ÷ first"]
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    whole = max(program.amount for program in job.programs)
    for program in job.programs:
        r = results[program.name]
        scale = whole / program.amount if job.scale_up else 1.0
        cells = [program.name, seconds(r["median"] * scale), seconds(r["best"] * scale)]
        cells += [f"{r['per_second']:,.0f}", seconds(r["cpu_median"] * scale), peak(r)]
        if job.per_unit:
            cells.append(f"{1e6 * r['median'] / program.amount:.1f}")
        cells += [f"{r['ratio'][which]:.2f}" if "ratio" in r else "" for which in ("rounds", "cpu")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def job_text(job, results):
    parts = [f"### {job.title}"]
    if job.programs:
        parts.append(table(job, results))
    notes = list(job.remarks)
    checked = {name: r["verified"] for name, r in results.items() if "verified" in r}
    if checked:
        notes.append("The rows of every run were counted: all as expected.")
    differences = [
        f"{name} {facts['difference']:.1g} {facts['unit']}"
        for name, facts in checked.items()
        if "difference" in facts
    ]
    if differences:
        notes.append("Largest differences from melflow's rows: " + "; ".join(differences) + ".")
    if notes:
        parts.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(parts) + "\n"


def heading(about, setup):
    runs = f"median and best of {setup.runs} round" + ("s" if setup.runs > 1 else "")
    text = (
        f"{about['cpu']}, {about['cores']} cores, {about['memory_bytes'] / 2**30:.0f} GiB, "
        f"{about['system']}; {runs}, warm, corpora at scale {setup.scale:g}."
    )
    return text + "\n"


def as_json(setup, about, done, micro, failures):
    return {
        "machine": about,
        "runs": setup.runs,
        "scale": setup.scale,
        "jobs": {
            job.name: {
                "title": job.title,
                "unit": job.unit,
                "free_cores": job.free_cores,
                "remarks": job.remarks,
                "programs": results,
            }
            for job, results in done
        },
        "micro": micro,
        "failures": failures,
    }


def write(path, document):
    """Whole or not at all: a run that is interrupted leaves what was measured before."""
    part = path.with_name(path.name + ".part")
    text = document if isinstance(document, str) else json.dumps(document, indent=2) + "\n"
    part.write_text(text, encoding="utf-8")
    part.replace(path)
