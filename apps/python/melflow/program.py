"""The verbs of the program melflow as functions: they run in threads of this process."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from . import _melflow, arguments, calls
from ._melflow import ConfigError, RunError, VerbCall, with_arguments

_log = logging.getLogger("melflow")
_USAGE, _SOME_FAILED, _NOT_AS_EXPECTED, _STOPPED, _CONFIGURATION = 2, 3, 4, 75, 78  # exit statuses


def path() -> str:
    """The program of this package, for a shell."""
    return os.path.join(os.path.dirname(__file__), "bin", "melflow")


def load_plugin(path: "os.PathLike[str] | str") -> None:
    """Loads a plug-in, a shared library with further stages, for this process and, by MELFLOW_PLUGINS, for those that it
    starts. Its code runs with all rights of this process. Raises ConfigError where it cannot be loaded."""
    name = os.path.abspath(arguments.path("path", path))
    if ":" in name:
        raise ConfigError(f"{name}: the path of a plug-in has no ':', which separates those of MELFLOW_PLUGINS")
    _melflow.load_plugin(name)
    known = [plugin for plugin in os.environ.get("MELFLOW_PLUGINS", "").split(":") if plugin]
    if name not in known:
        os.environ["MELFLOW_PLUGINS"] = ":".join([*known, name])


def framed(page: str, height: str) -> str:
    """A page in a frame within a notebook; height: as in CSS."""
    text = page.replace("&", "&amp;").replace('"', "&quot;")
    return f'<iframe srcdoc="{text}" style="width: 100%; height: {height}; border: 0"></iframe>'


class Report(Dict[str, Any]):
    """What `melflow run --json` prints of a run, as a dict: `ending`, `files` (found, ok, skipped, failed, ...), `remarks`, and
    by stage and queue where the time went. A notebook shows it as a page."""

    def __repr__(self) -> str:
        files = self.get("files", {})
        counts = ", ".join(f"{files[what]} {what}" for what in ("found", "ok", "skipped", "failed", "not_run") if files.get(what))
        return f"<Report: {self.get('ending', 'of a dry run')}; files: {counts}; {self.get('rows', 0)} rows; a dict with {', '.join(self)}>"

    def html(self, path: "os.PathLike[str] | str | None" = None) -> str:
        """The page that `melflow run --report` writes; also written to `path`, if given."""
        if path is not None:
            with open(arguments.path("path", path), "w", encoding="utf-8") as file:
                file.write(self.html())
        return _melflow.html_report(json.dumps(self))

    def _repr_html_(self) -> str:
        return framed(self.html(), "36em")


def warn_of_recordings(report: Report, all_in: str) -> None:
    """Warns of recordings that failed or have a warning. all_in: where all of them are listed."""
    for status, what in (("failed", "gave no rows"), ("ok", "have a warning")):
        said = [f"{one['path']}: {one['reason']}" for one in report.get("remarks", []) if one["status"] == status]
        arguments.warn([arguments.counted(what, said, report["files"]["found"], all_in)] if said else [])


class _Bar:
    """A bar of tqdm; nothing where it is not wanted or not installed."""

    def __init__(self, progress: Optional[bool]) -> None:
        if progress is None:  # where somebody looks
            progress = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
        self._bar: Any = None
        if arguments.flag("progress", progress):
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return
            self._bar = tqdm(unit="file")

    def show(self, done: int, found: int, rows: int, rate: float) -> None:
        if self._bar is None or found == 0:
            return
        self._bar.total = found
        self._bar.set_postfix_str(f"{rows:,} rows" + (f", {rate:,.0f} rows/s" if rate else ""), refresh=False)
        self._bar.update(done - self._bar.n)

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()


def call(words: Sequence[str], text: str = "", *, accepts: Sequence[int] = (0,),
         show: Optional[Callable[[int, int, int, float], None]] = None,
         until: Optional[Callable[[], bool]] = None) -> Tuple[int, str]:
    """Runs a verb with its arguments: gives its exit status and what it printed. Its other messages are logged. Ctrl-C
    lets the files under way end and raises KeyboardInterrupt.

    text: the standard input. show: gets the progress: files done, files found, rows, rows a second. until: asked ten times a
    second whether to stop."""
    calls.check_outside()
    verb, said, has_ended = VerbCall(list(words), text), "", False
    try:
        while not has_ended:
            more, seen, has_ended = verb.wait(0.1)
            said += more
            for line in more.splitlines():
                _log.info("%s", line)
            if show is not None and seen is not None:
                show(*seen)
            if until is not None and until():
                until = None
                verb.stop()
    finally:
        verb.stop()
    try:
        status = verb.status()
    except (ConfigError, RunError, ValueError) as error:
        raise type(error)(with_arguments(str(error))) from None
    if status not in accepts:
        # The last message is the error; the text before it is the summary.
        why = re.split(r"(?m)^melflow(?: \w+)?: ", said)[-1].strip() or f"melflow {words[0]} ended with status {status}"
        raise (ValueError if status == _USAGE else RunError)(with_arguments(why))
    return status, verb.printed()


def _documented(words: Sequence[str], text: str = "", **options: Any) -> Dict[str, Any]:
    return json.loads(call([*words, "--json"], text, **options)[1])


def pipeline_words(pipeline: arguments.Pipeline, vars: Optional[Mapping[str, Any]],
                   sets: Optional[Mapping[str, Any]], workers: Optional[int] = None) -> Tuple[List[str], str]:
    """A pipeline as words of a command line, and the text for the standard input."""
    name, text = arguments.pipeline(pipeline)
    words = ["-" if text else name]
    for what, values in (("vars", vars), ("sets", sets)):
        for option, value in arguments.assigned(what, values).items():
            words += ["--" + what[:-1], f"{option}={value}"]
    return [*words, *_workers(workers)], text


def _stored_words(trust: bool, vars: Optional[Mapping[str, Any]]) -> List[str]:
    """The words for --trust and --var, for a stored configuration."""
    return [*_flag("trust", trust), *(word for name, value in arguments.assigned("vars", vars).items() for word in ("--var", f"{name}={value}"))]


def _workers(workers: Optional[int]) -> List[str]:
    return [] if workers is None else ["--workers", str(arguments.workers(workers, 0))]


def _time(name: str, seconds: Optional[float]) -> List[str]:
    return [] if seconds is None else ["--" + name.replace("_", "-"), f"{arguments.seconds(name, seconds):g}s"]


def _flag(name: str, value: Any) -> List[str]:
    return ["--" + name.replace("_", "-")] if arguments.flag(name, value) else []


def _run(words: List[str], text: str, stop_after: Optional[float], progress: Optional[bool],
         metrics: "os.PathLike[str] | str | None") -> Report:
    words = [*words, *_time("stop_after", stop_after), *([] if metrics is None else ["--metrics", arguments.path("metrics", metrics)])]
    accepts = (0, _SOME_FAILED) if stop_after is None else (0, _SOME_FAILED, _STOPPED)
    with _Bar(progress) as bar:
        report = Report(_documented(words, text, accepts=accepts, show=bar.show))
        files = report.get("files", {})
        bar.show(files.get("found", 0) - files.get("not_run", 0), files.get("found", 0), report.get("rows", 0), 0)
    report["warnings"] = [with_arguments(warning) for warning in report.get("warnings", [])]
    arguments.warn(report["warnings"])
    warn_of_recordings(report, 'report["remarks"] has all')
    return report


def run(pipeline: arguments.Pipeline, *, vars: Optional[Mapping[str, Any]] = None,
        sets: Optional[Mapping[str, Any]] = None, workers: Optional[int] = None, resume: str = "auto",
        stop_after: Optional[float] = None, progress: Optional[bool] = None,
        metrics: "os.PathLike[str] | str | None" = None) -> Report:
    """Runs a pipeline that writes its rows, like `melflow run`. A run that was interrupted, by Ctrl-C or a kill, goes on at the
    next call.

    pipeline, vars, sets: as those of melflow.Loader; a name may be that of a pipeline that comes with melflow.
    resume: "auto", "never" (starts over) or "require" (fails where there is nothing to go on with).
    stop_after: starts no new files after so many seconds; the report then says so as its `ending`.
    progress: a bar of files, where tqdm is installed; not given: on a terminal and in a notebook.
    metrics: a file whose name ends in .prom, with the figures of the run for Prometheus, replaced as a whole while it runs.

    Gives the report, and shows its warnings, with the number of lost or damaged recordings and the first of them; all are in
    report["remarks"], with path, status and reason. ConfigError: the pipeline is wrong, and nothing
    was started; RunError: there is no output."""
    words, text = pipeline_words(pipeline, vars, sets, workers)
    return _run(["run", *words, "--resume", arguments.text("resume", resume)], text, stop_after, progress, metrics)


def update(pipeline: arguments.Pipeline, *, vars: Optional[Mapping[str, Any]] = None,
           sets: Optional[Mapping[str, Any]] = None, workers: Optional[int] = None, compact: bool = False,
           dry_run: bool = False, stop_after: Optional[float] = None, progress: Optional[bool] = None,
           metrics: "os.PathLike[str] | str | None" = None) -> Report:
    """Computes the rows of files that are new or have changed since the output was made, like `melflow update`.

    compact: puts all rows in the order of the files. dry_run: changes nothing, and gives what would be done.
    The other arguments: as those of melflow.run."""
    words, text = pipeline_words(pipeline, vars, sets, workers)
    words += [*_flag("compact", compact), *_flag("dry_run", dry_run)]
    return _run(["update", *words], text, stop_after, progress, metrics)


def plan(pipeline: arguments.Pipeline, job: "os.PathLike[str] | str", *, vars: Optional[Mapping[str, Any]] = None,
         sets: Optional[Mapping[str, Any]] = None, part: str = "1GiB") -> Dict[str, Any]:
    """Lists a corpus and cuts it into parts of about `part` bytes of audio, as the folder `job` that workers share, like `melflow
    plan`. Gives the job's status."""
    words, text = pipeline_words(pipeline, vars, sets)
    call(["plan", *words, "--part", arguments.text("part", part), "-o", arguments.path("job", job)], text)
    return status(job)


