"""What all jobs need to know, and the programs they are made of."""
import os
import pathlib
import subprocess
from dataclasses import dataclass, field

import agree
import corpora
from measure import Failure, Program

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
RIVALS = REPOSITORY / "perf/rivals"
LIBRARIES = [
    "torch", "torchaudio", "torchcodec", "PyAV", "librosa", "transformers", "kaldi-native-fbank",
    "lhotse", "soundfile", "numpy",
]  # fmt: skip
MODULES = {"torchaudio-kaldi": "torchaudio", "PyAV": "av"}  # where a module is not called as its library
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
    versions: dict = field(default_factory=dict)  # by module that the rivals' Python has

    def scaled(self, number, least=1):
        return max(least, round(number * self.scale))

    def output(self, name):
        (self.dir / "output").mkdir(parents=True, exist_ok=True)
        return self.dir / "output" / name

    def version(self, library):
        """Of a library that the rivals' Python can import, or None."""
        if not self.versions:
            modules = {MODULES.get(name, name) for name in LIBRARIES}
            done = subprocess.run(
                [self.python, RIVALS / "versions.py", *sorted(modules)],
                stdout=subprocess.PIPE, text=True, check=False,
            )  # fmt: skip
            self.versions = dict(line.split("=", 1) for line in done.stdout.splitlines())
            self.versions["Python"] = subprocess.check_output(
                [self.python, "-c", "import platform; print(platform.python_version())"], text=True
            ).strip()
        return self.versions.get(MODULES.get(library, library))


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


def worker_name(library, workers):
    return f"{library}, {workers} worker" + ("s" if workers > 1 else "")


def library_rival(
    setup, name, library, kind, data, amount, rows, workers, limit=0, decoder="soundfile"
):
    """A Python library, one thread a worker, timed by its own clock."""
    output = setup.output(f"{kind}_{decoder}_{library}_{workers}.h5")
    command = [setup.python, RIVALS / "mel_files.py", "--library", library, "--job", kind]
    command += ["--decoder", decoder, "--workers", workers, "--limit", limit, data, output]
    return Program(name, command, amount, output, rows=rows, own_clock=True)


def lhotse_rival(setup, data, rows, limit):
    """Lhotse's own way to stored features."""
    output = setup.output("lhotse_store.f32")
    command = [setup.python, RIVALS / "lhotse_store.py", "--limit", limit, data, output]
    return Program(
        "Lhotse, compute_and_store_features", command, rows, output, rows=rows, own_clock=True
    )


def rivals_of(setup, remarks, wanted):
    """Those of the libraries that are there, with a remark on versions; the others become a warning."""
    there = [library for library in wanted if setup.version(library)]
    for library in wanted:
        if library not in there:
            remarks.append(
                f"{library} is omitted: {setup.python} cannot import it with h5py, numpy and "
                "soundfile (perf/run.sh --python)"
            )
    if there:
        used = {"Python", "numpy", "torch"} | {MODULES.get(library, library) for library in there}
        named = [f"{name} {version}" for name, version in setup.versions.items() if name in used]
        remarks.append(f"Versions: {', '.join(named)}.")
    return there


def speech_corpus(setup, file_format):
    name = "speech" if file_format == "wav16" else f"speech_{file_format}"
    return corpora.make(setup, name, setup.scaled(1000, 20), 16000, 10, file_format)


def leak_corpus(setup):
    return corpora.make(setup, "leak", setup.scaled(39563, 100), 4096, 10)
