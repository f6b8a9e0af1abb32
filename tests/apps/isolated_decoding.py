"""Decoding in processes of its own: the same rows, warnings and failures as without; a crash, a hang or a kill costs one file; and
no process is left, however melflow ends.

In:  isolated_decoding.py MELFLOW LIBRARY     LIBRARY: of break_flac.cpp
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
import wave

PIPELINE = """version: 1
memory: {{host: {memory}}}
graph:
  files: {{stage: file_list, root: {root}}}
  read: {{stage: disk_read, from: files, whole: {whole}}}
  decode: {{stage: decode, from: read, block: 64KiB{decode}}}
  resample: {{stage: resample, from: decode, rate: 16000}}
  segment: {{stage: segment, from: resample}}
  batch: {{stage: batch, from: segment}}
  mel: {{stage: mel, from: batch, sample_rate: 16000, n_mels: 40, n_fft: 512, hop: 256}}
  write: {{stage: npy_write, from: mel, path: {out}}}
"""
ISOLATED = ", isolation: process"
DEADLINE = 120  # [s] of a run that hangs itself


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


def wav(path, width, channels):
    with wave.open(path, "wb") as f:
        f.setnchannels(channels)
        f.setsampwidth(width)
        f.setframerate(16000)
        f.writeframes(random.Random(width).randbytes(20000 * width * channels))


class Job:
    def __init__(self, work, program, library):
        self.work, self.program, self.library = work, program, library

    def start(self, out, decode="", whole="8MiB", breaks=False, memory="512MiB", root="corpus", **more):
        with open(os.path.join(self.work, out + ".yaml"), "w") as f:
            f.write(PIPELINE.format(whole=whole, decode=decode, out=out + ".npy", memory=memory, root=root))
        environment = dict(os.environ, MELFLOW_HANGS=os.path.join(self.work, out + ".hangs"))
        if breaks:
            environment["LD_PRELOAD"] = self.library
        return subprocess.Popen([self.program, "run", out + ".yaml", "--json", "--no-progress", "--workers", "2"], cwd=self.work,
                                env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **more)

    def accounts(self, out):
        told = subprocess.run([self.program, "inspect", out + ".npy", "--json", "--files"], cwd=self.work, capture_output=True,
                              check=True)
        about = json.loads(told.stdout)
        reasons = {r["path"]: r["reason"] for r in about["remarks"]}
        for f in about["files"]:
            if f.get("reason"):
                reasons[f["path"]] = f["reason"]
        return {f["path"]: (f["status"], reasons.get(f["path"])) for f in about["files"]}

    def rows(self, out):
        with open(os.path.join(self.work, out + ".npy"), "rb") as f:
            return f.read()


def children(pid):
    """The processes that decode for melflow."""
    out = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as f:
                state, parent = f.read().rsplit(")", 1)[1].split()[:2]
            with open(f"/proc/{name}/cmdline", "rb") as f:
                if int(parent) == pid and state != "Z" and b"decoder-process" in f.read():
                    out.append(int(name))
        except (OSError, ValueError):
            pass
    return out


def wait_until(is_so, what):
    until = time.monotonic() + DEADLINE
    while not is_so():
        if time.monotonic() > until:
            sys.exit(f"in vain for {DEADLINE} s: {what}")
        time.sleep(0.01)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def check(is_so, what):
    if not is_so:
        sys.exit(f"WRONG: {what}")


def ended(process, codes, what):
    out, err = process.communicate(timeout=DEADLINE)
    check(process.returncode in codes, f"{what}: exit {process.returncode}: {err.decode()[-1500:]}")
    return out, err


def same_as_without(job):
    for whole in ("8MiB", "64KiB"):
        ended(job.start("here" + whole, whole=whole), (3,), "without isolation")
        ended(job.start("apart" + whole, ISOLATED, whole), (3,), "with isolation")
        check(job.rows("here" + whole) == job.rows("apart" + whole), f"the rows are others (whole: {whole})")
        here, apart = job.accounts("here" + whole), job.accounts("apart" + whole)
        check(here == apart, f"{here} became {apart}")
        check(here["damaged.flac"][1], "damaged.flac has no warning")


def costs_one_file(job):
    decode = ISOLATED + ", patience: 1"
    process = job.start("broken", decode, breaks=True)
    ended(process, (3,), "with a decoder that breaks")
    accounts = job.accounts("broken")
    for name, reason in (("segv.flac", "the decoder crashed (SIGSEGV)"), ("abort.flac", "the decoder crashed (SIGABRT)"),
                         ("hang.flac", "the decoder gave nothing for 1 s: ended"),
                         ("greedy.flac", "the decoder crashed (SIGABRT)")):
        check(accounts[name] == ("failed", reason), f"{name}: {accounts[name]}")
    for name in ("0.flac", "long.flac", "wide.wav"):
        check(accounts[name][0] == "ok", f"{name}: {accounts[name]}")
    process = job.start("here", breaks=True)
    process.communicate(timeout=DEADLINE)
    check(process.returncode < 0, "without isolation the library should end the program: is it preloaded?")


def hanging(job, out, **more):
    """A run, and its process that hangs."""
    process = job.start(out, ISOLATED + ", patience: 3600", breaks=True, **more)
    path = os.path.join(job.work, out + ".hangs")

    def pid():
        if not os.path.exists(path):
            return 0
        with open(path) as f:
            text = f.read()
        return int(text) if text.endswith("\n") else 0

    wait_until(pid, "a decoder that hangs")
    return process, pid()


def killed_child(job):
    process, child = hanging(job, "killed")
    os.kill(child, signal.SIGKILL)
    ended(process, (3,), "after a kill of its decoder")
    account = job.accounts("killed")["hang.flac"]
    check(account == ("failed", "the decoder was killed (SIGKILL)"), account)


def stopped(job):
    """While a decoder hangs, one Ctrl-C ends the run; what hung is not done, and the next run does it."""
    process, child = hanging(job, "stopped", root="hang")
    process.send_signal(signal.SIGINT)
    ended(process, (75,), "after Ctrl-C while a decoder hangs")
    wait_until(lambda: not is_running(child), "the end of the decoder that hung")
    _, err = ended(job.start("stopped", ISOLATED + ", patience: 3600", root="hang"), (0,), "the same command again")
    check(b"resumes an interrupted run" in err, err.decode())
    ended(job.start("whole", root="hang"), (0,), "a run that was never stopped")
    check(job.rows("stopped") == job.rows("whole"), "the rows are others than without the stop")
    check(job.accounts("stopped") == job.accounts("whole"), "the accounts are others than without the stop")


def counted(job):
    process = job.start("little", ISOLATED + ", concurrency: 8", memory="64MiB")
    _, err = ended(process, (1,), "with too little memory for the processes")
    check(b"decode keeps " in err and b"; set " in err, err.decode())
    ended(job.start("little", ", concurrency: 8", memory="64MiB"), (3,), "with as much and no processes")


def none_left(job):
    for out, number in (("kill", signal.SIGKILL), ("stop", signal.SIGINT)):
        process, child = hanging(job, out)
        pids = children(process.pid)
        check(child in pids, "the one that hangs is no child of it")
        while process.poll() is None:  # the second Ctrl-C ends it at once
            os.killpg(process.pid, number)
            time.sleep(0.05)
        process.communicate(timeout=DEADLINE)
        for pid in pids:
            wait_until(lambda pid=pid: not is_running(pid), f"the end of process {pid} after {out}")


def main():
    program, library = (os.path.abspath(path) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory(prefix="melflow_isolated_") as work:
        corpus = os.path.join(work, "corpus")
        os.mkdir(corpus)
        for i in range(4):
            flac(os.path.join(corpus, f"{i}.flac"), 16000, 1 + i, i)
        flac(os.path.join(corpus, "long.flac"), 16000, 31, 9)
        flac(os.path.join(corpus, "damaged.flac"), 16000, 6, 10, broken=True)
        wav(os.path.join(corpus, "wide.wav"), 3, 1)
        wav(os.path.join(corpus, "stereo.wav"), 2, 2)
        with open(os.path.join(corpus, "none.flac"), "wb") as f:
            f.write(b"no sound" * 100)
        job = Job(work, program, library)
        same_as_without(job)
        flac(os.path.join(corpus, "segv.flac"), 11025, 2, 20)
        flac(os.path.join(corpus, "abort.flac"), 12000, 2, 21)
        flac(os.path.join(corpus, "hang.flac"), 22050, 2, 22)
        flac(os.path.join(corpus, "greedy.flac"), 24000, 2, 23)
        os.mkdir(os.path.join(work, "hang"))
        for name in ("0.flac", "1.flac", "hang.flac", "long.flac"):
            os.link(os.path.join(corpus, name), os.path.join(work, "hang", name))
        counted(job)
        costs_one_file(job)
        killed_child(job)
        stopped(job)
        none_left(job)
    print("the same rows; a crash, a hang and a kill cost one file each; a stop costs none; no process left")


if __name__ == "__main__":
    main()
