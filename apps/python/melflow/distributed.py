"""One corpus on the workers of a Dask cluster: a thin layer over `melflow plan`, `work` and `merge`.

    from dask.distributed import Client
    melflow.distributed.run("/data/speech.yaml", Client("scheduler:8786"), job="/data/job", vars={"DATA": "/data/speech"})

A task for each Dask worker runs `melflow work`, which takes parts until none is left: if a worker dies, its part is computed again.
The job's folder, the corpus, the pipeline and plug-ins (melflow.load_plugin) must be at the same paths for all workers,
and this package installed on them.
"""

from __future__ import annotations

import os
import time
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional

from . import arguments, program
from ._melflow import RunError
from .arguments import Pipeline

_POLL = 0.5  # seconds between checks of the job's progress
_STOPPED = 75  # exit status of `melflow work`


def _verb(words: List[str], text: str = "") -> str:
    """Runs a verb of the program in a task."""
    return program.call(words, text, accepts=(0, 3))[1].strip()


def _work(job: str, stop: str, threads: Optional[int], options: List[str]) -> bool:
    """Works in a task until no part is left, or the file `stop` exists. Gives whether no part failed; raises ConfigError
    if the job's pipeline is refused, as it would be on every worker."""
    if threads is None:
        from distributed import get_worker

        threads = get_worker().state.nthreads
    words = ["work", job, "--workers", str(threads), "--quiet", *options]
    return program.call(words, accepts=(0, 1, _STOPPED), until=lambda: os.path.exists(stop))[0] != 1


def _mark(stop: str) -> None:
    with open(stop, "x", encoding="utf-8"):
        pass


class _Run:
    def __init__(self, client: Any, job: str, threads: Optional[int], options: List[str]) -> None:
        self.client, self.job, self.threads, self.options = client, job, threads, options
        # Dask lets cancelled tasks run on, so a file tells them to stop.
        self.stop = os.path.join(job, f"stop-{uuid.uuid4().hex}")
        self.tasks: List[Any] = []

    def somewhere(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls it on some worker, beside its tasks."""
        for address in list(self.client.ncores()):
            try:
                return next(iter(self.client.run(function, *arguments, workers=[address]).values()))
            except (OSError, KeyError, StopIteration):  # its worker has just died
                continue
        return None

    def submit(self) -> None:
        """Starts tasks until there is one for each present worker; called again, as workers may come later or restart."""
        missing = len(self.client.ncores()) - sum(not t.done() for t in self.tasks)
        for _ in range(missing):
            # Each task has its own key: Dask gives up a task whose workers died several times, whatever killed them.
            self.tasks.append(self.client.submit(_work, self.job, self.stop, self.threads, self.options,
                                                 pure=False, key=f"melflow-work-{uuid.uuid4().hex}"))

    def take_failures(self) -> int:
        """The number of ended tasks with parts that failed; tasks whose worker died do not count."""
        from distributed import KilledWorker

        done = [t for t in self.tasks if t.done()]
        self.tasks = [t for t in self.tasks if not t.done()]
        failures = 0
        for t in done:
            if t.status == "finished":
                failures += not t.result()
            elif t.status == "error" and not isinstance(t.exception(), KilledWorker):
                raise t.exception()
        return failures

    def end(self) -> None:
        """Ends the tasks that still run. Parts that are done stay, for a later call."""
        running = [t for t in self.tasks if not t.done()]
        if not running:
            return
        self.somewhere(_mark, self.stop)
        from distributed import wait

        try:
            wait(running, timeout=60)
        finally:
            self.client.cancel(running)
            self.somewhere(os.unlink, self.stop)


def run(pipeline: Pipeline, client: Any, *, job: "os.PathLike[str] | str",
        vars: Optional[Mapping[str, Any]] = None, sets: Optional[Mapping[str, Any]] = None, part: str = "1GiB",
        threads: Optional[int] = None, retries: int = 3, progress: Optional[Callable[[Dict[str, Any]], None]] = None,
        merge: bool = True, trust: bool = False) -> Dict[str, Any]:
    """Plans the job if its folder is not there yet, or goes on with it as it was planned, whatever pipeline, vars and sets
    say now; works until all parts are done; merges them.

    pipeline, vars, sets, part: as for `melflow plan`. job: its folder. threads: of each `melflow work`; not given: as many as
    the Dask worker has. retries: how often parts that failed are tried again. progress: called about twice a second with
    what `melflow status --json` says. merge: False leaves that to `melflow merge`. trust: as of melflow.work and melflow.merge.
    A job that this call plans has it. A call that goes on with a job needs it where the job calls functions, runs commands or models,
    loads plug-ins, asks URLs, or has its output neither below its own folder nor below the current one of the Dask workers; the last
    is refused only when all parts are done. Secrets are in the workers' environment.

    Gives the last status, with "output": what `melflow merge` says. Raises RunError where the plan is refused, parts fail
    again and again, or the merge fails. Ctrl-C ends the work; the same call, with trust where it is needed, goes on with it.
    """
    job = os.path.abspath(arguments.path("job", job))
    retries, merge = arguments.integer("retries", retries), arguments.flag("merge", merge)
    threads = None if threads is None else arguments.workers(threads)
    (name, *settings), text = program.pipeline_words(pipeline, vars, sets)
    if os.path.exists(name) and not text:  # otherwise the name of a pipeline that comes with the program
        name = os.path.abspath(name)
    plugins = [word for plugin in os.environ.get("MELFLOW_PLUGINS", "").split(":") if plugin
               for word in ("--plugin", os.path.abspath(plugin))]
    state = _Run(client, job, threads, plugins)
    if not state.somewhere(os.path.exists, os.path.join(job, "job.json")):
        client.submit(_verb, ["plan", name, "--part", part, "-o", job, *settings, *plugins], text=text,
                      pure=False).result()
        trust = True  # the job has the pipeline that was given here
    if arguments.flag("trust", trust):
        state.options = [*plugins, "--trust"]
    failures = 0
    try:
        while True:
            failures += state.take_failures()
            found = state.somewhere(program.status, job)
            if found is not None:
                if progress is not None:
                    progress(found)
                if found["done"] == found["parts"]:
                    break
                if failures > retries and found["failed"]:
                    raise RunError(f"{job}: {len(found['failed'])} parts failed {failures} times; the first: {found['failed'][0]}")
            state.submit()
            time.sleep(_POLL)
    finally:
        state.end()
    if merge:
        found["output"] = client.submit(_verb, ["merge", job, *state.options], pure=False).result()
    return found
