"""Do two outputs hold the same features? Rows spread over both are compared, value by value.

In:   two files with float32 rows [rows, columns] from some byte on: melflow's HDF5 files, whose rows
      begin at byte 65,536 (from 32 KiB on), a rival's, who says where, or a flat file.
Out:  the largest difference; a Failure when it is above the tolerance.
"""
import array
import math
import os
import random

from measure import Failure

MELFLOW_ROWS_AT = 65536  # kDataOffset of stages/output/formats/row_file.cpp
SAMPLE = 2000  # rows compared


def read_rows(path, offset, columns, numbers):
    size = columns * 4
    rows = []
    with open(path, "rb", buffering=0) as file:
        for number in numbers:
            piece = os.pread(file.fileno(), size, offset + number * size)
            if len(piece) != size:
                raise Failure(f"{path}: ends before row {number}")
            rows.append(array.array("f", piece))
    return rows


def largest_difference(ours, theirs, offset, rows, columns, tolerance, who):
    """Of `rows` rows, SAMPLE are compared: the first, the last and others anywhere."""
    chosen = random.Random(1).sample(range(rows), min(rows, SAMPLE))
    numbers = sorted({0, rows - 1, *chosen})
    worst, where = 0.0, 0
    pairs = zip(
        numbers,
        read_rows(ours, MELFLOW_ROWS_AT, columns, numbers),
        read_rows(theirs, offset, columns, numbers),
    )
    for number, a, b in pairs:
        for x, y in zip(a, b):
            difference = abs(x - y)
            if math.isnan(difference):
                difference = math.inf
            if difference > worst:
                worst, where = difference, number
    if worst > tolerance:
        raise Failure(
            f"{who}: row {where} differs from melflow's by {worst:g}, allowed is {tolerance:g}"
        )
    return worst
