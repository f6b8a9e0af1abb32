"""Padding of batches by length beside Lhotse's DynamicBucketingSampler, at equal entropy: batch_lengths.py [--recordings 28539]

Lengths as those of LibriSpeech train-clean-100, made here: seven tenths about 14.3 s, the others from 1.5 to 12 or to 24.5 s. Batches of at most 120 s for two ranks,
three epochs. Lhotse bounds the audio of a batch, melflow the audio with its padding, so that batches of Lhotse are larger by their padding. Out: a row for each setting:
padding, entropy of neighbours as docs/loader.md has it, batches, fill, and how much the batches of the two ranks in a step differ (the padded rows of the lesser, less
than those of the greater), on average and at most. Packages: numpy, and for the other sampler lhotse, torch."""
import argparse

import numpy as np
from melflow import length_batches
from melflow._melflow import EpochOrder

SECONDS, RANKS, EPOCHS, ROWS = 120, 2, 3, 100  # rows: of a second


def lengths_like_librispeech(count):
    random = np.random.default_rng(1)
    kind = random.random(count)
    seconds = np.where(kind < 0.7, random.normal(14.3, 1.2, count), np.where(kind < 0.95, random.uniform(1.5, 12, count), random.uniform(14, 24.5, count)))
    return (np.clip(seconds, 1.4, 24.5) * ROWS).astype(np.int64)


def described(name, epochs, rows):
    """epochs: of each, the batches of each rank, by step."""
    padding, entropies, fills, spread, batches = [], [], [], [], 0
    for steps in epochs:
        one = [batch for step in steps for batch in step]
        samples, ends = np.concatenate(one), np.cumsum([len(batch) for batch in one])
        figures = length_batches.figures(samples, ends, rows, rows, SECONDS * ROWS, False)
        padding.append(figures["padding"])
        entropies.append(figures["entropy_of_neighbours"])
        fills.append(figures["fill"])
        work = np.array([[len(batch) * rows[batch].max() for batch in step] for step in steps if len(step) == RANKS])
        spread.extend(1 - work.min(1) / work.max(1))
        batches += len(one)
    print(f"| {name} | {100 * np.mean(padding):.2f} % | {np.mean(entropies):.2f} | {batches // len(epochs)} | {100 * np.mean(fills):.1f} % | "
          f"{100 * np.mean(spread):.2f} % | {100 * np.quantile(spread, 0.99):.1f} % |", flush=True)


def of_melflow(rows, **settings):
    for epoch in range(EPOCHS):
        samples, ends = EpochOrder(samples=len(rows), lengths=rows, shuffles=True, seed=1, epoch=epoch, size=2**20, max_rows=SECONDS * ROWS, group=RANKS,
                                   **settings).batches()
        batches = np.split(samples, ends[:-1])
        yield [batches[i:i + RANKS] for i in range(0, len(batches), RANKS)]


def of_lhotse(rows, **settings):
    from lhotse import CutSet, MonoCut, Recording
    from lhotse.dataset import DynamicBucketingSampler

    cuts = CutSet.from_cuts(MonoCut(id=str(i), start=0, duration=float(n) / ROWS, channel=0,
                                    recording=Recording(id=str(i), sources=[], sampling_rate=16000, num_samples=int(n) * 160, duration=float(n) / ROWS))
                            for i, n in enumerate(rows))
    for epoch in range(EPOCHS):
        of_ranks = []
        for rank in range(RANKS):
            sampler = DynamicBucketingSampler(cuts, max_duration=SECONDS, shuffle=True, world_size=RANKS, rank=rank, seed=1, **settings)
            sampler.set_epoch(epoch)
            of_ranks.append([np.array([int(cut.id.partition("_")[0]) for cut in batch]) for batch in sampler])
        yield list(zip(*of_ranks))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--recordings", type=int, default=28539)
    rows = lengths_like_librispeech(arguments.parse_args().recordings)
    print("| | padding | entropy | batches | fill | ranks differ | 99 % of steps |\n|---|---|---|---|---|---|---|")
    for bucket in (0, 64, 128, 256, 512, 1024, 2048, 4096, 8192):
        described(f"melflow, bucket={bucket}", list(of_melflow(rows, bucket=bucket)), rows)
    described("melflow, bucket=1024, max_padding=0.1", list(of_melflow(rows, bucket=1024, max_padding=0.1)), rows)
    try:
        import lhotse
    except ImportError:
        print("lhotse is not installed")
        return
    for buckets in (2, 4, 8, 10, 20, 30, 50):
        described(f"Lhotse {lhotse.__version__}, num_buckets={buckets}", list(of_lhotse(rows, num_buckets=buckets, buffer_size=20000)), rows)


if __name__ == "__main__":
    main()
