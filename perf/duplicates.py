"""How well `melflow duplicates` finds copies of recordings, by what was done to them.

    python3 perf/duplicates.py MELFLOW WORK --speech FOLDER... --music FOLDER...

Speech: the files below each folder, which are of one voice, are joined to recordings of 10 to 60 s,
none of them twice. Music: pieces of 30 s that do not overlap. Every recording is copied through
each of TRANSFORMATIONS and compared with the originals. Prints, for each transformation, how many
copies are found, how far the offset is off, and what else was found. Needs numpy, soundfile and
ffmpeg with libmp3lame, libopus and libgsm.
"""

import argparse
import json
import pathlib
import random
import subprocess

import numpy as np
import soundfile

CODECS = {  # name: ending, options of ffmpeg
    "mp3 64": ("mp3", ["-c:a", "libmp3lame", "-b:a", "64k"]),
    "mp3 128": ("mp3", ["-ar", "44100", "-c:a", "libmp3lame", "-b:a", "128k"]),
    "mp3 320": ("mp3", ["-ar", "44100", "-c:a", "libmp3lame", "-b:a", "320k"]),
    "opus 16": ("ogg", ["-c:a", "libopus", "-b:a", "16k"]),
    "opus 24": ("ogg", ["-c:a", "libopus", "-b:a", "24k"]),
    "opus 96": ("ogg", ["-c:a", "libopus", "-b:a", "96k"]),
    "gsm": ("gsm", ["-ar", "8000", "-c:a", "libgsm"]),
    "mu-law": ("wav", ["-ar", "8000", "-c:a", "pcm_mulaw"]),
    "48 kHz": ("wav", ["-ar", "48000"]),
    "8 kHz": ("wav", ["-ar", "8000"]),
    "-20 dB": ("wav", ["-af", "volume=-20dB"]),
    "+20 dB": ("wav", ["-af", "volume=20dB"]),  # clipped
    "mp3 64, gsm": ("gsm", ["-ar", "8000", "-c:a", "libgsm"]),  # of what mp3 64 left
    "+2 % speed": ("wav", None),
}
CUTS = {"3 s": 3, "5 s": 5, "10 s": 10, "30 s": 30}


def ffmpeg(*arguments):
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-nostdin", *map(str, arguments)], check=True)


def speech(folder, draw):
    """[(samples, rate)] of the files below a folder, joined."""
    files = sorted(p for p in pathlib.Path(folder).rglob("*") if p.suffix in (".wav", ".ogg"))
    draw.shuffle(files)
    out, joined, wanted = [], [], draw.uniform(10, 60)
    for file in files:
        samples, rate = soundfile.read(file, dtype="float32", always_2d=True)
        joined.append(samples.mean(axis=1))
        if sum(map(len, joined)) >= wanted * rate:
            out.append((np.concatenate(joined)[: 60 * rate], rate))
            joined, wanted = [], draw.uniform(10, 60)
    return out


