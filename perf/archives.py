#!/usr/bin/env python3
"""Recordings in archives against the same as loose files: runs of the program in turn, and the index of a large archive.

In:  perf/archives.py MELFLOW [FOLDER]     the program, and a folder on a disk; default: a temporary one
     MELFLOW_FILES: how many recordings of a second; default 20000. MELFLOW_MEMBERS: of the large archive; default 1000000
Out: a table of medians of 7 rounds. Cold runs take the right to drop the page cache (root), else they are omitted.
"""

import io
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import wave
import zipfile

PIPELINE = """version: 1
graph:
  files: {stage: file_list, root: "${ROOT}"}
  read: {stage: disk_read, from: files}
  decode: {stage: decode, from: read}
  mel: {stage: mel, from: decode, sample_rate: 16000, n_fft: 512, hop: 160, n_mels: 80}
  out: {stage: discard, from: mel}
"""


def make(folder, count):
    os.makedirs(os.path.join(folder, "loose"))
    noise = os.urandom(2 * 16000 + count)
    for i in range(count):
        if i % 500 == 0:
            os.makedirs(os.path.join(folder, f"loose/{i // 500:03}"), exist_ok=True)
        with wave.open(os.path.join(folder, f"loose/{i // 500:03}/{i:06}.wav"), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(16000)
            out.writeframes(noise[i:i + 32000])
    with tarfile.open(os.path.join(folder, "x.tar"), "w") as tar, zipfile.ZipFile(os.path.join(folder, "x.zip"), "w") as packed:
        for i in range(count):
            name = f"{i // 500:03}/{i:06}.wav"
            tar.add(os.path.join(folder, "loose", name), name)
            packed.write(os.path.join(folder, "loose", name), name)


def run(program, folder, root, cold=False):
    """Seconds of a run."""
    if cold:
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("3\n")
    begin = time.perf_counter()
    subprocess.run([program, "run", os.path.join(folder, "p.yaml"), "--var", f"ROOT={os.path.join(folder, root)}", "--quiet"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main():
    program = sys.argv[1]
    folder = tempfile.mkdtemp(dir=sys.argv[2] if len(sys.argv) > 2 else None)
    try:
        make(folder, int(os.environ.get("MELFLOW_FILES", 20000)))
        with open(os.path.join(folder, "p.yaml"), "w", encoding="ascii") as file:
            file.write(PIPELINE)
        print("| files | cache | median [s] | rate of loose files |\n|---|---|---|---|")
        can_drop = os.access("/proc/sys/vm/drop_caches", os.W_OK)
        for cold in (False, True) if can_drop else (False,):
            times = {root: [] for root in ("loose", "x.tar", "x.zip")}
            for _ in range(7):
                for root in times:
                    times[root].append(run(program, folder, root, cold))
            for root, seconds in times.items():
                ratio = statistics.median(a / b for a, b in zip(times["loose"], seconds))
                print(f"| {root} | {'cold' if cold else 'warm'} | {statistics.median(seconds):.2f} | {ratio:.2f} |", flush=True)
        shutil.rmtree(os.path.join(folder, "loose"))
        members = int(os.environ.get("MELFLOW_MEMBERS", 1000000))
        with tarfile.open(os.path.join(folder, "many.tar"), "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(members):
                info = tarfile.TarInfo(f"{i // 1000:04}/{i:08}.txt")
                info.size = 1024
                tar.addfile(info, io.BytesIO(bytes(1024)))
            info = tarfile.TarInfo("one.wav")
            with open(os.path.join(folder, "one.wav"), "wb") as out, wave.open(out, "wb") as sound:
                sound.setnchannels(1)
                sound.setsampwidth(2)
                sound.setframerate(16000)
                sound.writeframes(bytes(32000))
            tar.add(os.path.join(folder, "one.wav"), "one.wav")
        seconds = statistics.median(run(program, folder, "many.tar") for _ in range(5))
        print(f"\nA run over an archive of {members} members of 1 KiB and one recording: {seconds:.2f} s (warm)")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
