"""Runs melflow over recordings that were damaged at random, and looks at what becomes of each.

Real recordings are stored as WAV, FLAC, MP3, Ogg Vorbis and M4A, and copies of them get turned bits, other bytes, zeros, holes,
pieces twice, numbers that are too large, or an early end. Each has to be accounted for. What melflow accepts without a warning is
decoded by FFmpeg (`-xerror`) and, where it reads the format, by libsndfile: what neither of them takes is listed.

In:  tests/long/hostile_files.py MELFLOW FOLDER [--count N] [--seed N] [--jobs N] [--keep FOLDER]
     MELFLOW: best a build with AddressSanitizer (build/asan/bin/melflow). FOLDER: recordings, any that ffmpeg reads.
     Needs ffmpeg; with the Python package soundfile also libsndfile's word.
Out: a line for each format, each file that was accepted in silence and should not have been, exit status 0 where all were
     accounted for, there was no crash and no finding of a sanitizer, and none is on that list. The same seed gives the same files.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import soundfile
except ImportError:
    soundfile = None

FORMATS = {
    "wav": ["-c:a", "pcm_s16le"],
    "flac": ["-c:a", "flac"],
    "mp3": ["-c:a", "libmp3lame", "-b:a", "64k"],
    "ogg": ["-c:a", "libvorbis"],
    "m4a": ["-c:a", "aac", "-b:a", "64k"],
}
READ_BY_LIBSNDFILE = ("wav", "flac", "mp3", "ogg")
# libsndfile 1.2 leaks 6 kB for each Ogg file whose header it refuses.
KNOWN_LEAKS = "leak:vorbis_info_init\n"
PIPELINE = """version: 1
graph:
  files: {{stage: file_list, root: {root}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
  resample: {{stage: resample, from: decode, rate: 16000}}
  segment: {{stage: segment, from: resample}}
  batch: {{stage: batch, from: segment}}
  mel: {{stage: mel, from: batch, sample_rate: 16000, n_mels: 40, n_fft: 512, hop: 256}}
  write: {{stage: npy_write, from: mel, path: {out}}}
"""


def bits(data, rng):
    for _ in range(rng.choice((1, 4, 32))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def head_bits(data, rng):
    for _ in range(rng.choice((1, 4))):
        data[rng.randrange(min(len(data), 256))] ^= 1 << rng.randrange(8)


def other_bytes(data, rng):
    at = rng.randrange(len(data))
    data[at:at + 64] = rng.randbytes(min(64, len(data) - at))


def zeros(data, rng):
    at = rng.randrange(len(data))
    end = min(len(data), at + rng.choice((16, 512, 4096)))
    data[at:end] = bytes(end - at)


def hole(data, rng):
    at = rng.randrange(len(data))
    del data[at:at + rng.choice((1, 100, 4096))]


def twice(data, rng):
    at = rng.randrange(len(data))
    data[at:at] = data[at:at + rng.choice((1, 100, 4096))]


def too_large(data, rng):
    at = rng.randrange(min(len(data), 128))
    data[at:at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", bytes(4)))


def early_end(data, rng):
    del data[rng.randrange(len(data)):]


BY_FFMPEG_ALONE = "FFmpeg, not by libsndfile"
DAMAGE = (bits, head_bits, other_bytes, zeros, hole, twice, too_large, early_end)


def make_originals(folder, recordings, rng):
    out = []
    for number, path in enumerate(rng.sample(recordings, min(12, len(recordings)))):
        for ending, codec in FORMATS.items():
            to = folder / f"{number}.{ending}"
            subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", str(path), "-t", "3", "-ac", "1", "-ar", "16000", *codec, str(to)],
                           check=True, stdin=subprocess.DEVNULL)
            out.append(to)
    return out


def damage(folder, originals, count, rng):
    for i in range(count):
        original = originals[i % len(originals)]
        data = bytearray(original.read_bytes())
        how = rng.choice(DAMAGE)
        how(data, rng)
        (folder / f"{i:05}_{how.__name__}{original.suffix}").write_bytes(data)


def refused_by(path):
    """Who refuses the file: "" for neither."""
    ffmpeg = subprocess.run(["ffmpeg", "-v", "error", "-xerror", "-i", str(path), "-f", "null", "-"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60).returncode
    if ffmpeg == 0:
        return ""
    if soundfile is None or path.suffix[1:] not in READ_BY_LIBSNDFILE:
        return "FFmpeg"
    try:
        soundfile.read(str(path))
    except (soundfile.LibsndfileError, RuntimeError):
        return "FFmpeg and libsndfile"
    return BY_FFMPEG_ALONE


def run(program, root, folder):
    """What became of each file, by its name: its status and, if there was one, the warning."""
    pipeline = folder / "hostile.yaml"
    pipeline.write_text(PIPELINE.format(root=root, out=folder / "hostile.npy"))
    known = folder / "leaks"
    known.write_text(KNOWN_LEAKS)
    environment = {**os.environ, "LSAN_OPTIONS": f"suppressions={known}:print_suppressions=0"}
    ended = subprocess.run([program, "run", str(pipeline), "--json", "--no-progress"], capture_output=True, text=True, env=environment)
    if ended.returncode not in (0, 3):
        sys.exit(f"the run ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
    if "Sanitizer" in ended.stderr or "runtime error" in ended.stderr:
        sys.exit(f"a sanitizer found something:\n{ended.stderr[-8000:]}")
    told = subprocess.run([program, "inspect", str(folder / "hostile.npy"), "--json", "--files"], capture_output=True, text=True,
                          check=True)
    about = json.loads(told.stdout)
    remarks = {remark["path"]: remark["reason"] for remark in about["remarks"]}
    counts = json.loads(ended.stdout)["files"]
    accounts = {file["path"]: (file["status"], remarks.get(file["path"])) for file in about["files"]}
    if counts["found"] != sum(counts[name] for name in ("ok", "skipped", "failed")) or counts["found"] != len(accounts):
        sys.exit(f"not all files are accounted for: {counts}")
    return accounts


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("melflow")
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--count", type=int, default=5000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments.add_argument("--keep", type=pathlib.Path, help="a folder for what was accepted in silence")
    a = arguments.parse_args()
    rng = random.Random(a.seed)
    recordings = sorted(path for path in a.folder.rglob("*") if path.suffix in (".wav", ".flac", ".mp3", ".ogg"))
    if not recordings:
        sys.exit(f"{a.folder}: no recordings in it")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "originals").mkdir()
        (folder / "damaged").mkdir()
        originals = make_originals(folder / "originals", recordings, rng)
        damage(folder / "damaged", originals, a.count, rng)
        accounts = run(a.melflow, folder / "damaged", folder)
        missing = {path.name for path in (folder / "damaged").iterdir()} - set(accounts)
        silent = [name for name, (status, remark) in accounts.items() if status == "ok" and remark is None]
        with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
            words = dict(zip(silent, pool.map(lambda name: refused_by(folder / "damaged" / name), silent)))
        table = collections.defaultdict(collections.Counter)
        for name, (status, remark) in accounts.items():
            row = table[name.rsplit(".", 1)[1]]
            row["files"] += 1
            row[status if status != "ok" or remark is None else "ok with a warning"] += 1
        print("| format | files | failed | skipped | ok with a warning | ok | of these refused | by FFmpeg alone |\n|---|---|---|---|---|---|---|---|")
        for ending, row in sorted(table.items()):
            who = [words[name] for name in silent if words[name] and name.endswith("." + ending)]
            alone = who.count(BY_FFMPEG_ALONE)
            print(f"| {ending} | {row['files']} | {row['failed']} | {row['skipped']} | {row['ok with a warning']} | {row['ok']} | {len(who) - alone} | {alone} |")
        refused = sorted(name for name, who in words.items() if who not in ("", BY_FFMPEG_ALONE))
        for name in refused:
            print(f"accepted in silence: {name}: refused by {words[name]}")
            if a.keep:
                a.keep.mkdir(exist_ok=True)
                (a.keep / name).write_bytes((folder / "damaged" / name).read_bytes())
        for name in sorted(missing):
            print(f"not accounted for: {name}")
    sys.exit(1 if refused or missing else 0)


if __name__ == "__main__":
    main()
