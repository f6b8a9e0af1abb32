"""Kills the programs that make a job's parts, lets others go on, and compares the output with that of one machine.

In:  job_walk.py MELFLOW LIBRARY [--kills N] [--seed S] [--cases A,B] [--jobs J]
     LIBRARY: fail_call.cpp, built. N programs are killed in all: at a call of the system, half of them at one that
     changes files. Most are workers, one alone, two one behind the other, or two at the same time; every eighth makes the
     plan, every eighth merges.
Out: a line for each that ended wrong, and a table; exit status 0 when there is none, 1 else.

Right is: the next program of that kind does the rest; the output has the same files with the same bytes as that of a
run on one machine; no part is claimed, failed or missing then.
"""

import concurrent.futures
import os
import random
import shutil
import subprocess
import sys
import tempfile

import kill_walk
import walks

NAMES = ["hdf5", "npy", "splits", "deflate", "float16", "normalize", "blocks", "late", "samples"]
PART = "60KiB"  # about eight files


class JobWalk:
    def __init__(self, work, program, library, name):
        self.program, self.library, self.name = program, library, name
        self.work = os.path.join(work, name)
        os.makedirs(self.work)
        self.yaml = os.path.join(self.work, "job.yaml")
        with open(self.yaml, "w") as f:
            f.write(kill_walk.PIPELINE.format(root=os.path.join(work, "corpus"), **kill_walk.CASES[name].text))
        alone = self.folder("alone")
        ended = self.run(alone, {}, "run", self.yaml, "--workers", "2")
        assert ended.returncode in (0, 3), ended.stderr
        self.code, self.expected = ended.returncode, self.outputs(alone)
        logged = self.folder("logged")
        self.counts = {}
        for verb, arguments in self.verbs().items():
            log = os.path.join(self.work, "log-" + verb)
            ended = self.run(logged, {"MELFLOW_FAULT_LOG": log}, verb, *arguments)
            assert ended.returncode in (0, self.code), ended.stderr
            self.counts[verb] = walks.counts(log)

    def verbs(self):
        return {"plan": [self.yaml, "--workers", "2", "--part", PART, "-o", "job"], "work": ["job", "--workers", "2"],
                "merge": ["job", "--workers", "2"]}

    def folder(self, name):
        out = os.path.join(self.work, name)
        os.makedirs(out)
        return out

    def begin(self, folder, environment, verb, *arguments):
        return walks.begin([self.program, verb, *arguments], folder, LD_PRELOAD=self.library, **environment)

    def end(self, process):
        try:
            out, err = process.communicate(timeout=kill_walk.SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def run(self, folder, environment, verb, *arguments):
        return self.end(self.begin(folder, environment, verb, *arguments))

    @staticmethod
    def outputs(folder):
        return {name: walks.read(os.path.join(folder, name)) for name in os.listdir(folder) if name != "job"}

    def place(self, verb, chance):
        counts = self.counts[verb]
        calls = kill_walk.WRITING if chance.random() < 0.5 else kill_walk.WRITING + kill_walk.OTHERS
        call = chance.choice([c for c in calls if counts.get(c, 0) > 0])
        return {"MELFLOW_FAULT": f"{call}:{chance.randint(1, counts[call])}:kill"}

    def wrong(self, number, seed):
        """How it ended wrong, "" where it did not; how many were killed, and whether work was gone on with."""
        chance = random.Random(seed)
        folder = self.folder(str(number))
        verbs, killed, went_on = self.verbs(), 0, False

        def step(verb, kills):
            nonlocal killed, went_on
            for fault in kills:
                killed += self.run(folder, fault, verb, *verbs[verb]).returncode == -9
            ended = self.run(folder, {}, verb, *verbs[verb])
            went_on = went_on or b"resumes an interrupted run" in ended.stderr
            return ended

        try:
            kind = number % 8
            planned = step("plan", [self.place("plan", chance)] if kind == 6 else [])
            if planned.returncode != 0 and b"there is a job already" not in planned.stderr:
                return f"plan: exit {planned.returncode}: {planned.stderr.decode(errors='replace')[:300]}", killed, went_on
            if kind in (4, 5):  # several programs at the same time
                both = [self.begin(folder, self.place("work", chance), "work", *verbs["work"]) for _ in range(kind - 3)]
                both.append(self.begin(folder, {}, "work", *verbs["work"]))
                for process in both:
                    ended = self.end(process)
                    killed += ended.returncode == -9
                    if ended.returncode not in (-9, 0):
                        return f"work: exit {ended.returncode}: {ended.stderr.decode(errors='replace')[:300]}", killed, went_on
            worked = step("work", [self.place("work", chance) for _ in range({0: 1, 1: 1, 2: 2, 3: 3}.get(kind, 0))])
            if worked.returncode != 0:
                return f"work: exit {worked.returncode}: {worked.stderr.decode(errors='replace')[:300]}", killed, went_on
            merged = step("merge", [self.place("merge", chance)] if kind == 7 else [])
            if merged.returncode != self.code and b"exists already" not in merged.stderr:
                return f"merge: exit {merged.returncode}: {merged.stderr.decode(errors='replace')[:300]}", killed, went_on
            if others := walks.difference(self.outputs(folder), self.expected):
                return others, killed, went_on
            for name in "claims", "failed":
                if left := os.listdir(os.path.join(folder, "job", name)):
                    return f"{name} has {', '.join(left)}", killed, went_on
            parts, done = (sorted(n.split(".")[0] for n in os.listdir(os.path.join(folder, "job", name)) if n.count(".") == 1)
                           for name in ("parts", "done"))
            return ("" if parts == done else "parts and records differ"), killed, went_on
        except subprocess.TimeoutExpired:
            return "hangs", killed, went_on
        finally:
            shutil.rmtree(folder)


def main():
    arguments = walks.arguments(kills=1000, seed=1, cases=",".join(NAMES))
    red = kills = 0
    names = arguments.cases.split(",")
    with tempfile.TemporaryDirectory(prefix="melflow_jobs_") as work, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        kill_walk.make_corpus(os.path.join(work, "corpus"))
        jobs = {name: JobWalk(work, arguments.melflow, arguments.library, name) for name in names}
        rounds = {name: [0, 0, 0] for name in names}  # jobs, kills, those that were resumed
        number = 0
        while kills < arguments.kills:
            batch = [(names[(number + i) % len(names)], number + i) for i in range(4 * arguments.jobs)]
            number += len(batch)
            results = pool.map(lambda at: jobs[at[0]].wrong(at[1] // len(names), f"{arguments.seed} {at}"), batch)
            for (name, at), (what, killed, went_on) in zip(batch, results):
                kills += killed
                rounds[name] = [a + b for a, b in zip(rounds[name], (1, killed, went_on))]
                if what:
                    red += 1
                    print(f"{name}, {at}: {what}", flush=True)
    for name, (made, killed, went_on) in rounds.items():
        print(f"{name}: {made} jobs, {killed} kills, in {went_on} work was gone on with")
    print(f"{kills} kills: {red} jobs ended wrong")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