def work(job: "os.PathLike[str] | str", *, workers: Optional[int] = None, stop_after: Optional[float] = None,
         patience: Optional[float] = None, trust: bool = False, vars: Optional[Mapping[str, Any]] = None,
         until: Optional[Callable[[], bool]] = None) -> Dict[str, Any]:
    """Computes parts of a job until none is left, like `melflow work`, beside other workers.

    workers: threads. stop_after: starts no new files after so many seconds. patience: how many seconds another worker may show
    no heartbeat. trust, vars: as those of melflow.verify. until: asked ten times a second whether to stop.

    The process's working folder is that of the plan meanwhile. Gives the job's status; RunError where a part failed."""
    words = ["work", arguments.path("job", job), *_workers(workers), *_time("stop_after", stop_after),
             *_time("patience", patience), *_stored_words(trust, vars)]
    call(words, accepts=(0, _STOPPED), until=until)
    return status(job)


def status(job: "os.PathLike[str] | str") -> Dict[str, Any]:
    """How far a job is, like `melflow status`."""
    return _documented(["status", arguments.path("job", job)])


def merge(job: "os.PathLike[str] | str", *, output: "os.PathLike[str] | str | None" = None,
          workers: Optional[int] = None, trust: bool = False, vars: Optional[Mapping[str, Any]] = None) -> Report:
    """Writes a job's output from its parts, byte for byte that of melflow.run, like `melflow merge`: to `output`, or where the
    pipeline says, which without `trust` is below the current folder or the job's. trust, vars: as those of melflow.verify.
    The process's working folder is that of the plan meanwhile. Gives the report."""
    words = ["merge", arguments.path("job", job), *_workers(workers), *_stored_words(trust, vars)]
    words += [] if output is None else ["--output", arguments.path("output", output)]
    return Report(_documented(words, accepts=(0, _SOME_FAILED)))


