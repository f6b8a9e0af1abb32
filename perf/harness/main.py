#!/usr/bin/env python3
"""Measures the jobs: perf/run.sh builds the programs and calls this.

Out:  Markdown on stdout and in DIR/results.md, everything measured in DIR/results.json; both are
      written after every job. Exit status 1 when a job failed; the others are still done.
"""
import argparse
import os
import pathlib
import shutil
import sys
import time

sys.dont_write_bytecode = True

import corpora  # noqa: E402
import jobs_audio  # noqa: E402
import jobs_leak  # noqa: E402
import micro  # noqa: E402
import report  # noqa: E402
from measure import Failure, free_cores, measure  # noqa: E402
from setup import REPOSITORY, Setup  # noqa: E402

# Each function makes the corpora, then returns a Job.
JOBS = {
    "leak": [jobs_leak.leak],
    "builder": [jobs_leak.builder],
    "speech": [
        *(lambda s, f=f: jobs_audio.speech(s, f) for f in ("wav16", "flac", "mp3")),
        jobs_audio.speech_hour,
    ],
    "real": [jobs_audio.real],
    "music": [lambda s: jobs_audio.music(s, "flac"), lambda s: jobs_audio.music(s, "mp3")],
    "long": [jobs_audio.long],
    "tiny": [jobs_leak.tiny],
    "write": [jobs_audio.write],
    "deflate": [jobs_audio.deflate],
    "growth": [jobs_leak.growth],
    "cores": [jobs_leak.cores],
    "settings": [jobs_leak.leak_settings, jobs_leak.builder_settings],
    "update": [jobs_leak.update],
}


def arguments():
    parser = argparse.ArgumentParser(prog="perf/run.sh")
    parser.add_argument("--runs", type=int, default=5, help="measured rounds (default 5)")
    parser.add_argument("--jobs", help=f"some of {','.join(JOBS)} (default: all; none: no job)")
    parser.add_argument("--scale", type=float, default=1.0, help="of the corpora, 0.05 for a look")
    parser.add_argument("--python", default="python3", help="with the libraries of the rivals")
    parser.add_argument("--recordings", help="of the demo (default melflow-demo/audio)")
    parser.add_argument("--dir", help="corpora, outputs and results (default build/perf)")
    parser.add_argument("--micro", action="store_true", help="the micro-benchmarks, too")
    parser.add_argument("--million", action="store_true", help="a million files, too")
    parser.add_argument("--check", action="store_true", help="only check these options")
    options = parser.parse_args()
    names = list(JOBS) if options.jobs is None else options.jobs.split(",")
    names = [] if options.jobs == "none" else names
    for name in names:
        if name not in JOBS:
            parser.error(f"--jobs: there is no {name!r}; there are {', '.join(JOBS)}")
    if options.runs < 1:
        parser.error("--runs takes a number from 1 on")
    if not 0 < options.scale <= 1:
        parser.error("--scale takes a number above 0, at most 1")
    python = shutil.which(options.python)
    if python is None:
        parser.error(f"--python: there is no {options.python}")
    options.python = os.path.abspath(python)  # not realpath: a virtual environment's python is a link
    return options, names


def warm(job):
    total = corpora.warm(job.folders)
    print(f"  {total / 1e9:.2f} GB of input read", file=sys.stderr)
    # The cached pages count as available, so the page cache can grow to this size.
    if total > 0.8 * corpora.available_memory():
        job.remarks.append(
            f"The input ({total / 1e9:.1f} GB) does not fit into memory: not a warm cache."
        )


def run_job(setup, make):
    job = make(setup)
    if not job.programs:
        return job, {}
    print(f"{job.name}: {job.title}", file=sys.stderr)
    warm(job)
    job.free_cores = free_cores(setup.cores)
    if job.free_cores < 0.9 * setup.cores:
        job.remarks.append(
            f"The machine was not quiet: before this job it gave {job.free_cores:.1f} of its "
            f"{setup.cores} cores."
        )
    try:
        return job, measure(job.programs, setup.runs, setup.bin / "melflow_measure_child")
    finally:
        for path in [program.output for program in job.programs] + job.made:
            if path:
                path.unlink(missing_ok=True)


def main():
    options, names = arguments()
    if options.check:
        return
    directory = pathlib.Path(options.dir or REPOSITORY / "build/perf").resolve()
    directory.mkdir(parents=True, exist_ok=True)
    recordings = pathlib.Path(options.recordings or REPOSITORY / "melflow-demo/audio").resolve()
    setup = Setup(
        directory, REPOSITORY / "build/release/bin", options.scale, options.runs, options.python,
        recordings, options.million,
    )  # fmt: skip
    os.chdir(REPOSITORY)  # pipelines contain relative paths
    about = report.machine()
    texts, done, failures, figures = [report.heading(about, setup)], [], {}, {}
    print(texts[0], flush=True)

    def add(text):
        texts.append(text)
        print(text, flush=True)
        report.write(directory / "results.md", "\n".join(texts))
        document = report.as_json(setup, about, done, figures, failures)
        report.write(directory / "results.json", document)

    makers = [(name, make) for name in names for make in JOBS[name]]
    if options.million:
        makers.append(("million", jobs_leak.million))
    begin = time.monotonic()
    for name, make in makers:
        try:
            done.append(run_job(setup, make))
            job, results = done[-1]
            add(report.job_text(job, results))
        except (Failure, OSError) as failure:
            failures[name] = str(failure)
            add(f"### {name} FAILED\n\n{failure}\n")
    if options.micro:
        try:
            figures.update(micro.run(setup, options.runs))
            add(micro.text(figures))
        except (Failure, OSError) as failure:
            failures["micro"] = str(failure)
            add(f"### micro FAILED\n\n{failure}\n")
    print(f"perf: {(time.monotonic() - begin) / 60:.1f} min; {directory}/results.json",
          file=sys.stderr)  # fmt: skip
    if failures:
        sys.exit("perf: failed: " + "; ".join(f"{k}: {v}" for k, v in failures.items()))


if __name__ == "__main__":
    main()
