"""Plants files beside an output that a run would trust, write to or remove, and looks at what the run does with them.

In:  side_file_walk.py MELFLOW LIBRARY [--part] [--jobs J]
     LIBRARY: fail_call.cpp, built. --part: every seventh combination, for the tests.
Out: a line for each combination that ended wrong, and a table; exit status 0 when there is none, 1 else.

A combination is a verb, one or two names of files beside its output, and what lies there: a file with some content, of
this user or of another one (as root, which may give files away), or a link, folder or FIFO. Right is:
- no file but the output and what has such a name is changed or removed, whatever a planted list of files says;
- what is refused changes nothing at all: names, sizes, times, bytes; nor does a dry run, refused or not;
- another user's file, a link, a folder and a FIFO are refused, by name;
- what is not refused gives the bytes that it gives where nothing was planted, but for a list of this user's own whose
  files are outputs of the pipeline: they get their names, as those of an interrupted run;
- nothing hangs, and nothing ends by a signal.
"""

import collections
import concurrent.futures
import ctypes
import itertools
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
import tempfile

import walks

SECONDS = 30
OTHER = 4711  # another user
HUGE = 1 << 40  # [bytes], without blocks on disk

PIPELINE = """
version: 1
graph:
  files: {{stage: file_list, root: {root}, include: "{include}"}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
  segment: {{stage: segment, from: decode}}
  batch: {{stage: batch, from: segment}}
  mel: {{stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 20, n_mels: {bands}}}
  write: {{stage: hdf5_write, from: mel, path: {out}, overwrite: true, sync: true, checkpoint: "1"}}
"""

VERBS = ["run", "run over", "update", "update --dry-run", "merge"]
SIDES = ["part", "new.part", "journal", "commit", "commit.part", "undo", "undo.part", "replaced"]
TOGETHER = [[side] for side in SIDES] + [["part", "journal"], ["new.part", "journal"], ["part", "commit"], ["part", "undo"]]
CONTENTS = ["empty", "zeros", "random", "another run's", "the plan's, of another output", "truncated", "huge", "planted"]
LINKS = ["symlink", "dangling", "folder", "fifo", "hard link"]
MARKS = {"part": b"melflow part 1\n", "new.part": b"melflow part 1\n", "journal": b"melflow log 1\n",
         "commit": b"melflow names 1\n", "commit.part": b"melflow names 1\n", "undo": b"melflow undo 2\n\0",
         "undo.part": b"melflow undo 2\n\0", "replaced": b"\x89HDF\r\n\x1a\n"}
BYSTANDERS = ["precious", "precious.h5", "precious.h5.part", "../precious.h5", "../precious.h5.part"]


def make_corpus(folder):
    noise = random.Random(1)
    for name in "ab":
        walks.write_wav(os.path.join(folder, name + ".wav"), noise.randbytes(2 * 6000))


def commit(names, how=b"1"):
    """A list of files that are about to have their names, as files/publication.h has it."""
    xxhash = ctypes.CDLL("libxxhash.so.0")
    xxhash.XXH3_64bits.restype = ctypes.c_uint64
    listed = b"".join(how + name.encode() + b"\0" for name in names)
    return b"melflow names 1\n" + struct.pack("<Q", xxhash.XXH3_64bits(listed, ctypes.c_size_t(len(listed)))) + listed


def state_of(folder):
    """Of everything below: what it is, size, time, links, and bytes or where a link leads."""
    out = {}
    for place, folders, names in os.walk(folder):
        for name in folders + names:
            path = os.path.join(place, name)
            st = os.lstat(path)
            data = b""
            if stat.S_ISLNK(st.st_mode):
                data = os.readlink(path)
            elif stat.S_ISREG(st.st_mode) and st.st_size < HUGE:
                data = walks.read(path)
            times = 0 if stat.S_ISDIR(st.st_mode) else st.st_mtime_ns
            out[os.path.relpath(path, folder)] = (stat.S_IFMT(st.st_mode), st.st_uid, 0 if stat.S_ISDIR(st.st_mode) else
                                                  st.st_size, times, data)
    return out


