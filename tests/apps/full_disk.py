"""Runs on a disk that is full, at every megabyte of it; with room the same command goes on.

In:  full_disk.py MELFLOW [--megabytes N]     N: the largest disk, 20
Out: a line for each that ended wrong, and one in all; exit status 0 when there is none, 1 else, 77 where no file system
     can be mounted here.

Right is: a run that does not fit says so and which file did not; after the disk is made larger the same command
completes, and the output is byte for byte that of a run with room. The note of what is done needs room on the same
disk, so that a run may have to begin again; of each kind of output most do not.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile

import walks

FILES, SAMPLES = 240, 40000  # about 18 MB of rows

PIPELINE = """
version: 1
memory: {{host: 128MiB}}
graph:
  files: {{stage: file_list, root: {root}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
  segment: {{stage: segment, from: decode}}
  batch: {{stage: batch, from: segment, files: 4}}
  mel: {{stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 40}}
  write: {{stage: {sink}, from: mel, path: disk/out.{ending}, checkpoint: 256KiB}}
"""

SINKS = {"hdf5": ("hdf5_write", "h5"), "npy": ("npy_write", "npy"),
         "deflate": ("hdf5_write, compression: deflate", "h5")}


def start(program, folder):
    return walks.run([program, "run", "job.yaml", "-q", "--workers", "2"], folder, 240)


def mount(folder, size, *more):
    return subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join([*more, f"size={size}m"]), "tmpfs",
                           os.path.join(folder, "disk")], stderr=subprocess.DEVNULL).returncode == 0


def unmount(folder):
    subprocess.run(["umount", os.path.join(folder, "disk")], check=True)


def contents(folder):
    return walks.contents(os.path.join(folder, "disk"))


# `resumed`: gets, for each resumed run, whether it continued where the one before had ended.
def wrong(program, folder, whole, resumed):
    ended = start(program, folder)
    if ended.returncode == 0:
        return "" if contents(folder) == whole else "other bytes, though it did not say so"
    said = ended.stderr.decode(errors="replace")
    if ended.returncode != 1 or "the disk is full" not in said and "No space left" not in said:
        return f"exit {ended.returncode}: {said[:300]}"
    if not mount(folder, 64, "remount"):
        return "the disk cannot be made larger"
    again = start(program, folder)
    if again.returncode != 0:
        return f"then exit {again.returncode}: {again.stderr.decode(errors='replace')[:300]}"
    resumed.append(b"resumes an interrupted run" in again.stderr)
    return "" if contents(folder) == whole else "then other bytes"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("melflow")
    parser.add_argument("--megabytes", type=int, default=20)
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.melflow)
    red = runs = 0
    with tempfile.TemporaryDirectory(prefix="melflow_full_") as folder:
        os.makedirs(os.path.join(folder, "disk"))
        noise = random.Random(1)
        for i in range(FILES):
            walks.write_wav(os.path.join(folder, "clips", f"{i:03}.wav"), noise.randbytes(2 * SAMPLES))
        for name, (sink, ending) in SINKS.items():
            with open(os.path.join(folder, "job.yaml"), "w") as f:
                f.write(PIPELINE.format(root=os.path.join(folder, "clips"), sink=sink, ending=ending))
            if not mount(folder, 64):
                print("no file system can be mounted here")
                return 77
            try:
                assert start(program, folder).returncode == 0
                whole = contents(folder)
            finally:
                unmount(folder)
            resumed = []
            for megabytes in range(1, arguments.megabytes + 1):
                mount(folder, megabytes)
                try:
                    what = wrong(program, folder, whole, resumed)
                finally:
                    unmount(folder)
                runs += 1
                if what:
                    red += 1
                    print(f"{name}, {megabytes} MiB: {what}", flush=True)
            if resumed and sum(resumed) <= len(resumed) / 2:
                red += 1
                print(f"{name}: only {sum(resumed)} of {len(resumed)} went on where the one before had ended", flush=True)
    print(f"{runs} disks of some megabytes: {red} ended wrong")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