def explain(pipeline: arguments.Pipeline, *, vars: Optional[Mapping[str, Any]] = None,
            sets: Optional[Mapping[str, Any]] = None, workers: Optional[int] = None, verify: bool = False,
            seconds: float = 30) -> Dict[str, Any]:
    """Runs a pipeline as a trial of some seconds, and gives what limits its speed and what would help, like `melflow explain`.
    verify: tries the first hint and measures what it brings."""
    words, text = pipeline_words(pipeline, vars, sets, workers)
    return _documented(["explain", *words, *_time("seconds", seconds), *_flag("verify", verify)], text)


def sweep(pipeline: arguments.Pipeline, vary: Mapping[str, Sequence[Any]], *,
          vars: Optional[Mapping[str, Any]] = None, sets: Optional[Mapping[str, Any]] = None,
          workers: Optional[int] = None, repeat: int = 3, seconds: float = 10) -> Dict[str, Any]:
    """Runs a pipeline with all combinations of values, such as {"workers": [1, 2], "mel.batch": [64, 512]}, in turn, and ranks
    them by files per second, like `melflow sweep`."""
    words, text = pipeline_words(pipeline, vars, sets, workers)
    for option, values in vary.items():
        words += ["--vary", f"{option}={','.join(arguments.text_of(v) for v in values)}"]
    return _documented(["sweep", *words, "--repeat", str(arguments.integer("repeat", repeat, 1)),
                        *_time("seconds", seconds)], text)


