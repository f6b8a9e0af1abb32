"""A program that ends while it decodes: the same command finishes the corpus, without the one recording for which it ends; a kill
costs none.

In:  ended_decoding.py MELFLOW LIBRARY     LIBRARY: of break_flac.cpp
"""

import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

from walks import read

PIPELINE = """version: 1
graph:
  files: {{stage: file_list, root: {root}}}
  read: {{stage: disk_read, from: files, whole: {whole}}}
  decode: {{stage: decode, from: read, block: 64KiB{decode}}}
  resample: {{stage: resample, from: decode, rate: 16000}}
  segment: {{stage: segment, from: resample}}
  batch: {{stage: batch, from: segment, files: 2}}
  mel: {{stage: mel, from: batch, sample_rate: 16000, n_mels: 40, n_fft: 512, hop: 256}}
  write: {{stage: npy_write, from: mel, path: {out}.npy, checkpoint: 64KiB}}
"""
DEADLINE = 120  # [s], for a hanging run to end itself
ENDED_TWICE = "the program ended twice while this file was being decoded, the second time while nothing else was"
HUNG_TWICE = ENDED_TWICE.split(", the second")[0] + ", the second time since its decoder did not come back"
RATES = {"segv.flac": 11025, "abort.flac": 12000, "hang.flac": 22050}


def crc(data, polynomial, bits):
    out, top, mask = 0, 1 << (bits - 1), (1 << bits) - 1
    for byte in data:
        out ^= byte << (bits - 8)
        for _ in range(8):
            out = ((out << 1) ^ polynomial if out & top else out << 1) & mask
    return out


