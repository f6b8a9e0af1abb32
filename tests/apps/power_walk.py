"""Lets the power fail at every moment of runs, lets the same command go on with what the disk may hold then, and compares
the output with that of a run that was never interrupted.

In:  power_walk.py MELFLOW LIBRARY [--cases A,B] [--most N] [--seed S] [--jobs J]
     LIBRARY: disk_log.cpp, built. --most: so many moments of a case, drawn; default all.
Out: a line for each that ended wrong, and a table; exit status 0 when there is none, 1 else.

A run's calls that change files are written down. After each of them there are three disks: what was not synced is lost;
or the files have their names and sizes, and zeros for what was not synced; or pages of it are there at random, and
names up to some moment. What fsync and fdatasync said is there in all three, and names as far as their folder was
synced. The machine that goes on has another name for its start.

Right is: after the same command the folder has the same files with the same bytes as after a run without an end. And
with `sync: true` an output that has its name is whole, before anything else is done. Without it the command
may refuse to go on, naming a file that it does not know any more, and an output of a run, not of an update, that has
its name may have lost what was written: such disks are only counted.
"""

import concurrent.futures
import os
import random
import shutil
import struct
import sys
import tempfile

import kill_walk
import walks
from kill_walk import CASES, Case, Walk

HEAD = struct.Struct("8sQQII")
PAGE = 4096
REFUSED = [b"begins with zeros", b"is not melflow's", b"is damaged; it said which files"]
HOW = ["dropped", "zeros", "pages"]

for name in ["hdf5", "npy", "splits", "deflate", "normalize", "blocks", "late", "two", "update", "update_npy", "update_splits", "update_deflate", "update_two"]:
    case = CASES[name]
    text = dict(case.text)
    text["write"] += ", sync: true"
    text["more"] = text["more"].replace("checkpoint: 2KiB", "checkpoint: 2KiB, sync: true")
    CASES["sync_" + name] = synced = Case(updates=case.updates)
    synced.text, synced.verb = text, case.verb


