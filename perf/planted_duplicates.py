"""Whether `melflow duplicates` finds every copy that was planted in a corpus, where it is, and
nothing else, and whether splits by its groups have none.

    python3 perf/planted_duplicates.py MELFLOW WORK [RECORDINGS=20000] [COPIES=200]

Recordings of 5 s at 8 kHz of tones and noise that change every 60 to 300 ms, no two alike, in the
splits train and test. A copy lies in the other split: 3 to 5 s of a recording from a random place
on, quieter, in one of four formats, with or without noise 20 dB below. Needs numpy and soundfile.
"""

import csv
import json
import pathlib
import subprocess
import sys
import time

import numpy as np
import soundfile

RATE, SECONDS = 8000, 5
FORMATS = [("wav", "PCM_16"), ("flac", "PCM_16"), ("ogg", "VORBIS"), ("wav", "ULAW")]


def sound(draw):
    count = RATE * SECONDS
    lengths = draw.integers(RATE * 6 // 100, RATE * 30 // 100, 90)
    note = np.repeat(np.arange(90), lengths)[:count]
    hz = draw.uniform(80, 280, 90)[note]
    phase = 2 * np.pi * np.cumsum(hz) / RATE
    gains = draw.uniform(0, 1, (12, 90)) ** 3 * draw.uniform(0, 1, 90)
    out = draw.normal(size=count) * (0.05 * draw.uniform(0, 1, 90) ** 2)[note]
    harmonic, before, turn = np.sin(phase), np.zeros(count), 2 * np.cos(phase)
    for gain in gains:
        out += gain[note] * harmonic
        harmonic, before = turn * harmonic - before, harmonic  # sin((h + 1) x)
    return (0.3 * out / np.abs(out).max()).astype("f4")


def make(work, recordings, copies):
    draw = np.random.default_rng(1)
    planted = {}
    for split in ("train", "test"):
        (work / "data" / split).mkdir(parents=True, exist_ok=True)
    for number in range(recordings - copies):
        split, other = ("train", "test") if number % 5 else ("test", "train")
        samples = sound(draw)
        soundfile.write(work / "data" / split / f"{number:06}.wav", samples, RATE, subtype="PCM_16")
        if number % ((recordings - copies) // copies) or len(planted) == copies:
            continue
        length = int(draw.integers(3 * RATE, SECONDS * RATE + 1))
        at = int(draw.integers(0, len(samples) - length + 1))
        copy = samples[at : at + length] * 10 ** draw.uniform(-1, 0)
        if len(planted) % 2:
            copy = copy + draw.normal(size=length) * copy.std() / 10
        ending, subtype = FORMATS[len(planted) // 2 % len(FORMATS)]
        name = f"{other}/copy{number:06}.{ending}"
        soundfile.write(work / "data" / name, copy, RATE, subtype=subtype)
        planted[name] = [f"{split}/{number:06}.wav", at / RATE]
    (work / "planted.json").write_text(json.dumps(planted))


def run(melflow, work, files, output):
    (work / "p.yaml").write_text(f"""version: 1
graph:
  files: {{stage: file_list, root: "{work}/data", {files}}}
  decode: {{stage: decode, from: files}}
  print: {{stage: fingerprint, from: decode}}
  write: {{stage: hdf5_write, from: print, path: "{output}", overwrite: true}}
""")
    begin = time.time()
    subprocess.run([melflow, "run", work / "p.yaml", "-q"], check=True)
    print(f"{output.name}: fingerprints in {time.time() - begin:.0f} s")


def duplicates(melflow, output, *options):
    begin = time.time()
    made = subprocess.run([melflow, "duplicates", output, "--json", "-q", *options], check=True,
                          capture_output=True)
    print(f"{output.name}: searched in {time.time() - begin:.1f} s")
    return json.loads(made.stdout)


def main():
    melflow, work = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
    recordings, copies = (int(v) for v in [*sys.argv[3:5], 20000, 200][:2])
    if not (work / "planted.json").exists():
        make(work, recordings, copies)
    planted = json.loads((work / "planted.json").read_text())
    run(melflow, work, "splits: top_dir", work / "prints.h5")
    found = duplicates(melflow, work / "prints.h5", "--csv", work / "groups.csv")
    off, joined, others = {}, 0, []
    for pair in found["pairs"]:
        copy, whole = (pair["a"], pair["b"]) if "copy" in pair["a"]["path"] else (pair["b"], pair["a"])
        expected = planted.get(copy["path"], [None, 0])
        if expected[0] != whole["path"]:
            others.append(pair)
            continue
        off[copy["path"]] = abs(whole["begin"] - copy["begin"] - expected[1])
        joined += pair["joined"] and pair["across"]
    print(f"{found['recordings']} recordings: {len(off)} of {len(planted)} copies found, {joined} joined "
          f"across splits, at most {max(off.values(), default=0) * 1000:.1f} ms off; {len(others)} other pairs, "
          f"{sum(p['joined'] for p in others)} of them joined")
    for name in planted:
        if name not in off:
            print("   missed:", name, *planted[name])
    with open(work / "groups.csv") as file:
        assert sum(1 for _ in csv.reader(file)) == found["recordings"] + 1
    run(melflow, work, f'manifest: "{work}/groups.csv", columns: [across], splits: ratio, '
        "split_ratios: {train: 80, test: 20}, split_group: group", work / "again.h5")
    print(f"split by groups: {duplicates(melflow, work / 'again.h5')['across']} across splits")


if __name__ == "__main__":
    main()