def flac(path, rate, seconds, seed, broken=False):
    """16-bit mono, blocks of 4096 samples that are stored as they are (RFC 9639)."""
    rng = random.Random(seed)
    count = int(rate * seconds) // 4096 * 4096
    bits = rate << 44 | 0 << 41 | 15 << 36 | count
    data = b"fLaC" + b"\x80" + (34).to_bytes(3, "big") + struct.pack(">HH", 4096, 4096) + bytes(6) + bits.to_bytes(8, "big") + bytes(16)
    for number in range(count // 4096):
        head = b"\xff\xf8\xc0\x08" + chr(number).encode()
        head += bytes([crc(head, 0x07, 8)])
        frame = head + b"\x02" + rng.randbytes(8192)
        end = crc(frame, 0x8005, 16) ^ (1 if broken and number == count // 8192 else 0)
        data += frame + end.to_bytes(2, "big")
    with open(path, "wb") as f:
        f.write(data)


class Folder:
    """A corpus with these broken recordings in the middle, and what makes rows of it."""

    def __init__(self, work, program, library, name, broken=()):
        self.work, self.program, self.library, self.name = work, program, library, name
        root = os.path.join(work, name)
        os.mkdir(root)
        for i in range(24):
            flac(os.path.join(root, f"{'a' if i < 12 else 'z'}{i:02}.flac"), 16000, 1 + i % 4, i)
        flac(os.path.join(root, "long.flac"), 16000, 31, 9)
        for seed, bad in enumerate(broken):
            flac(os.path.join(root, bad), RATES[bad], 2, 20 + seed)

    def write(self, out, decode="", whole="8MiB"):
        with open(os.path.join(self.work, out + ".yaml"), "w") as f:
            f.write(PIPELINE.format(root=self.name, out=out, decode=decode, whole=whole))

    def start(self, *arguments, breaks=True, hangs=""):
        environment = dict(os.environ, MELFLOW_HANGS=hangs)
        if breaks:
            environment["LD_PRELOAD"] = self.library
        return subprocess.Popen([self.program, *arguments], cwd=self.work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def run(self, out, workers=2, **how):
        return self.start("run", out + ".yaml", "--json", "--no-progress", "--workers", str(workers), **how)

    def accounts(self, out):
        told = subprocess.run([self.program, "inspect", out, "--json", "--files"], cwd=self.work, capture_output=True, check=True)
        about = json.loads(told.stdout)
        reasons = {r["path"]: r["reason"] for r in about["remarks"]}
        return {f["path"]: (f["status"], reasons.get(f["path"])) for f in about["files"]}

    def expected(self, out, lost):
        """The output of a run that nothing ended and that could not decode these."""
        root = os.path.join(self.work, self.name)
        kept = {name: read(os.path.join(root, name)) for name in lost}
        for name in lost:
            write(os.path.join(root, name), b"no sound" * 100)
        ended(self.run(out, breaks=False), (3,) if lost else (0,), "a run that nothing ends")
        for name, data in kept.items():
            write(os.path.join(root, name), data)
        return self.rows(out)

    def rows(self, out):
        return read(os.path.join(self.work, out + ".npy"))


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def check(is_so, what):
    if not is_so:
        sys.exit(f"WRONG: {what}")


def ended(process, codes, what):
    """Its stderr; `codes` None: by a signal (a sanitizer makes that an exit of its own)."""
    _, err = process.communicate(timeout=DEADLINE)
    is_right = process.returncode not in (0, 3, 75) if codes is None else process.returncode in codes
    check(is_right, f"{what}: exit {process.returncode}: {err[-1500:]}")
    return err


def costs_one_file(new, whole, workers):
    """Two ends for a recording, and the third run finishes."""
    name = f"segv{whole}{workers}"
    folder = new(name, ["segv.flac"])
    folder.write(name, whole=whole)
    folder.write("whole" + name, whole=whole)
    ended(folder.run(name, workers), None, "the first run")
    err = ended(folder.run(name, workers), None, "the second run")
    check("segv.flac" in err and "one at a time" in err, err)
    err = ended(folder.run(name, workers), (3,), "the third run")
    check("segv.flac" in err and "twice a run ended" in err, err)
    rows, accounts = folder.rows(name), folder.accounts(name + ".npy")
    lost = accounts.pop("segv.flac")
    check(lost == ("failed", ENDED_TWICE), lost)
    check(len(accounts) == 25 and set(accounts.values()) == {("ok", None)}, accounts)
    check(rows == folder.expected("whole" + name, ["segv.flac"]), "the rows of the others")


def many(new):
    """Two reruns for each broken recording, at most; one that hangs is ended by the watch."""
    folder = new("many", list(RATES))
    folder.write("many", ", timeout: 1")
    folder.write("wholemany", ", timeout: 1")
    runs, codes = 0, []
    while not codes or codes[-1] != 3:
        process = folder.run("many")
        _, err = process.communicate(timeout=DEADLINE)
        codes.append(process.returncode)
        if process.returncode == 75:
            check("hang.flac" in err and "1 s" in err and "same command" in err, err)
        check(len(codes) <= 2 * len(RATES) + 1, f"too many runs: {codes}: {err[-1500:]}")
    check(75 in codes, f"nothing hung: {codes}")
    failed = {path: reason for path, (status, reason) in folder.accounts("many.npy").items() if status != "ok"}
    check(failed == {"segv.flac": ENDED_TWICE, "abort.flac": ENDED_TWICE, "hang.flac": HUNG_TWICE}, failed)
    check(folder.rows("many") == folder.expected("wholemany", list(RATES)), "the rows of the others")


def kills_cost_none(new):
    """A kill while one recording alone is under way, and then another while another is."""
    folder = new("killed", ["hang.flac", "segv.flac"])
    folder.write("killed", ", timeout: 0")
    folder.write("wholekilled", ", timeout: 0")
    hangs = os.path.join(folder.work, "hangs")
    process = folder.run("killed", workers=1, hangs=hangs)
    until = time.monotonic() + DEADLINE
    while not os.path.exists(hangs):
        check(process.poll() is None and time.monotonic() < until, "nothing hangs")
        time.sleep(0.01)
    process.kill()
    ended(process, (-9,), "a run that is killed")
    # Neither damaged now, nor the only file in flight at both ends: it is computed.
    os.rename(os.path.join(folder.work, "killed", "hang.flac"), os.path.join(folder.work, "hang.flac"))
    ended(folder.run("killed", workers=1), None, "the run that ends itself")
    os.rename(os.path.join(folder.work, "hang.flac"), os.path.join(folder.work, "killed", "hang.flac"))
    err = ended(folder.run("killed", breaks=False), (0,), "the same command again")
    check("one at a time" in err and "twice a run ended" not in err, err)
    check(folder.rows("killed") == folder.expected("wholekilled", []), "the rows")


def parts(new):
    """Workers of a job: a part does not go round for ever, also where each is on another machine."""
    for elsewhere in (False, True):
        name = f"job{elsewhere}"
        folder = new(name, ["segv.flac"])
        folder.write(name)
        folder.write("whole" + name)
        ended(folder.start("plan", name + ".yaml", "--part", "1MiB", "-o", name + ".job"), (0,), "plan")
        signs = os.path.join(folder.work, name + ".job", "workers")
        for codes in (None, None, (0,)):
            ended(folder.start("work", name + ".job", "--workers", "2", "--patience", "200ms"), codes, f"work, elsewhere: {elsewhere}")
            for sign in os.listdir(signs) if elsewhere else ():
                os.remove(os.path.join(signs, sign))
        ended(folder.start("merge", name + ".job"), (3,), "merge")
        lost = folder.accounts(name + ".npy")["segv.flac"]
        check(lost == ("failed", ENDED_TWICE), lost)
        check(folder.rows(name) == folder.expected("whole" + name, ["segv.flac"]), "the rows of a job")


def main():
    program, library = (os.path.abspath(path) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory(prefix="melflow_ended_") as work:

        def new(name, broken=()):
            return Folder(work, program, library, name, broken)

        for whole, workers in (("8MiB", 2), ("8MiB", 1), ("64KiB", 2)):
            costs_one_file(new, whole, workers)
        many(new)
        kills_cost_none(new)
        parts(new)
    print("a recording with which the program ends is left out by the third run, all others are made; a kill costs none")


if __name__ == "__main__":
    main()