class Bench:
    """A folder in which combinations are tried one after the other."""

    def __init__(self, program, library, work, corpus, number, samples=None):
        self.program, self.library = program, library
        self.top = os.path.join(work, str(number))
        self.folder = os.path.join(self.top, "in")
        self.job = os.path.join(self.top, "job")
        os.makedirs(self.folder)
        self.clear()
        for name, kinds in {"p": {}, "first": dict(include="a.wav"), "other": dict(out="other.h5"),
                            "bands": dict(bands=12)}.items():
            text = dict(root=corpus, include="*.wav", out="out.h5", bands=40)
            with open(os.path.join(self.top, name + ".yaml"), "w") as f:
                f.write(PIPELINE.format(**{**text, **kinds}))
        self.expect(self.start(["run", "../first.yaml"]))
        self.early = walks.read(self.out())
        self.clear()
        self.expect(self.start(["plan", "../p.yaml", "-o", self.job]))
        self.expect(self.start(["work", self.job]))
        self.samples = samples or {
            kind: self.harvest(name) for kind, name in
            {"another run's": "bands", "the plan's, of another output": "other", "planted": "p"}.items()}
        self.clean = {}
        for verb in VERBS:
            self.begin(verb)
            self.expect(self.start(self.words(verb)))
            self.clean[verb] = self.output()

    def out(self, name="out.h5"):
        return os.path.join(self.folder, name)

    def output(self):
        return walks.read(self.out()) if os.path.exists(self.out()) else None

    def clear(self):
        shutil.rmtree(self.folder)
        os.makedirs(self.folder)
        for name in BYSTANDERS:
            with open(self.out(name), "w") as f:
                f.write("precious " + name)

    def begin(self, verb):
        self.clear()
        if verb in ("run over", "update", "update --dry-run"):
            with open(self.out(), "wb") as f:
                f.write(self.early)

    def words(self, verb):
        first, *more = verb.split()
        if first == "merge":
            return [first, self.job, "-o", self.out()]
        return [first, "../p.yaml", *(more if first == "update" else [])]

    def start(self, words, environment=None):
        quiet = [] if words[0] == "plan" else ["-q"]
        return walks.run([self.program, *words, *quiet], self.folder, SECONDS, **(environment or {}))

    @staticmethod
    def expect(ended):
        assert ended.returncode == 0, ended.stderr

    def harvest(self, name):
        """The side files of runs and updates that are killed at their calls that change files: the last of each kind."""
        out = {}
        for verb, there in (("run", False), ("run", True), ("update", True)):
            for call, n in itertools.product(["pwrite", "rename", "unlink"], range(2, 9)):
                self.clear()
                target = "other.h5" if name == "other" else "out.h5"
                if there and name != "bands":
                    with open(self.out(target), "wb") as f:
                        f.write(self.early)
                ended = self.start([verb, f"../{name}.yaml"],
                                   {"LD_PRELOAD": self.library, "MELFLOW_FAULT": f"{call}:{n}:kill"})
                for side in SIDES:
                    path = self.out(f"{target}.{side}")
                    if os.path.exists(path) and os.path.getsize(path) > 0:
                        out[side] = walks.read(path)
        self.clear()
        return out

    def content(self, side, kind, chance):
        if kind == "empty":
            return b""
        if kind == "zeros":
            return bytes(1 << 17)
        if kind == "random":
            return chance.randbytes(1 << 15)
        if kind == "truncated":
            whole = self.samples["planted"].get(side, MARKS[side] + chance.randbytes(200))
            return whole[:chance.randrange(len(whole))]
        if kind == "huge":
            return MARKS[side]
        if kind == "planted" and side.startswith("commit"):
            return commit(chance.choice([["precious.h5"], ["out.h5", "precious.h5"], ["../precious.h5"],
                                         [os.path.join(self.top, "precious.h5")], ["out.h5", "../in/precious.h5"]]),
                          chance.choice([b"0", b"1", b"2"]))
        return self.samples[kind].get(side, MARKS[side] + chance.randbytes(1 << 12))

    def plant(self, side, owner, kind, chance):
        path = self.out("out.h5." + side)
        precious = self.out("precious")
        if kind in CONTENTS:
            with open(path, "wb") as f:
                f.write(self.content(side, kind, chance))
                if kind == "huge":
                    f.truncate(HUGE)
        elif kind == "folder":
            os.mkdir(path)
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "hard link":
            os.link(precious, path)
        else:
            os.symlink(precious if kind == "symlink" else self.out("nowhere"), path)
        if owner != os.geteuid():
            os.lchown(path, owner, owner)

    def wrong(self, combination):
        verb, sides, owner, kind = combination
        chance = random.Random(repr(combination))
        self.begin(verb)
        for side in sides:
            self.plant(side, owner, kind, chance)
        before = state_of(self.top)
        try:
            ended = self.start(self.words(verb))
        except subprocess.TimeoutExpired:
            return "hangs", False
        now = state_of(self.top)
        told = ended.stderr.decode(errors="replace")
        refused = ended.returncode != 0
        changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        if ended.returncode not in (0, 1):
            return f"exit {ended.returncode}: {told[:300]}", refused
        may_complete = owner == os.geteuid() and kind == "another run's" and "commit" in sides and verb != "update --dry-run"
        if (refused or verb.endswith("dry-run")) and changed and not may_complete:
            return f"exit {ended.returncode}, and changed are {', '.join(changed)}: {told[:300]}", refused
        if refused and "out.h5" not in told:
            return f"no file is named: {told[:300]}", refused
        if not refused and (owner != os.geteuid() or kind in LINKS):
            return "is not refused", refused
        own = {"in/out.h5"} | {name for name in before.keys() | now.keys() if name.startswith("in/out.h5.")}
        if set(changed) - own:
            return f"changed are {', '.join(changed)}", refused
        if not refused and not may_complete and self.output() != self.clean[verb]:
            return "other bytes than without it", refused
        return "", refused


def main():
    arguments = walks.arguments(part=False)
    me = os.geteuid()
    owners = [me, OTHER] if me == 0 else [me]
    combinations = [c for c in itertools.product(VERBS, TOGETHER, owners, CONTENTS + LINKS)
                    if c[2] == me or c[3] != "hard link"]  # which would give the user's own file away
    if arguments.part:
        combinations = combinations[::7]
    red = 0
    table = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="melflow_side_files_") as work:
        corpus = os.path.join(work, "corpus")
        make_corpus(corpus)
        benches = []
        for k in range(arguments.jobs):
            benches.append(Bench(arguments.melflow, arguments.library, work, corpus, k,
                                 benches[0].samples if benches else None))

        def each(bench, mine):
            return [(c, *bench.wrong(c)) for c in mine]

        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            shares = [combinations[k::arguments.jobs] for k in range(arguments.jobs)]
            for results in pool.map(each, benches, shares):
                for (verb, sides, owner, kind), what, refused in results:
                    table[verb, "refused" if refused else "done"] += 1
                    if what:
                        red += 1
                        who = "own" if owner == me else "another user's"
                        print(f"{verb}, out.h5.{' and '.join(sides)}, {who}, {kind}: {what}", flush=True)
    for verb in VERBS:
        print(f"{verb}: {table[verb, 'refused']} refused, {table[verb, 'done']} done")
    print(f"{len(combinations)} combinations: {red} ended wrong")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