class Disk:
    """What a log says of files, and what is on the disk after some of its records."""

    def __init__(self, folder, before):
        self.folder = os.path.realpath(folder)
        self.start = before  # name: bytes, for files that existed before and are safe
        self.calls = []  # (what, file, at, data or names)

    def read(self, log, numbers):
        """`numbers`: the files of what was there, by their numbers on the disk."""
        here, count = {number: name for number, name in numbers.items()}, 0
        with open(log, "rb") as f:
            data = f.read()
        place = 0
        while place < len(data):
            what, number, at, first, second = HEAD.unpack_from(data, place)
            place += HEAD.size
            a, b = data[place:place + first], data[place + first:place + first + second]
            place += first + second
            what = what.rstrip(b"\0").decode()
            if what == "create":  # a number may have belonged to a file that was removed
                count += 1
                here[number] = f"#{count}"
            file = here.get(number)
            if what in ("create", "unlink"):
                name = self.name(a)
                if name is not None:
                    self.calls.append((what, file, name, None))
            elif what == "rename":
                self.calls.append((what, None, self.name(a), self.name(b)))
            elif what == "sync" and number == 0:
                self.calls.append(("folder", None, None, None))
            elif file is not None:
                self.calls.append((what, file, at, a))

    def name(self, path):
        path = os.path.join(self.folder, path.decode())
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        return os.path.relpath(path, self.folder) if path.startswith(self.folder + os.sep) else None

    def after(self, count, how, chance):
        """name: bytes, where the power failed after `count` calls."""
        calls = self.calls[:count]
        named = max((i + 1 for i, c in enumerate(calls) if c[0] == "folder"), default=0)
        if how == "zeros":
            named = count
        elif how == "pages":
            named = chance.randint(named, count)
        names = {name: name for name in self.start}
        for what, file, a, b in calls[:named]:
            if what == "create":
                names[a] = file
            elif what == "unlink":
                names.pop(a, None)
            elif what == "rename" and a in names:
                names[b] = names.pop(a)
        synced = {}
        for i, (what, file, _, _) in enumerate(calls):
            if what == "sync":
                synced[file] = i
        data = {name: bytearray(content) for name, content in self.start.items()}
        last = {}  # (file, page): the moment whose content it has
        for i, (what, file, at, content) in enumerate(calls):
            if what not in ("size", "write"):
                continue
            bytes_ = data.setdefault(file, bytearray())
            is_safe = i < synced.get(file, -1)
            if not is_safe and how == "dropped":
                continue
            end = at if what == "size" else at + len(content)
            if end > len(bytes_):
                bytes_.extend(bytes(end - len(bytes_)))
            if what == "size":
                del bytes_[at:]
                continue
            for page in range(at // PAGE, (end - 1) // PAGE + 1):
                if is_safe or how == "pages" and i < last.setdefault((file, page), chance.randint(synced.get(file, 0), count)):
                    begin, stop = max(at, page * PAGE), min(end, (page + 1) * PAGE)
                    bytes_[begin:stop] = content[begin - at:stop - at]
        return {name: bytes(data.get(file, b"")) for name, file in names.items()}


class PowerWalk(Walk):
    def record(self):
        clean = self.folder("recorded")
        before = walks.contents(clean)
        numbers = {os.stat(os.path.join(clean, name)).st_ino: name for name in before}
        log = os.path.join(self.work, "disk.log")
        ended = self.start(clean, {"MELFLOW_DISK_LOG": log})
        assert ended.returncode == self.code, ended.stderr
        self.disk = Disk(clean, before)
        self.disk.read(log, numbers)
        self.boot = os.path.join(self.work, "boot")
        with open(self.boot, "w") as f:
            f.write("00000000-0000-4000-8000-000000000000")
        shutil.rmtree(clean)
        return len(self.disk.calls)

    def wrong(self, number, moment):
        """What is wrong; "" where nothing is; else, without sync, "lost": the output has its name and other bytes, or
        "refused"."""
        count, how = moment
        synced = "sync: true" in CASES[self.name].text["write"]
        folder = os.path.join(self.work, str(number))
        os.makedirs(folder)
        try:
            for name, data in self.disk.after(count, how, random.Random(f"{self.name} {count} {how}")).items():
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as f:
                    f.write(data)
            there = self.contents(folder)
            if synced and not CASES[self.name].updates:
                for name, data in self.clean.items():
                    if name in there and there[name] != data:
                        return f"{name} has its name and other bytes"
            ended = self.start(folder, {"MELFLOW_BOOT": self.boot})
            now = self.contents(folder)
            if ended.returncode == self.code and now == self.clean:
                return ""
            if self.is_complete(ended) and now == self.clean:
                return ""
            if not synced and not CASES[self.name].updates and any(name in there for name in self.clean):
                return "lost"
            if not synced and ended.returncode == 1 and any(text in ended.stderr for text in REFUSED):
                return "refused"
            if ended.returncode != self.code:
                return f"then exit {ended.returncode}: {ended.stderr.decode(errors='replace')[:300]}"
            return walks.difference(now, self.clean)
        except kill_walk.subprocess.TimeoutExpired:
            return "hangs"
        finally:
            shutil.rmtree(folder)


def main():
    cases = ",".join(name for name in CASES if name not in ("preload", "cache", "sync"))
    arguments = walks.arguments(cases=cases, most=0, seed=1)
    red = disks = 0
    names = arguments.cases.split(",")
    with tempfile.TemporaryDirectory(prefix="melflow_power_") as work, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        kill_walk.make_corpus(os.path.join(work, "corpus"))
        for name in names:
            walk = PowerWalk(work, arguments.melflow, arguments.library, name)
            calls = walk.record()
            moments = [(count, how) for count in range(calls + 1) for how in HOW]
            if 0 < arguments.most < len(moments):
                moments = random.Random(f"{arguments.seed} {name}").sample(moments, arguments.most)
            not_synced = {"lost": 0, "refused": 0}
            for what, moment in zip(pool.map(walk.wrong, range(len(moments)), moments), moments):
                if what in not_synced:
                    not_synced[what] += 1
                elif what:
                    red += 1
                    print(f"{name}: after call {moment[0]}, {moment[1]}: {what}", flush=True)
            disks += len(moments)
            print(f"{name}: {calls} calls, {len(moments)} disks"
                  + "".join(f", {count} {what}" for what, count in not_synced.items() if count), flush=True)
            shutil.rmtree(walk.work)
    print(f"{disks} disks: {red} ended wrong")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
