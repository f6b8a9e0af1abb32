"""Reading rows from compressed chunks of several sizes: what hdf5_write's `access` chooses from.

In:  read_chunks.py [FOLDER]     where the files are made and removed again; /tmp without it
Out: a line for each size of a chunk: the file, and the time to read all rows, one row, and 300 rows, at random places

Rows are 80 float32 that change slowly under noise, like log-mel features; files are in the page cache, so that what is
measured is unpacking. Each reader opens the file again and has h5py's usual cache of 1 MiB.
"""

import os
import sys
import time

import h5py
import numpy as np

ROWS, COLUMNS, BLOCK = 100_000, 80, 300


def seconds(path, spans):
    with h5py.File(path, "r") as f:
        rows = f["rows"]
        start = time.perf_counter()
        for first, count in spans:
            rows[first : first + count]
        return (time.perf_counter() - start) / len(spans)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "/tmp"
    random = np.random.default_rng(1)
    drift = np.cumsum(random.normal(size=(ROWS, COLUMNS)), axis=0) * 0.05
    rows = (drift + random.normal(size=(ROWS, COLUMNS)) - 40).astype("<f4")
    path = os.path.join(folder, "read_chunks.h5")
    for kib in (8, 16, 32, 64, 128, 256, 512, 1024):
        chunk = (kib * 1024 // (COLUMNS * 4), COLUMNS)
        with h5py.File(path, "w") as f:
            f.create_dataset("rows", data=rows, chunks=chunk, compression="gzip", compression_opts=1, shuffle=True)
        size = os.path.getsize(path) / 1e6
        everything = [(at, 1000) for at in range(0, ROWS, 1000)]
        seconds(path, everything)
        all_rows = seconds(path, everything) * len(everything)
        one = seconds(path, [(int(at), 1) for at in random.integers(0, ROWS, 400)])
        block = seconds(path, [(int(at), BLOCK) for at in random.integers(0, ROWS - BLOCK, 200)])
        print(f"{kib:5} KiB  {size:6.1f} MB  all {all_rows * 1e3:5.0f} ms  one row {one * 1e6:6.0f} us  "
              f"{BLOCK} rows {block * 1e6:6.0f} us")
        os.remove(path)


main()
