#!/usr/bin/env python3
"""A folder of recordings to one HDF5 file of mel features with a Python library: melflow's rival.

In:   mel_files.py --library torchaudio --job leak --workers 2 [--decoder PyAV] [--limit N] DIR OUT
Out:  OUT with /mel, float32 [rows, columns], contiguous, files in path order; on stdout one line
      with the rows, the seconds, those of all cores, and the byte where the rows begin.

The clock starts when the libraries are imported and the front end is made, and stops when the
file is closed: no interpreter's start is counted against them. Workers are processes with one
thread each; they decode (by soundfile, if not told otherwise) and write their rows straight into
the mapped dataset, so that nothing is pickled and nothing is copied between them.
"""
import argparse
import multiprocessing
import os
import pathlib
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import h5py  # noqa: E402
import numpy  # noqa: E402
import soundfile  # noqa: E402

import decoders  # noqa: E402
import front_ends  # noqa: E402

SUFFIXES = {".wav", ".flac", ".mp3"}


def listed(root, limit):
    """Recordings in melflow's order: paths compared component by component as bytes."""
    paths = [p for p in pathlib.Path(root).rglob("*") if p.suffix in SUFFIXES and p.is_file()]
    paths.sort(key=lambda p: [os.fsencode(part) for part in p.relative_to(root).parts])
    return [str(p) for p in paths[: limit or None]]


def first_rows(paths, job, geometry):
    """The first row of each recording, and the number of rows behind the last."""
    first = [0]
    samples = None
    for path in paths:
        if samples is None or job == "real":  # in all other jobs recordings are as long as the first
            samples = soundfile.info(path).frames
        first.append(first[-1] + geometry.rows(samples))
    return first


def make_file(path, rows, columns):
    """An HDF5 file with room for the rows, as melflow makes it. Returns where they begin."""
    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_layout(h5py.h5d.CONTIGUOUS)
    layout.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    layout.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    space = h5py.h5s.create_simple((rows, columns))
    with h5py.File(path, "w") as file:
        dataset = h5py.h5d.create(file.id, b"mel", h5py.h5t.IEEE_F32LE, space, layout)
        return dataset.get_offset()


def work(share, decode, front_end, geometry, first, out):
    for i in range(0, len(share), geometry.batch):
        numbers, paths = zip(*share[i : i + geometry.batch])
        samples = [decode(path) for path in paths]
        if len(samples[0]) == 0:  # occurs only in a job without batches
            continue
        for number, rows in zip(numbers, front_end(numpy.stack(samples))):
            if len(rows) != first[number + 1] - first[number]:
                raise SystemExit(f"recording {number}: {len(rows)} rows were not expected")
            out[first[number] : first[number] + len(rows)] = rows


def cpu_seconds():
    """Of this process and of the workers that have ended."""
    return sum(os.times()[:4])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True, choices=front_ends.LIBRARIES)
    parser.add_argument("--job", required=True, choices=front_ends.JOBS)
    parser.add_argument("--decoder", choices=decoders.DECODERS, default="soundfile")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0, help="only the first N recordings")
    parser.add_argument("dir")
    parser.add_argument("out")
    options = parser.parse_args()
    geometry = front_ends.JOBS[options.job]
    front_end = front_ends.LIBRARIES[options.library](options.job)
    decode = decoders.DECODERS[options.decoder]()
    # Does the work of a first call, such as compiling, once per process.
    front_end(numpy.zeros((1, 10 * geometry.rate), "float32"))

    begin, cpu_begin = time.monotonic(), cpu_seconds()
    paths = listed(options.dir, options.limit)
    first = first_rows(paths, options.job, geometry)
    offset = make_file(options.out, first[-1], geometry.columns)
    out = numpy.memmap(options.out, "float32", "r+", offset, (first[-1], geometry.columns))
    numbered = list(enumerate(paths))
    if options.workers == 1:
        work(numbered, decode, front_end, geometry, first, out)
    else:
        context = multiprocessing.get_context("fork")
        workers = [
            context.Process(
                target=work,
                args=(numbered[w :: options.workers], decode, front_end, geometry, first, out),
            )
            for w in range(options.workers)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if any(worker.exitcode for worker in workers):
            sys.exit("mel_files: a worker failed")
    del out
    seconds, cpu = time.monotonic() - begin, cpu_seconds() - cpu_begin
    print(
        f"files={len(paths)} rows={first[-1]} seconds={seconds:.4f} cpu={cpu:.4f} offset={offset}"
    )


if __name__ == "__main__":
    main()
