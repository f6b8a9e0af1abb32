"""melflow.distributed on a cluster of processes of this machine."""

import contextlib
import filecmp
import importlib.util
import os
import re
import signal
import subprocess
import tempfile
import threading
import unittest

import corpus

HAS_DASK = importlib.util.find_spec("distributed") is not None
if HAS_DASK:
    import melflow
    from dask import config
    from distributed import Client, LocalCluster
    from melflow import distributed


# Takes some seconds.
SLOW = corpus.MEL.replace("n_fft: 256, hop: 80", "n_fft: 4096, hop: 8")


def workers_of(job):
    """Processes that work on parts of the job now."""
    try:
        running = melflow.status(job)["running"]
    except melflow.RunError:  # there is no job yet
        return []
    return [int(one["worker"].rsplit("-", 2)[1]) for one in running if not one["gone"]]


@unittest.skipUnless(HAS_DASK, "distributed is not installed")
class DistributedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        config.set({"distributed.scheduler.allowed-failures": 0, "distributed.nanny.pre-spawn-environ": {}})
        cls.cluster = LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None)
        cls.client = Client(cls.cluster)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.cluster.close()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.job = folder.name, os.path.join(folder.name, "job")
        root = os.path.join(self.folder, "audio")
        corpus.make_corpus(root)
        self.out = os.path.join(self.folder, "rows.h5")
        self.pipeline = os.path.join(self.folder, "rows.yaml")
        with open(self.pipeline, "w", encoding="utf-8") as out:
            out.write(corpus.pipeline(root, f"stage: hdf5_write, path: {self.out}, statistics: all", chain=SLOW))

    def check_output(self, found):
        self.assertEqual(found["done"], found["parts"])
        self.assertIn(self.out, found["output"])
        merged = self.out + ".merged"
        os.rename(self.out, merged)
        ended = subprocess.run([os.environ["MELFLOW_PROGRAM"], "run", self.pipeline, "--quiet"])
        self.assertEqual(ended.returncode, 3)
        self.assertTrue(filecmp.cmp(self.out, merged, shallow=False))

    def run_job(self, **options):
        return distributed.run(self.pipeline, self.client, job=self.job, part="64KiB", **options)

    def test_the_bytes_are_those_of_one_machine(self):
        seen = []
        found = self.run_job(progress=seen.append)
        self.assertGreater(found["parts"], 20)
        self.assertEqual(seen[-1]["done"], found["parts"])
        self.check_output(found)

    @contextlib.contextmanager
    def beside(self, act):
        """Calls act(pid) of a process that works on the job, again and again until it gives True."""
        over = threading.Event()

        def watch():
            while not over.is_set():
                running = workers_of(self.job)
                if running and act(running[0]):
                    return

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def test_workers_that_are_killed_cost_their_parts(self):
        # With no failure allowed, Dask condemns every task whose worker dies.
        killed = set()

        def kill(worker):
            try:
                os.kill(worker, signal.SIGKILL)
            except OSError:  # it has ended by itself
                return False
            killed.add(worker)
            return len(killed) == 2

        with self.beside(kill):
            found = self.run_job()
        self.check_output(found)
        self.assertGreater(len(killed), 0)

    def test_an_end_ends_the_work_and_the_same_call_goes_on(self):
        def leave(_):
            os.kill(os.getpid(), signal.SIGINT)
            return True

        # A shell makes background commands ignore the signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        with self.beside(leave), self.assertRaises(KeyboardInterrupt):
            self.run_job()
        self.assertEqual(workers_of(self.job), [])
        self.assertEqual([f for f in os.listdir(self.job) if f.startswith("stop-")], [])
        with self.assertRaisesRegex(melflow.RunError, f"{re.escape(self.out)} is neither below the current folder nor below that of the job"):
            self.run_job()  # a job that was there before does not say where its output goes
        self.check_output(self.run_job(trust=True))

    def test_what_cannot_be_is_said(self):
        with open(self.pipeline, "a", encoding="utf-8") as out:
            out.write("  more: {stage: no_such, from: rows}\n")
        with self.assertRaisesRegex(melflow.ConfigError, "no_such"):
            self.run_job()


if __name__ == "__main__":
    unittest.main()
