#!/usr/bin/env python3
"""A job made by several workers on one machine: what it costs, and that nothing which happens to them changes a byte.

In:  perf/clusters.py [--melflow PROGRAM] [--parts 64] [--processes 4] [--seed 1]
                      [--costs 5] [--kills 100] [--full 10] [--stops 10] [--dask 0] PIPELINE.yaml DATA
     PIPELINE takes DATA and OUT, such as config/pipelines/leak_two_stage.yaml. --costs: pairs of a run of one program
     and a job, in turn. --kills: jobs of which a random worker is killed (SIGKILL) at a random moment and replaced.
     --full: jobs of which one worker cannot write more than a random size. --stops: jobs whose workers are all ended
     (SIGTERM) at a random moment and started again. --dask: jobs by melflow.distributed on a cluster of Dask in this
     machine (needs the Python package and distributed).
Out: processor time of a job's workers over that of one program, without the plan and the merge; then for each kind
     how many jobs gave the same file as `melflow run` (with a worker killed, also: no part was made twice), and how much
     more processor time they took than an undisturbed one, in parts. Exit status 0 when all are right, 1 else.
"""

import argparse
import filecmp
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time


class Bench:
    def __init__(self, arguments, folder):
        self.a, self.folder = arguments, folder
        self.out = os.path.join(folder, "out.h5")
        self.reference = os.path.join(folder, "reference.h5")
        self.job = os.path.join(folder, "job")
        self.said = os.path.join(folder, "said.txt")
        self.pipeline = [os.path.abspath(arguments.pipeline), "--var", "DATA=" + os.path.abspath(arguments.data),
                         "--var", "OUT=" + self.out]

    def start(self, *arguments, most=None, out=subprocess.DEVNULL):
        limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))) if most else None
        return subprocess.Popen([self.a.melflow, *arguments], cwd=self.folder, preexec_fn=limit,
                                stdout=out, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    @staticmethod
    def end(process):
        """Exit status and processor time [s]."""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, usage.ru_utime + usage.ru_stime

    def call(self, *arguments):
        code, cpu = self.end(self.start(*arguments))
        if code not in (0, 3):
            sys.exit(f"melflow {' '.join(arguments)}: exit {code}")
        return cpu

    def alone(self):
        if os.path.exists(self.out):
            os.remove(self.out)
        return self.call("run", *self.pipeline, "-q", "--workers", str(self.a.processes))

    def corpus_bytes(self):
        return sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(self.a.data) for name in names)

    def plan(self):
        shutil.rmtree(self.job, ignore_errors=True)
        open(self.said, "w").close()
        if os.path.exists(self.out):
            os.remove(self.out)
        size = self.corpus_bytes()
        self.call("plan", *self.pipeline, "--workers", str(self.a.processes), "--part",
                  str(-(-size // self.a.parts)), "-o", self.job)

    def worker(self, most=None):
        with open(self.said, "a") as said:  # the line of each part that it has made
            return self.start("work", self.job, "--workers", "1", most=most, out=said)

    def parts_made(self):
        with open(self.said) as said:
            return [line.split()[1] for line in said if line.startswith("part ")]

    def finish(self, workers):
        """Waits for workers. Returns their exit statuses and their processor time [s] together."""
        ended = [self.end(w) for w in workers]
        return [code for code, _ in ended], sum(cpu for _, cpu in ended)

    def is_same(self):
        self.call("merge", self.job, "-q")
        return filecmp.cmp(self.out, self.reference, shallow=False)

    def undisturbed(self):
        self.plan()
        began = time.monotonic()
        codes, cpu = self.finish([self.worker() for _ in range(self.a.processes)])
        wall = time.monotonic() - began
        return cpu, wall, set(codes) == {0} and self.is_same()

    def by_dask(self):
        import dask.distributed as dask
        from melflow import distributed

        os.environ["MELFLOW_PROGRAM"] = self.a.melflow
        shutil.rmtree(self.job, ignore_errors=True)
        if os.path.exists(self.out):
            os.remove(self.out)
        size = self.corpus_bytes()
        with dask.LocalCluster(self.a.processes, threads_per_worker=1, dashboard_address=None) as cluster, \
                dask.Client(cluster) as client:
            began = time.monotonic()
            distributed.run(self.a.pipeline, client, job=self.job, vars={"DATA": os.path.abspath(self.a.data), "OUT": self.out},
                            sets={"workers": self.a.processes}, part=str(-(-size // self.a.parts)), merge=False)
            wall = time.monotonic() - began
        return wall, self.is_same()

    def killed(self, chance, wall):
        self.plan()
        workers = [self.worker() for _ in range(self.a.processes)]
        time.sleep(chance.uniform(0, wall))
        victim = workers.pop(chance.randrange(len(workers)))
        os.kill(victim.pid, signal.SIGKILL)  # Popen.send_signal() would reap a process that has ended
        _, lost = self.finish([victim])
        codes, cpu = self.finish([*workers, self.worker()])
        # No finished part is made again: a kill loses only the part in flight.
        return cpu + lost, set(codes) == {0} and len(self.parts_made()) == len(set(self.parts_made())) and self.is_same()

    def full(self, chance, part_bytes):
        self.plan()
        unlucky = self.worker(most=chance.randrange(4096, part_bytes))
        codes, cpu = self.finish([self.worker() for _ in range(self.a.processes - 1)])
        ended, lost = self.finish([unlucky])
        return cpu + lost, set(codes) == {0} and ended[0] in (0, 1) and self.is_same()

    def stopped(self, chance, wall):
        self.plan()
        workers = [self.worker() for _ in range(self.a.processes)]
        time.sleep(chance.uniform(0, wall))
        for w in workers:
            os.kill(w.pid, signal.SIGTERM)
        before, lost = self.finish(workers)
        codes, cpu = self.finish([self.worker() for _ in range(self.a.processes)])
        return cpu + lost, set(codes) == {0} and set(before) <= {0, 75, -15} and self.is_same()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pipeline")
    parser.add_argument("data")
    parser.add_argument("--melflow", default="build/release/bin/melflow")
    for name, value in {"parts": 64, "processes": 4, "seed": 1, "costs": 5, "kills": 100, "full": 10, "stops": 10, "dask": 0}.items():
        parser.add_argument("--" + name, type=int, default=value)
    a = parser.parse_args()
    a.melflow = os.path.abspath(a.melflow)
    chance = random.Random(a.seed)
    red = 0
    with tempfile.TemporaryDirectory(prefix="melflow_clusters_", dir=".") as folder:
        bench = Bench(a, os.path.abspath(folder))
        bench.alone()  # warms up
        os.rename(bench.out, bench.reference)
        alone, jobs, walls = [], [], []
        for _ in range(max(1, a.costs)):
            alone.append(bench.alone())
            cpu, wall, same = bench.undisturbed()
            red += not same
            jobs.append(cpu)
            walls.append(wall)
        base, wall = statistics.median(jobs), statistics.median(walls)
        print(f"{a.processes} workers, {a.parts} parts: {statistics.median(a_ for a_ in alone):.2f} s of processor time by one "
              f"program, {base:.2f} s by workers ({base / statistics.median(alone):.3f}), {wall:.2f} s; "
              f"{'the same file' if red == 0 else 'ANOTHER FILE'}; undisturbed jobs take at most "
              f"{(max(jobs) - base) / (base / a.parts):.1f} parts more of it than their median", flush=True)
        part_bytes = max(os.path.getsize(os.path.join(bench.job, "parts", n)) for n in os.listdir(os.path.join(bench.job, "parts")))
        for what, count, run in (("a worker killed", a.kills, lambda: bench.killed(chance, wall)),
                                 ("a disk full under one worker", a.full, lambda: bench.full(chance, part_bytes)),
                                 ("all workers ended and started again", a.stops, lambda: bench.stopped(chance, wall))):
            results = [run() for _ in range(count)]
            wrong = sum(not same for _, same in results)
            red += wrong
            if results:
                more = sorted((cpu - base) / (base / a.parts) for cpu, _ in results)
                print(f"{count} jobs, {what}: {count - wrong} gave the same file; {statistics.median(more):.1f} parts more of "
                      f"processor time in the median, {more[int(0.95 * (count - 1))]:.1f} in 95 %, {more[-1]:.1f} at most", flush=True)
        by_dask = [bench.by_dask() for _ in range(a.dask)]
        if by_dask:
            wrong = sum(not same for _, same in by_dask)
            red += wrong
            print(f"{a.dask} jobs by Dask, {a.processes} workers: {a.dask - wrong} gave the same file; "
                  f"{statistics.median(wall for wall, _ in by_dask):.2f} s without the merge", flush=True)
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