def tune(pipeline: arguments.Pipeline, *, output: "os.PathLike[str] | str | None" = None,
         vars: Optional[Mapping[str, Any]] = None, sets: Optional[Mapping[str, Any]] = None,
         workers: Optional[int] = None, budget: float = 60, seed: int = 1) -> Dict[str, Any]:
    """Looks for options that make a pipeline faster on this machine, for about `budget` seconds, like `melflow tune`. Gives
    what was tried, and writes the changed pipeline to `output`."""
    words, text = pipeline_words(pipeline, vars, sets, workers)
    words += [] if output is None else ["--output", arguments.path("output", output)]
    return _documented(["tune", *words, *_time("budget", budget), "--seed", str(arguments.integer("seed", seed))], text)


def validate(pipeline: arguments.Pipeline, *, vars: Optional[Mapping[str, Any]] = None,
             sets: Optional[Mapping[str, Any]] = None, workers: Optional[int] = None) -> Dict[str, Any]:
    """Checks a pipeline and starts nothing, like `melflow validate`: gives its whole configuration, or raises ConfigError with
    all its problems."""
    words, text = pipeline_words(pipeline, vars, sets, workers)
    found = _documented(["validate", *words], text, accepts=(0, _CONFIGURATION))
    if not found["ok"]:
        call(["validate", *words], text)  # raises the problems as one text
    arguments.warn([warning["message"] for warning in found["warnings"]])
    return found


def inspect(path: "os.PathLike[str] | str") -> Dict[str, Any]:
    """What a file of rows says of itself, like `melflow inspect`."""
    return _documented(["inspect", arguments.path("path", path)])


