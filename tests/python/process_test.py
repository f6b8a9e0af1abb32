"""Forks, and the end of Python, while loaders are at work."""

import multiprocessing
import os
import random
import subprocess
import sys
import unittest

import melflow

import corpus

LOADS = """
import melflow, os, sys, threading, warnings
warnings.simplefilter("ignore")  # of recordings without rows, where an epoch ends in time
yaml, file, threads, kinds = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4].split()
taken = threading.Semaphore(0)

rows = melflow.open(file)

def loop(kind):
    while True:
        of = melflow.open(yaml, store=0) if kind == "number" else rows
        for batch in melflow.Loader(yaml, batch_size=2) if kind == "stream" else of.batches(2):
            taken.release()

for i in range(threads):
    threading.Thread(target=loop, args=(kinds[i % len(kinds)],), daemon=True).start()
for _ in range(int(sys.argv[5])):
    taken.acquire(timeout=60)
"""


def first(loader):
    """What a task of a Pool does with what it gets."""
    return len(loader[0]) if isinstance(loader, melflow.Rows) else len(next(iter(loader))["path"])


class ProcessTest(corpus.CorpusTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.yaml, cls.mel, cls.audio = cls.make("whole")

    def run_child(self, code, *arguments):
        ended = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=120)
        return ended.returncode, ended.stdout, ended.stderr

    def test_python_ends_while_threads_take_batches(self):
        """perf/loader_stops.py has more of these."""
        melflow.open(self.yaml, scan=True)  # creates its index
        chance = random.Random(1)
        for i in range(8):
            kinds = ["stream", "number", "file"][i % 4:i % 4 + 1] or ["stream number file"]
            ended = self.run_child(LOADS, self.yaml, self.mel, chance.randrange(1, 5), kinds[0], chance.randrange(60))
            self.assertEqual(ended, (0, "", ""), (i, kinds))

    def test_what_python_calls_last_gets_no_batches(self):
        code = ("import atexit, sys\n"
                "@atexit.register\n"  # before the import, so called behind what that registers
                "def late():\n"
                "    try: next(iter(melflow.Loader(sys.argv[1])))\n"
                "    except SystemExit: print('ends')\n"
                "import melflow\n")
        self.assertEqual(self.run_child(code, self.yaml), (0, "ends\n", ""))

    def test_a_task_of_a_pool_gets_what_works_or_an_error(self):
        loaders = {"rows": melflow.open(self.yaml), "file": melflow.open(self.mel), "batches": melflow.open(self.yaml).batches(4),
                   "batches of a file": melflow.open(self.mel).batches(4), "stream": melflow.Loader(self.yaml, batch_size=4)}
        next(iter(loaders["stream"]))  # starts threads that a fork does not have
        with multiprocessing.get_context("fork").Pool(1) as pool:
            for name, loader in loaders.items():
                with self.subTest(name):
                    result = pool.apply_async(first, (loader,))
                    if name == "file":  # which has no threads
                        self.assertEqual(result.get(60), 20)
                        continue
                    with self.assertRaisesRegex(melflow.RunError, "forked off after melflow had started its threads.* spawn"):
                        result.get(60)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            moved = os.path.join(self.folder.name, "moved.h5")
            os.link(self.mel, moved)
            rows = melflow.open(moved)
            os.unlink(moved)
            with self.assertRaisesRegex(melflow.RunError, "moved.h5"):
                pool.apply_async(first, (rows,)).get(60)

    def test_a_forked_process_ends_without_a_word(self):
        code = ("import melflow, os, sys, warnings\n"
                "warnings.simplefilter('ignore', DeprecationWarning)\n"  # Python 3.12 says one of fork() itself
                "loader, rows = melflow.Loader(sys.argv[1], batch_size=2), melflow.open(sys.argv[1]).batches(2)\n"
                "batches = [iter(loader), iter(rows)]\n"
                "for b in batches: next(b)\n"
                "child = os.fork()\n"
                "if child == 0: sys.exit(7)\n"
                "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
                "for b in batches: next(b)\n")
        self.assertEqual(self.run_child(code, self.yaml), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
