"""What all jobs need to know, and the programs they are made of."""
import os
import pathlib
import subprocess
from dataclasses import dataclass, field

import agree
import corpora
from measure import Failure, Program

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
RIVAL = REPOSITORY / "perf/rivals/mel_files.py"
HEADROOM = 64 << 20  # [bytes] beyond memory.host that melflow promises not to exceed


@dataclass
class Setup:
    dir: pathlib.Path  # corpora and outputs
    bin: pathlib.Path  # the built programs
    scale: float  # of the corpora
    runs: int
    python: str  # for the rivals
    recordings: pathlib.Path  # the demo's
    million: bool
    cores: int = len(os.sched_getaffinity(0))
    libraries: dict = field(default_factory=dict)  # name: whether the rivals' Python has the library

    def scaled(self, number, least=1):
        return max(least, round(number * self.scale))

    def output(self, name):
        (self.dir / "output").mkdir(parents=True, exist_ok=True)
        return self.dir / "output" / name

    def has(self, library):
        """Can the rivals' Python import it, and what every rival takes besides?"""
        if library not in self.libraries:
            check = f"import h5py, numpy, soundfile, {library.replace('-', '_')}"
            done = subprocess.run(
                [self.python, "-c", check], capture_output=True, text=True, check=False
            )
            self.libraries[library] = done.returncode == 0
        return self.libraries[library]


@dataclass
class Job:
    """One table: programs that do the same."""

    name: str
    title: str
    unit: str  # of amounts
    programs: list
    folders: list  # the input, read before the job
    remarks: list = field(default_factory=list)
    per_unit: bool = False  # whether the table shows the time per unit
    free_cores: float = 0.0  # at the beginning
    scale_up: bool = False  # shows the times of programs that process a part as if for the whole
    made: list = field(default_factory=list)  # further files, removed at the end


def melflow(
    setup, name, pipeline, data, amount, rows, options=(), workers=None, baseline=True, verb="run"
):
    """A melflow run or update. Its output stays until the job's end, for others to be compared with."""
    file = name.replace(" ", "_").replace(",", "")
    output = setup.output(f"{file}.h5")
    report = setup.output(f"{file}.json")
    command = [setup.bin / "melflow", verb, pipeline, "--quiet", f"--json={report}"]
    command += [word for option in options for word in ("--set", option)]
    if workers:
        command += ["--workers", workers]
    program = Program(
        name, command, amount, output, {"DATA": data, "OUT": output}, report, rows,
        is_melflow=True, baseline=baseline,
    )  # fmt: skip
    program.verify = lambda said: bounded_and_whole(setup, program, said)
    return program


def bounded_and_whole(setup, program, said):
    """The file itself has the rows that the run reported, and memory stayed below the promise."""
    inspected = subprocess.run(
        [setup.bin / "melflow", "inspect", program.output], capture_output=True, check=False
    )
    if inspected.returncode != 0:
        raise Failure(f"{program.name}: {program.output} cannot be read back")
    memory = said["memory"]
    if memory["resident_peak"] > memory["budget"] + HEADROOM:
        raise Failure(
            f"{program.name}: took {memory['resident_peak'] >> 20} MiB, promised are "
            f"{(memory['budget'] + HEADROOM) >> 20} MiB"
        )
    return {"rows": said["rows"]}


def compared(program, ours, columns, tolerance, unit):
    """Lets `program`'s rows be compared with those of the melflow run `ours`, in the last round."""

    def verify(said):
        rows, offset = int(said["rows"]), int(said.get("offset", 0))
        worst = agree.largest_difference(
            ours.output, program.output, offset, rows, columns, tolerance, program.name
        )
        return {"rows": rows, "difference": worst, "unit": unit, "like": ours.name}

    program.verify = verify
    return program


def library_rival(setup, job, library, kind, data, amount, rows, workers, limit=0):
    """A Python library, one thread a worker, timed by its own clock."""
    name = f"{library}, {workers} worker" + ("s" if workers > 1 else "")
    output = setup.output(f"{job}_{library}_{workers}.h5")
    command = [setup.python, RIVAL, "--library", library, "--job", kind, "--workers", workers]
    command += ["--limit", limit, data, output]
    return Program(name, command, amount, output, rows=rows, own_clock=True)


def rivals_of(setup, remarks, wanted):
    """Those of the libraries {library: needs} that are there; the others become a warning."""
    there = []
    for library in wanted:
        module = "torchaudio" if library == "torchaudio-kaldi" else library
        if setup.has(module):
            there.append(library)
        else:
            remarks.append(
                f"{library} is omitted: {setup.python} cannot import it with h5py, numpy and "
                "soundfile (perf/run.sh --python)"
            )
    return there


def speech_corpus(setup):
    return corpora.make(setup, "speech", setup.scaled(1000, 20), 16000, 10)


def leak_corpus(setup):
    return corpora.make(setup, "leak", setup.scaled(39563, 100), 4096, 10)