def check(source: "os.PathLike[str] | str | None" = None, *, pipeline: Optional[arguments.Pipeline] = None,
          vars: Optional[Mapping[str, Any]] = None, sets: Optional[Mapping[str, Any]] = None, profile: Optional[str] = None,
          where: Optional[Mapping[str, Optional[str]]] = None, faulty: Optional[str] = None, sample: Optional[str] = None,
          measures: "str | Sequence[str] | None" = None, by: Sequence[str] = (), output: "os.PathLike[str] | str | None" = None,
          report: "os.PathLike[str] | str | None" = None, csv: "os.PathLike[str] | str | None" = None,
          duplicates: bool = False, across_splits: Optional[str] = None, workers: Optional[int] = None,
          progress: Optional[bool] = None) -> Dict[str, Any]:
    """What is wrong with which recordings, like `melflow check`: its JSON document (docs/quality.md).

    source: a folder, an archive, a list, a recording, or an output whose recordings were measured. pipeline: in its place, whose
      recordings are checked as it lists and decodes them; beside an output, for what it expects of recordings. vars: its variables.
    profile: any, asr, tts, speaker or music. where: further conditions, {"quality.snr": "> 20dB"}; None takes one out.
    faulty: how many may not meet them, "< 1%"; `expected` of the document says whether that is met. sample: "1%" for a first look.
    measures: "default", "all" or names. by: columns that group recordings. output: a file that keeps what was measured.
    duplicates: also says what sounds alike, as `duplicates` of the document. across_splits: how many may sound like one of another
      split, "<= 0".
    report, csv: files that are written. sets: options of the nodes files, decode and measure, {"files.labels": "parent_dir"}.
    """
    words, text = ["check"], ""
    if source is not None:
        words.append(arguments.path("source", source))
    if pipeline is not None:
        name, text = arguments.pipeline(pipeline)
        words += ["--from", "-" if text else name]
    for what, values in (("var", vars), ("set", sets)):
        words += [word for option, value in arguments.assigned(what + "s", values).items() for word in ("--" + what, f"{option}={value}")]
    for key, wanted in (where or {}).items():
        words += ["--where", f"{key}={'' if wanted is None else wanted}"]
    for option, file in (("output", output), ("report", report), ("csv", csv)):
        words += [] if file is None else ["--" + option, arguments.path(option, file)]
    for option, given in (("profile", profile), ("faulty", faulty), ("sample", sample), ("across-splits", across_splits)):
        words += [] if given is None else ["--" + option, given]
    words += _flag("duplicates", duplicates)
    if measures is not None:
        words += ["--measures", measures if isinstance(measures, str) else ",".join(measures)]
    words += [word for column in by for word in ("--by", column)] + _workers(workers)
    with _Bar(progress) as bar:
        return _documented(words, text, accepts=(0, _SOME_FAILED, _NOT_AS_EXPECTED), show=bar.show)


def duplicates(*outputs: "os.PathLike[str] | str", against: Sequence["os.PathLike[str] | str"] = (), least: float = 2,
               share: float = 0.5, common: Optional[int] = None, with_column: Optional[str] = None, across_splits: Optional[str] = None,
               csv: "os.PathLike[str] | str | None" = None, memory: int = 512) -> Dict[str, Any]:
    """Which recordings sound alike, by the rows of the stage fingerprint, like `melflow duplicates`: its JSON document
    (docs/duplicates.md) with `groups` and `pairs`.

    outputs: files of rows. against: further ones, with which these are compared, too, but not with each other.
    least: seconds of a stretch that two share. share: of the shorter recording's sound that it must be for a group.
    common: what is in more recordings is no evidence; not given: 100, or a thousandth of all.
    with_column: recordings with one text in this column are of one group, too.
    across_splits: how many may sound like one of another split or of `against`, "<= 0"; `expected` of the document says whether
      that is met.
    csv: a file for the table of groups, which is a list for file_list. memory: MiB.
    """
    words = ["duplicates", *(arguments.path("outputs", output) for output in outputs)]
    words += [word for other in against for word in ("--against", arguments.path("against", other))]
    words += [*_time("least", least), "--share", arguments.text_of(share), "--memory", str(arguments.integer("memory", memory, 16))]
    words += [] if common is None else ["--common", str(arguments.integer("common", common, 2))]
    words += [] if with_column is None else ["--with", arguments.text("with_column", with_column)]
    words += [] if across_splits is None else ["--across-splits", arguments.text("across_splits", across_splits)]
    words += [] if csv is None else ["--csv", arguments.path("csv", csv)]
    return _documented(words, accepts=(0, _SOME_FAILED, _NOT_AS_EXPECTED))


def verify(path: "os.PathLike[str] | str", *, recompute: "str | int | None" = None, trust: bool = False,
           vars: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
    """Compares the rows of a file with their hashes, like `melflow verify`; recompute: also computes some again, such as "1%" or
    100 files. trust: allows the file's configuration the functions, commands, plug-ins, models, URLs and variables of the
    environment that its author chose. vars: its variables, such as a password that it does not have. Gives what was found:
    rows that are not what was written, too."""
    words = ["verify", arguments.path("path", path), *_stored_words(trust, vars)]
    words += [] if recompute is None else ["--recompute", str(recompute)]
    return _documented(words, accepts=(0, 1))
