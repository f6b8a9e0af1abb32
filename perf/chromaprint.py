"""Copies that Chromaprint finds in the corpus of perf/planted_duplicates.py, comparing all pairs.

    python3 perf/chromaprint.py WORK

WORK: what planted_duplicates.py made there. Every recording gets a fingerprint by `fpcalc -raw`,
every pair is compared at every offset, and counts as found where the share of bits that differ in
the words that both have there is at most a limit. A word is of about 2.6 s, and comes 8 times a
second. Prints, for several limits and least numbers of words, the copies found and the other pairs,
and the time for all pairs. Needs numpy and fpcalc (libchromaprint-tools).
"""

import json
import pathlib
import subprocess
import sys
import time

import numpy as np

LEAST = (4, 8, 16)  # words
LIMITS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35)
BITS = np.array([bin(byte).count("1") for byte in range(256)], np.uint8)


def fingerprint(path):
    made = subprocess.run(["fpcalc", "-raw", "-length", "0", "-json", path], capture_output=True)
    # fpcalc ends with 3 where the end of a file could not be decoded, and prints what it has.
    return np.array(json.loads(made.stdout or b'{"fingerprint": []}')["fingerprint"], np.uint32)


def least_errors(all_words, counts, number, least):
    """The least share of bits in which recording `number` differs from each one behind it."""
    own = all_words[number, : counts[number]]
    others, theirs = all_words[number + 1 :], counts[number + 1 :]
    best = np.ones(len(others))
    for offset in range(least - len(own), others.shape[1] - least + 1):  # of own in the other
        begin, end = max(0, offset), min(others.shape[1], offset + len(own))
        if end - begin < least:
            continue
        differ = others[:, begin:end] ^ own[begin - offset : end - offset]
        bits = BITS[np.ascontiguousarray(differ).view(np.uint8)].reshape(*differ.shape, 4).sum(2, dtype=np.int32)
        both = np.clip(theirs - begin, 0, end - begin)
        sums = np.concatenate([np.zeros((len(bits), 1), np.int32), np.cumsum(bits, 1, dtype=np.int32)], 1)
        share = sums[np.arange(len(bits)), both] / (32 * np.maximum(both, 1))
        best = np.where(both >= least, np.minimum(best, share), best)
    return best


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    work = pathlib.Path(sys.argv[1])
    planted = json.loads((work / "planted.json").read_text())
    files = sorted(p for p in (work / "data").rglob("*") if p.is_file())
    names = [str(p.relative_to(work / "data")) for p in files]
    copies = {frozenset((copy, whole)) for copy, (whole, _) in planted.items()}
    begin = time.time()
    prints = [fingerprint(path) for path in files]
    print(f"{len(files)} recordings: fpcalc took {time.time() - begin:.0f} s")
    counts = np.array([len(words) for words in prints])
    all_words = np.zeros((len(files), counts.max()), np.uint32)
    for row, words in zip(all_words, prints):
        row[: len(words)] = words
    pairs = len(files) * (len(files) - 1) // 2
    for least in LEAST:
        found = {limit: [0, 0] for limit in LIMITS}
        begin = time.process_time()
        for number in range(len(files) - 1):
            errors = least_errors(all_words, counts, number, least)
            for other in np.flatnonzero(errors <= LIMITS[-1]):
                is_copy = frozenset((names[number], names[number + 1 + other])) in copies
                for limit in LIMITS:
                    found[limit][0 if is_copy else 1] += bool(errors[other] <= limit)
        took = time.process_time() - begin
        print(f"{least} words or more: {pairs} pairs in {took:.0f} s of a core, {pairs / took:.0f} a second")
        for limit, (copies_found, others) in found.items():
            print(f"   at most {limit:.0%} of the bits: {copies_found} of {len(copies)} copies, {others} other pairs")


main()
