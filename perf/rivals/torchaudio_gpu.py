#!/usr/bin/env python3
"""torchaudio on a graphics processor: MelSpectrogram and AmplitudeToDB, the rival of backend: cuda.

In:   torchaudio_gpu.py [--json FILE] [--quick] DIR, a folder of 16-bit mono WAV files of one length at
      4096 Hz behind a header of 44 bytes.
Out:  Markdown on stdout. Medians of
      resident    batches that are in device memory already: samples as float32, rows stay there
      end to end  from files to rows in one flat file: threads read, a batch goes through page-locked
                  memory as int16, rows come back and are written; two batches are under way

It gets every advantage that can be had without rewriting it: transforms are made once, samples cross
the link as int16 and become floats on the device, the two-stage job's 159 distinct windows are
transformed once, the best of several batch sizes counts. Its clock starts when everything is
imported and a first batch is done.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

try:
    import numpy
    import torch
    import torchaudio
except ImportError as error:
    print(f"this Python has no torch with torchaudio: {error}", file=sys.stderr)
    sys.exit(77)

HEADER, BANDS = 44, 32  # [bytes], columns
JOBS = {
    "two-stage": dict(hop=256, rows=[2 * i + j for i in range(79) for j in range(3)]),
    "builder": dict(hop=512, rows=None),
}


class FrontEnd(torch.nn.Module):
    """int16 or float32 [files, samples] -> float32 [files, rows, bands]."""

    def __init__(self, job, device):
        super().__init__()
        self.mel = torchaudio.transforms.MelSpectrogram(
            sample_rate=4096, n_fft=512, hop_length=JOBS[job]["hop"], center=False, n_mels=BANDS
        )
        self.decibels = torchaudio.transforms.AmplitudeToDB(stype="power")
        rows = JOBS[job]["rows"]
        self.rows = None if rows is None else torch.tensor(rows, device=device)
        self.to(device)

    def forward(self, samples):
        if samples.dtype == torch.int16:
            samples = samples.float() / 32768
        levels = self.decibels(self.mel(samples)).transpose(1, 2)
        return (levels if self.rows is None else levels[:, self.rows]).contiguous()


def resident(job, device, samples, sizes, repetitions):
    """The best batch size: files/s on data in device memory, by the device's events."""
    front_end = FrontEnd(job, device)
    best = None
    for size in sizes:
        batches = [torch.rand(size, samples, device=device) * 2 - 1 for _ in range(4)]
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        seconds = []
        for i in range(-3, repetitions):
            begin.record()
            for batch in batches:
                front_end(batch)
            end.record()
            end.synchronize()
            if i >= 0:
                seconds.append(begin.elapsed_time(end) / 1e3 / len(batches))
        rate = size / statistics.median(seconds)
        if best is None or rate > best["files_per_second"]:
            best = {"job": job, "batch": size, "files_per_second": rate}
        del batches
    return best


def read_into(path, row):
    with open(path, "rb", buffering=0) as file:
        file.seek(HEADER)
        if file.readinto(row) != len(row):
            raise SystemExit(f"{path}: is shorter than the others")


def end_to_end(job, device, paths, samples, size, workers, output):
    """Seconds from files to rows in one flat file."""
    front_end = FrontEnd(job, device)
    slots = []
    for _ in range(2):
        pinned = torch.empty(size, samples, dtype=torch.int16, pin_memory=True)
        slots.append({"in": pinned, "bytes": pinned.numpy().view(numpy.uint8), "busy": None})
    stream = torch.cuda.Stream(device)
    rows = front_end(slots[0]["in"][:1].to(device)).shape[1]
    for slot in slots:
        slot["out"] = torch.empty(size, rows, BANDS, pin_memory=True)
    torch.cuda.synchronize(device)

    def write(file, slot):
        if slot["busy"] is not None:
            count, event = slot["busy"]
            event.synchronize()
            file.write(slot["out"][:count].numpy().data)
            slot["busy"] = None

    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool, open(output, "wb") as file:
        for number, first in enumerate(range(0, len(paths), size)):
            slot = slots[number % len(slots)]
            write(file, slot)
            part = paths[first : first + size]
            list(pool.map(read_into, part, slot["bytes"][: len(part)], chunksize=16))
            with torch.cuda.stream(stream):
                batch = slot["in"][: len(part)].to(device, non_blocking=True)
                slot["out"][: len(part)].copy_(front_end(batch), non_blocking=True)
                event = torch.cuda.Event()
                event.record()
            slot["busy"] = (len(part), event)
            if number > 0:
                write(file, slots[(number - 1) % len(slots)])
        for slot in slots:
            write(file, slot)
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", help="a line of JSON for each figure, added to this file")
    parser.add_argument("--quick", action="store_true", help="small and few")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("dir")
    options = parser.parse_args()
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        print("this Python's torch sees no device", file=sys.stderr)
        sys.exit(77)
    paths = sorted(str(p) for p in pathlib.Path(options.dir).rglob("*.wav"))
    samples = (os.path.getsize(paths[0]) - HEADER) // 2
    sizes = [64, 256] if options.quick else [64, 256, 1024, 2048]
    repetitions, rounds = (3, 1) if options.quick else (10, 3)
    workers = min(16, len(os.sched_getaffinity(0)))
    lines = open(options.json, "a", encoding="utf-8") if options.json else None

    def note(kind, result, seconds):
        """A row of the table and a line of JSON, as soon as they are known."""
        rate = result["files_per_second"]
        print(f"| {result['job']} | {kind} | {result['batch']} | {seconds} | {rate:,.0f} |", flush=True)
        if lines:
            print(json.dumps({"kind": "torchaudio", "what": kind, **result}), file=lines, flush=True)

    print(f"torch {torch.__version__}, torchaudio {torchaudio.__version__}\n")
    print("| job | | batch [files] | [s] | files/s |\n|---|---|---|---|---|", flush=True)
    with torch.inference_mode(), tempfile.TemporaryDirectory(dir=options.dir) as folder:
        for job in JOBS:
            note("resident", resident(job, device, samples, sizes, repetitions), "")
        for job in JOBS:
            output = os.path.join(folder, "rows.f32")
            best = None
            for size in sizes[1:3]:
                seconds = [
                    end_to_end(job, device, paths, samples, size, workers, output)
                    for _ in range(1 + rounds)
                ][1:]
                median = statistics.median(seconds)
                if best is None or median < best["median_seconds"]:
                    best = {"job": job, "batch": size, "threads": workers, "files": len(paths)}
                    best.update(median_seconds=median, seconds=seconds, files_per_second=len(paths) / median)
            note("files to a flat file", best, f"{best['median_seconds']:.2f}")


if __name__ == "__main__":
    main()