def music(folder, most):
    out = []
    for file in sorted(pathlib.Path(folder).rglob("*.ogg")):
        samples, rate = soundfile.read(file, dtype="float32")
        if samples.ndim > 1:
            samples = samples.mean(axis=1)
        for at in range(0, len(samples) - 30 * rate + 1, 30 * rate):
            out.append((samples[at : at + 30 * rate], rate))
    return out[:: max(1, len(out) // most)][:most] if most else out


def write(path, samples, rate):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate, subtype="PCM_16")


def through_codecs(kind, recordings, work, begins):
    """Encodes all recordings of one rate as one file, and cuts what is decoded."""
    rate = recordings[0][1]
    joined = work / f"{kind}.wav"
    write(joined, np.concatenate([samples for samples, _ in recordings]), rate)
    for name, (ending, options) in CODECS.items():
        if options is None:
            options = ["-af", f"asetrate={round(rate * 1.02)},aresample={rate}"]
        source, coded = work / f"{kind}.decoded.wav", work / f"{kind}.coded.{ending}"
        if name != "mp3 64, gsm":
            source = joined
        else:
            ffmpeg("-i", joined, *CODECS["mp3 64"][1], work / f"{kind}.coded.mp3")
            ffmpeg("-i", work / f"{kind}.coded.mp3", source)
        ffmpeg("-i", source, *options, coded)
        ffmpeg("-i", coded, work / f"{kind}.heard.wav")
        heard, heard_rate = soundfile.read(work / f"{kind}.heard.wav", dtype="float32")
        at, speed = 0, 1.02 if "speed" in name else 1
        for number, (samples, _) in enumerate(recordings):
            end = at + len(samples)
            begin_end = [round(t * heard_rate / rate / speed) for t in (at, end)]
            copy = heard[slice(*begin_end)]
            write(work / "copies" / name / f"{kind}{number:04}.wav", copy, heard_rate)
            if name == "gsm":
                middle = max(0, len(copy) // 2 - 5 * heard_rate // 2)
                begins["gsm, 5 s", f"{kind}{number:04}.wav"] = middle / heard_rate
                write(work / "copies" / "gsm, 5 s" / f"{kind}{number:04}.wav",
                      copy[middle : middle + 5 * heard_rate], heard_rate)
            at = end


def other_copies(kind, recordings, work, draw, noise, begins):
    for number, (samples, rate) in enumerate(recordings):
        name = f"{kind}{number:04}.wav"
        copies = {"full scale": samples / max(1e-6, np.abs(samples).max()) * 0.999,
                  "noise 20 dB": samples + noise.normal(size=len(samples)).astype("f4")
                  * samples.std() / 10}
        for cut, seconds in CUTS.items():
            if len(samples) < seconds * rate:
                continue
            at = draw.randrange(len(samples) - seconds * rate + 1)
            copies[cut] = samples[at : at + seconds * rate]
            begins[cut, name] = at / rate
        a, b = (recordings[(number + d) % len(recordings)] for d in (1, 2))
        own = copies.get("10 s", samples)
        before, behind = a[0][: 8 * rate], b[0][: 12 * rate]
        copies["10 s in 30 s"] = np.concatenate([before, own, behind])
        begins["10 s in 30 s", name] = begins.get(("10 s", name), 0) - len(before) / rate
        copies["all in longer"] = np.concatenate([before, samples, behind])
        begins["all in longer", name] = -len(before) / rate
        for copy, heard in copies.items():
            write(work / "copies" / copy / name, heard, rate)


def prints(melflow, folder, output):
    pipeline = output.with_suffix(".yaml")
    pipeline.write_text(f"""version: 1
graph:
  files: {{stage: file_list, root: "{folder}"}}
  decode: {{stage: decode, from: files}}
  print: {{stage: fingerprint, from: decode}}
  write: {{stage: hdf5_write, from: print, path: "{output}", overwrite: true}}
""")
    subprocess.run([melflow, "run", pipeline, "-q"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("melflow")
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--speech", nargs="*", default=[])
    parser.add_argument("--music", nargs="*", default=[])
    parser.add_argument("--most", type=int, default=0, help="pieces of music of a folder")
    parser.add_argument("--kept", action="store_true", help="the copies in WORK are there already")
    arguments = parser.parse_args()
    work, begins = arguments.work, {}
    work.mkdir(parents=True, exist_ok=True)
    if not arguments.kept:
        draw, noise = random.Random(1), np.random.default_rng(1)
        kinds = {f"s{i}": speech(f, draw) for i, f in enumerate(arguments.speech)}
        kinds |= {f"m{i}": music(f, arguments.most) for i, f in enumerate(arguments.music)}
        for kind, recordings in kinds.items():
            for number, (samples, rate) in enumerate(recordings):
                write(work / "originals" / f"{kind}{number:04}.wav", samples, rate)
            through_codecs(kind, recordings, work, begins)
            other_copies(kind, recordings, work, draw, noise, begins)
        (work / "begins.json").write_text(json.dumps([[*k, v] for k, v in begins.items()]))
    begins = {(a, b): v for a, b, v in json.loads((work / "begins.json").read_text())}
    for name in ("originals", "copies"):
        prints(arguments.melflow, work / name, work / f"{name}.h5")
    made = subprocess.run([arguments.melflow, "duplicates", work / "copies.h5", "--against",
                           work / "originals.h5", "--json", "-q", "--common", "1000"], check=True,
                          capture_output=True)
    found, wrong, joined = {}, {}, {}
    for pair in json.loads(made.stdout)["pairs"]:
        a, b = pair["a"], pair["b"]
        if a["output"] == b["output"]:
            continue  # two copies
        copy, name = b["path"].split("/")
        begin = a["begin"] - b["begin"]
        expected = begins.get((copy, name), 0)
        if a["path"] == name:
            found.setdefault((copy, name[0]), {})[name] = abs(begin - expected)
            joined[copy] = joined.get(copy, 0) + pair["joined"]
        elif copy not in ("10 s in 30 s", "all in longer") and pair["joined"]:
            wrong.setdefault(copy, []).append((a["path"], b["path"], pair["seconds"],
                                               pair["score"]))
    print(f"{'copy':16} {'speech':>12} {'music':>12} {'joined':>7} "
          f"{'worst offset':>14} {'others':>7}")
    for folder in sorted((work / "copies").iterdir()):
        cells, worst = [], 0
        for kind in "sm":
            made = sorted(p.name for p in folder.iterdir() if p.name[0] == kind)
            hits = found.get((folder.name, kind), {})
            cells.append(f"{len(hits)}/{len(made)}")
            worst = max([worst, *hits.values()])
            missed = [name for name in made if name not in hits]
            if 0 < len(missed) <= 5:
                print("   missed:", folder.name, *missed)
        print(f"{folder.name:16} {cells[0]:>12} {cells[1]:>12} {joined.get(folder.name, 0):7} {worst * 1000:11.1f} ms "
              f"{len(wrong.get(folder.name, [])):7}")
    for copy, pairs in wrong.items():
        for pair in pairs[:5]:
            print("   other:", copy, *pair)


if __name__ == "__main__":
    main()
