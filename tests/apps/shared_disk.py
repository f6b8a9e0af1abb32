"""Makes jobs on a disk that several machines share, as such disks are, and compares the output with that of one machine.

In:  shared_disk.py MELFLOW LIBRARY
     LIBRARY: shared_disk.cpp, built.
Out: a line for what is wrong; exit status 0 when nothing is, 1 else.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import kill_walk

SECONDS = 120
DAY = 86400


class Disk:
    def __init__(self, work, program, library):
        self.work, self.program, self.library = work, program, library
        kill_walk.make_corpus(os.path.join(work, "corpus"))
        self.yaml = os.path.join(work, "job.yaml")
        with open(self.yaml, "w") as f:
            f.write(kill_walk.PIPELINE.format(root=os.path.join(work, "corpus"), **kill_walk.CASES["every_file"].text))
        self.folder = os.path.join(work, "alone")
        os.makedirs(self.folder)
        self.code = self.run("run", self.yaml, "-q").returncode
        self.expected = self.output()

    def begin(self, *arguments, machine="here", clock=0, locks="", stale=0):
        boot = os.path.join(self.work, machine)
        with open(boot, "w") as f:
            f.write(f"{machine:*<36}\n")
        environment = {"LD_PRELOAD": self.library, "MELFLOW_MACHINE": boot, "MELFLOW_CLOCK": str(clock),
                       "MELFLOW_STALE": str(stale), **({"MELFLOW_LOCKS": locks} if locks else {})}
        return subprocess.Popen([self.program, *arguments], cwd=self.folder, env={**os.environ, **environment},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)

    @staticmethod
    def end(process):
        out, err = process.communicate(timeout=SECONDS)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def run(self, *arguments, **how):
        return self.end(self.begin(*arguments, **how))

    def output(self):
        with open(os.path.join(self.folder, "out.h5"), "rb") as f:
            return f.read()

    def names(self, of):
        return {name.split(".")[0] for name in os.listdir(os.path.join(self.folder, "job", of))}

    def plan(self, name):
        self.folder = os.path.join(self.work, name)
        os.makedirs(self.folder)
        planned = self.run("plan", self.yaml, "--part", "60KiB", "-o", "job")
        assert planned.returncode == 0, planned.stderr

    def held(self, **how):
        """A worker that is stopped (SIGSTOP) while it is at a part, and the part."""
        process = self.begin("work", "job", **how)
        until(lambda: self.names("claims"), process)
        while True:
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            at = self.names("claims") - self.names("done")
            if at:
                return process, at.pop()
            process.send_signal(signal.SIGCONT)
            until(lambda: self.names("claims") - self.names("done"), process)

    def merged(self, **how):
        """"" or what is wrong with what merge makes of the job."""
        ended = self.run("merge", "job", "-q", **how)
        if ended.returncode != self.code:
            return f"merge: exit {ended.returncode}: {ended.stderr[:300]}"
        return "" if self.output() == self.expected else "other bytes"


def until(is_so, process):
    limit = time.monotonic() + SECONDS
    while not is_so():
        if process.poll() is not None or time.monotonic() > limit:
            raise RuntimeError(f"ended, or nothing happened: {process.args}")


def parts_made(*ended):
    return sum(int(e.stdout.split(" part")[0].split()[-1]) for e in ended)


def clocks_differ(disk):
    """A worker that is still there keeps its part, whatever the time is elsewhere and whatever locks say there."""
    disk.plan("clocks")
    parts = len(open(os.path.join(disk.folder, "job/job.json")).read().split('"first"')) - 1
    a, part = disk.held(machine="a", clock=-DAY, locks="own")
    b = disk.begin("work", "job", machine="b", clock=DAY, locks="own")
    until(lambda: len(disk.names("done") | {part}) == parts, b)
    a.send_signal(signal.SIGCONT)
    ended = disk.end(a), disk.end(b)
    if any(e.returncode for e in ended):
        return "".join(e.stderr for e in ended)
    if (made := parts_made(*ended)) != parts:
        return f"{made} parts made of {parts}"
    return disk.merged(clock=3 * DAY)


def no_locks(disk):
    """A worker that is dead on another machine, and no locks that could tell: patience alone does."""
    disk.plan("locks")
    a, part = disk.held(machine="a", locks="none", clock=DAY)
    a.kill()
    disk.end(a)
    b = disk.run("work", "job", "--patience", "0.3s", machine="b", locks="none")
    if b.returncode or part not in disk.names("done"):
        return f"work: exit {b.returncode}: {b.stderr}"
    return disk.merged()  # without locks its output would have a warning


def stale_views(disk):
    """Files that others have made are seen later: parts may be made twice, and nothing else comes of it."""
    disk.plan("stale")
    workers = [disk.begin("work", "job", machine=machine, locks="own", stale=3) for machine in "abc"]
    for ended in [disk.end(w) for w in workers]:
        if ended.returncode:
            return f"work: exit {ended.returncode}: {ended.stderr}"
    early = disk.run("merge", "job", "-q", machine="d", stale=1)
    if early.returncode != 1 or "are not done" not in early.stderr or os.path.exists(os.path.join(disk.folder, "out.h5")):
        return f"merge by a stale view: exit {early.returncode}: {early.stderr}"
    return disk.merged(machine="d")


def main():
    program, library = (os.path.abspath(path) for path in sys.argv[1:])
    red = 0
    with tempfile.TemporaryDirectory(prefix="melflow_disk_") as work:
        disk = Disk(work, program, library)
        for case in clocks_differ, no_locks, stale_views:
            what = case(disk)
            red += bool(what)
            print(f"{case.__name__}: {what or 'the same bytes'}", flush=True)
            shutil.rmtree(disk.folder)
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
