"""Batches of 1 to 1,024 samples by 1 to 8 workers, what a loop of a given speed costs, and memory over time.

loader_table.py [--svg FILE] CORPUS
In:   a folder of recordings of 44.1 kHz (perf/loader.py makes some in its --dir), and a Python that has melflow.
Out:  tables of samples a second, as a stream and by number from memory; of the processor's share for loops that take so many
      samples a second; --svg: a picture of resident memory over five epochs, beside the budget.

Each figure is of a process of its own.
"""
import argparse
import json
import resource
import subprocess
import sys
import threading
import time

from loader import FRAMES

SIZES, WORKERS, SPEEDS = (1, 4, 16, 64, 256, 1024), (1, 2, 4, 8), (250, 1000, 2000)
BUDGET = 256  # [MiB]


def pipeline(root, dtype="int16"):
    return FRAMES.format(root=root, feed="", dtype=dtype).replace("graph:", f"memory: {{host: {BUDGET}MiB}}\ngraph:")


def stream(root, size, workers):
    import melflow
    return melflow.Loader(pipeline(root), batch_size=size, workers=workers)


def stored(root, size, workers):
    import melflow
    return melflow.open(pipeline(root), index=False, store="4GiB", workers=workers).batches(size, seed=1)


def rate(make, root, size, workers):
    batches = make(root, size, workers)
    began, count = time.perf_counter(), 0
    for batch in batches:
        count += len(batch["file"])
    return count / (time.perf_counter() - began)


def paced(root, speed):
    """The share of one core that this process takes, and the samples a second that the loop got."""
    began, count = time.perf_counter(), 0
    for batch in stream(root, 16, 2):
        count += len(batch["file"])
        time.sleep(max(0, began + count / speed - time.perf_counter()))
        if time.perf_counter() > began + 10:
            break
    seconds = time.perf_counter() - began
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) / seconds, count / seconds


def memory(root):
    """[(s, MiB)] over five epochs, and where these began [s]."""
    import melflow  # noqa: F401  imported first, so that it does not count
    page, series, begins, over = resource.getpagesize(), [], [], threading.Event()
    began = time.perf_counter()

    def watch():
        while not over.wait(0.02):
            with open("/proc/self/statm", encoding="ascii") as file:
                series.append((time.perf_counter() - began, int(file.read().split()[1]) * page / 2**20))

    watcher = threading.Thread(target=watch)
    watcher.start()
    loader = stream(root, 16, 2)
    for _ in range(5):
        begins.append(time.perf_counter() - began)
        for _batch in loader:
            pass
    over.set()
    watcher.join()
    return series, begins


def picture(series, begins):
    width, height, left, bottom = 760, 260, 60, 40
    end, top = series[-1][0], 1.1 * max(BUDGET, max(m for _, m in series))

    def at(t, m):
        return f"{left + t / end * (width - left - 20):.1f},{(height - bottom) * (1 - m / top) + 10:.1f}"

    def line(x1, y1, x2, y2, style):
        (a, b), (c, d) = (at(x1, y1).split(","), at(x2, y2).split(","))
        return f'<line x1="{a}" y1="{b}" x2="{c}" y2="{d}" {style}/>'

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             '<rect width="100%" height="100%" fill="white"/>']
    for m in range(0, int(top), 64):
        x, y = at(0, m).split(",")
        parts.append(line(0, m, end, m, 'stroke="#ddd"') + f'<text x="{float(x) - 6}" y="{float(y) + 4}" text-anchor="end">{m}</text>')
    for i, t in enumerate(begins):
        x, y = at(t, 0).split(",")
        parts.append(line(t, 0, t, top, 'stroke="#bbb" stroke-dasharray="3"') +
                     f'<text x="{float(x) + 4}" y="{float(y) + 16}">epoch {i} at {t:.1f} s</text>')
    x, y = at(end, BUDGET).split(",")
    parts.append(line(0, BUDGET, end, BUDGET, 'stroke="#c33"') + f'<text x="{x}" y="{float(y) - 5}" text-anchor="end" fill="#c33">memory.host</text>')
    points = " ".join(at(t, m) for t, m in series)
    parts.append(f'<polyline points="{points}" fill="none" stroke="#26c" stroke-width="1.5"/>')
    parts.append(f'<text x="{left}" y="{height - 4}">resident memory of the process [MiB], five epochs</text></svg>')
    return "\n".join(parts) + "\n"


def child(*arguments):
    ended = subprocess.run([sys.executable, __file__, "--one", *map(str, arguments)], capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--svg")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("corpus", nargs="?")
    a = parser.parse_args()
    if a.one:
        what, root, *rest = a.one
        numbers = [int(x) for x in rest]
        print(json.dumps({"stream": lambda: rate(stream, root, *numbers), "stored": lambda: rate(stored, root, *numbers),
                          "paced": lambda: paced(root, *numbers), "memory": lambda: memory(root)}[what]()))
        return
    if a.corpus is None:
        parser.error("a corpus is needed")
    for what, title in (("stream", "Loader: samples a second, decoded"), ("stored", "melflow.open: samples a second, from memory")):
        print(f"\n{title}\n\n| batch | " + " | ".join(f"{w} workers" for w in WORKERS) + " |\n|---|" + "---|" * len(WORKERS))
        for size in SIZES:
            print(f"| {size} | " + " | ".join(f"{child(what, a.corpus, size, w):,.0f}" for w in WORKERS) + " |", flush=True)
    print("\nA loop that takes\n\n| samples a second | it got | cores that the process took |\n|---|---|---|")
    for speed in SPEEDS:
        share, got = child("paced", a.corpus, speed)
        print(f"| {speed:,} | {got:,.0f} | {share:.2f} |", flush=True)
    series, begins = child("memory", a.corpus)
    print(f"\nresident memory: at most {max(m for _, m in series):.0f} MiB, of which {series[0][1]:.0f} MiB before the first batch; "
          f"memory.host {BUDGET} MiB")
    if a.svg:
        with open(a.svg, "w", encoding="utf-8") as out:
            out.write(picture(series, begins))


main()
