"""Changes one line of the kernels, their launcher or what feeds them at a time, and looks whether a test sees it.

In:  mutations.py [BUILD...] [--only TEXT] [--again] [--table]
     BUILD: default build/release, then build/tsan for what the first one does not see; each with melflow_emulated_tests,
     melflow_cuda_runtime_tests and melflow_jobs_tests. --only: changes with TEXT in their names; --again: also those
     that were seen before; --table: what is known, as a table, and nothing is run.
Out: a line a change: what was changed, and which test saw it, or that none did. The same in FIRST-BUILD/mutations.jsonl
     as soon as it is known, so that a call that was stopped goes on with the next. Exit status 1 when one was not seen
     that is not listed as such (UNSEEN).

The changed file stands before its own in the compiler's path; what includes it is compiled again, the test programs
are linked with that, and their tests run one by one, the quickest first, until one fails. A test that takes much longer
than it did without the change does not end, and has seen it, too.
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BARRIERS = ["fused_kernel.cuh", "any_size_kernels.cu", "condition_kernel.cu"]
# File, text that occurs in it once, replacement.
CHANGES = [
    # Bounds: which frames exist.
    ("fused_kernel.cuh", "min(frame, n_frames - 1)", "frame"),
    ("fused_kernel.cuh", "if (frame < n_frames) F::write_mel", "F::write_mel"),
    ("fused_kernel.cuh", "if (frame < n_frames) F::write_spectrum", "F::write_spectrum"),
    ("fused_kernel.cuh", "for (; base < n_frames; base += step)", "for (; base + 1 < n_frames; base += step)"),
    ("fused_kernel.cuh", "for (; base < n_frames; base += step)", "for (; base < n_frames + 1; base += step)"),
    ("fused_kernel.cuh", "base + step < n_frames)", "base + step + 1 < n_frames)"),
    ("fused_kernel.cuh", "i < a.bands.pieces(); i +=", "i < a.bands.pieces() - 1; i +="),
    ("fused_kernel.cuh", "i < a.bands.weights; i +=", "i < a.bands.weights - 1; i +="),
    ("any_size_kernels.cu", "n_frames <= chunk.first_frame ? 0 : min(", "min("),
    ("any_size_kernels.cu", "min(n_frames - chunk.first_frame, chunk.frames)", "n_frames - chunk.first_frame"),
    ("any_size_kernels.cu", "i < n; i += step) {\n    const auto* samples", "i + 1 < n; i += step) {\n    const auto* samples"),
    ("any_size_kernels.cu", "i < n; i += step) {\n    bins", "i + 1 < n; i += step) {\n    bins"),
    ("any_size_kernels.cu", "       i < end; i += threads)", "       i < 0; i += threads)"),
    ("any_size_kernels.cu", "       i < end; i += threads)", "       i < end + 65; i += threads)"),
    ("condition_kernel.cu", "i < n; i += step)", "i + 1 < n; i += step)"),
    ("condition_kernel.cu", "i < n; i += step)", "i < n + 1; i += step)"),
    # Offsets: of frames, samples and shared memory.
    ("fused_kernel.cuh", "+ group * a.frame_bytes", "+ group / 2 * a.frame_bytes"),
    ("fused_kernel.cuh", "shared_memory + table_bytes(a.bands)", "shared_memory + table_bytes(a.bands) - 16"),
    ("fused_kernel.cuh", "shared_memory + table_bytes(a.bands)", "shared_memory + table_bytes(a.bands) + 16"),
    ("fused_kernel.cuh", "(weights + a.bands.weights)", "(weights + a.bands.weights - 2)"),
    ("fused_kernel.cuh", "clear_partials<S::lanes>(lane, a.bands, shared.partials());", ""),
    ("fused_kernel.cuh", "a.partials_at};", "a.partials_at - 16};"),
    ("fused_kernel.cuh", "gridDim.x * fused_warps * warp_frames", "gridDim.x * warp_frames"),
    ("fused_kernel.cuh", "threadIdx.x / 32) * warp_frames", "threadIdx.x / 32)"),
    ("fused_kernel.cuh", "offset_of(frame + step)", "offset_of(frame)"),
    ("fused_kernel.cuh", "offset_of(base + in_warp)", "offset_of(base)"),
    ("any_size_kernels.cu", "+ warp * a.warp_bytes", "+ warp * (a.warp_bytes - 16)"),
    ("any_size_kernels.cu", "bins.partials + a.bands.partials();", "bins.partials + a.bands.partials() - 1;"),
    ("any_size_kernels.cu", "clear_partials<32>(lane, a.bands, bins.partials);", ""),
    ("any_size_kernels.cu", "(blockIdx.x * warps + warp) * a.bands", "(blockIdx.x * warps) * a.bands"),
    ("any_size_kernels.cu", "a.chunk.first_frame + i);\n    AnySize::window", "i);\n    AnySize::window"),
    ("any_size_kernels.cu", "a.rows, a.chunk.first_frame + i)", "a.rows, i)"),
    ("any_size_kernels.cu", "step = gridDim.x * window_warps", "step = window_warps"),
    ("any_size_kernels.cu", "step = gridDim.x * warps", "step = gridDim.x"),
    ("condition_kernel.cu", "step = gridDim.x * condition_warps", "step = gridDim.x"),
    ("condition_kernel.cu", "sums[condition_warps][Condition::lanes]", "sums[1][Condition::lanes * condition_warps]"),
    ("condition_kernel.cu", "a.frame_offsets[i] = i * stride", "a.frame_offsets[i] = i * (stride - 1)"),
    # The launcher: parts of memory, sizes, queries to the device.
    ("mel_kernels.cu", "static_cast<int>(most_block_bytes)", "static_cast<int>(48 << 10)"),
    ("mel_kernels.cu", "pointers, bytes_, stream", "pointers, bytes_ - 16, stream"),
    ("mel_kernels.cu", "(launch.capacity + of_block - 1) / of_block", "launch.capacity / of_block"),
    ("mel_kernels.cu", "(work + frame_bytes_);\n    std::byte* const behind", "(work + frame_bytes_ - 256);\n    std::byte* const behind"),
    ("mel_kernels.cu", "work + frame_bytes_ + spectrum_bytes_;", "work + frame_bytes_ + spectrum_bytes_ - 256;"),
    ("mel_kernels.cu", "behind + partial_bytes_), \"cufftSetWorkArea\"", "behind + partial_bytes_ + 256), \"cufftSetWorkArea\""),
    ("mel_kernels.cu", "behind + partial_bytes_), \"cufftSetWorkArea\"", "behind), \"cufftSetWorkArea\""),
    ("mel_kernels.cu", "aligned(std::size_t{any_size_blocks} *", "aligned(std::size_t{1} *"),
    ("mel_kernels.cu", "check_cufft(fft.set_stream(plan_, stream), \"cufftSetStream\");", ""),
    ("mel_kernels.cu", "first += chunk_)", "first += chunk_ + 1)"),
    ("mel_kernels.cu", "std::min(chunk_, launch.capacity - first)", "chunk_"),
    ("mel_kernels.cu", "(work + frame_bytes_);\n    launch_condition", "(work + frame_bytes_ - 256);\n    launch_condition"),
    ("mel_kernels.cu", "next.work = work + work_bytes();", "next.work = work;"),
    ("mel_kernels.cu", "next.offsets = offsets;", ""),
    # Streams: order, waiting, recording.
    ("cuda_gpu.cpp", "must(cudaStreamSynchronize(nullptr), \"cudaStreamSynchronize\", device_);", ""),
    ("cuda_gpu.cpp", "must(cudaStreamSynchronize(stream_), \"cudaStreamSynchronize\", device_);", ""),
    ("cuda_gpu.cpp", "    cudaStreamSynchronize(stream_);\n    release();", "    release();"),
    ("cuda_gpu.cpp", "if (is_recording_)", "if (false)"),
    ("cuda_gpu.cpp", "cudaStreamNonBlocking)", "0)"),
    ("slot.cpp", "  s.mark(1);\n", ""),
    ("slot.cpp", "offsets_at + batch.frames * sizeof(std::uint32_t));", "offsets_at + (batch.frames - 1) * sizeof(std::uint32_t));"),
    ("slot.cpp", "m.device_in + SlotMemory::header;", "m.device_in + SlotMemory::header + 16;"),
    ("slot.cpp", "put_offsets_behind(recorded_.sample_bytes);", "put_offsets_behind(sample_bytes);"),
    ("slot.cpp", "      put_offsets_behind(sample_bytes);\n", ""),
    ("slot.cpp", "device_.row_bytes(batch.frames));\n  s.mark", "device_.row_bytes(batch.frames - 1));\n  s.mark"),
    ("slot.cpp", "  s.copy_out(m.host_out, m.device_out, device_.row_bytes(batch.frames));\n  s.mark(3);\n  s.call([](void* slot) { static_cast<Slot*>(slot)->done(); }, this);", "  s.call([](void* slot) { static_cast<Slot*>(slot)->done(); }, this);\n  s.copy_out(m.host_out, m.device_out, device_.row_bytes(batch.frames));\n  s.mark(3);"),
    ("slot.cpp", "work.scratch = m.scratch;", "work.scratch = m.device_in;"),
    ("slot.cpp", "work.rows = m.device_out;", "work.rows = m.device_in;"),
    ("slot.cpp", "Slot::~Slot() { finish(); }", "Slot::~Slot() {}"),
]
# Changes that no test here can detect, with the reason.
UNSEEN = {
    "any_size_kernels.cu:68: without":
        "between two frames a lane overwrites its own bins alone, and partials only behind the barrier of the bins; where "
        "bins have no room, a chunk has no more frames than there are warps",
    "base < n_frames; base += step) -> for (; base < n_frames + 1":
        "a round behind the last frame reads the last frame's samples and writes no row: it costs time alone",
    "i < end; i += threads) -> i < end + 65": "the spectra lie behind, and the transform writes them next",
    'behind + partial_bytes_), "cufftSetWorkArea" -> behind), ':
        "partials are written after the transform and read before the next one: the part of its own costs memory alone",
}
# Groups of test programs that run together, the quickest first; later ones take longer to link.
RUNS = [["melflow_cuda_runtime_tests", "melflow_emulated_tests"], ["melflow_jobs_tests"]]
FILTERS = {"melflow_jobs_tests": "--source-file=*/jobs/cuda*"}
SEEN_BY_JOBS = ["slot.cpp", "cuda_gpu.cpp"]


class Mutant:
    def __init__(self, name, at, what, text):
        self.name, self.text = name, text
        self.what = f"{name}:{text.count(chr(10), 0, at) + 1}: {what}"
        self.key = hashlib.sha256((name + text).encode()).hexdigest()[:16]
        self.why_unseen = next((why for part, why in UNSEEN.items() if part in self.what), None)


def mutants():
    for name in BARRIERS:
        text = (SOURCE / "cuda" / name).read_text()
        for at in re.finditer(r"__sync(warp|threads)\(\);", text):
            yield Mutant(name, at.start(), f"without {at.group()}", text[: at.start()] + text[at.end() :])
    for name, old, new in CHANGES:
        text = (SOURCE / "cuda" / name).read_text()
        if text.count(old) != 1:
            sys.exit(f"mutations.py: {old!r} is {text.count(old)} times in {name}")
        short = " ".join(new.split()) or "nothing"
        yield Mutant(name, text.index(old), f"{' '.join(old.split())} -> {short}", text.replace(old, new))


class Build:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.place = self.folder / "mutation"  # always the same path, for compiler caches
        (self.place / "cuda").mkdir(parents=True, exist_ok=True)
        commands = json.loads((self.folder / "compile_commands.json").read_text())
        # Of the commands for a file of cuda/, takes the first that is for the emulated device or for none.
        self.compile = {}
        for c in commands:
            path = pathlib.Path(c["file"])
            is_ours = "/melflow_emulated.dir/" in c["command"] or "/melflow_cuda_host.dir/" in c["command"]
            if path.parent == SOURCE / "cuda" and is_ours:
                self.compile[path.name] = c["command"]
        self.link, self.cases = {}, {}
        self.environment = dict(os.environ)
        self.wrapper = []
        if "MELFLOW_SANITIZE:STRING=thread" in (self.folder / "CMakeCache.txt").read_text():
            self.environment["TSAN_OPTIONS"] = f"halt_on_error=1 suppressions={SOURCE}/tests/support/tsan.supp"
            self.wrapper = ["setarch", platform.machine(), "--addr-no-randomize"]  # see tests/run.sh

    def link_command(self, program):
        if program not in self.link:
            self.link[program] = subprocess.run(["ninja", "-t", "commands", program], cwd=self.folder, check=True,
                                                text=True, capture_output=True).stdout.splitlines()[-1]
        return self.link[program]

    def cases_of(self, program):
        """Its tests and the seconds that each takes as it is, which are kept beside the program."""
        if program in self.cases:
            return self.cases[program]
        path = next(p for p in (self.folder / "bin" / program, self.folder / "tests" / program) if p.exists())
        kept = self.place / f"{program}.json"
        if not kept.exists() or kept.stat().st_mtime < path.stat().st_mtime:
            done = self.run([path, "-d", *([FILTERS[program]] if program in FILTERS else [])], None)
            if done.returncode not in (0, 77):
                sys.exit(f"mutations.py: {path} fails as it is:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
            kept.write_text(json.dumps([[float(s), name] for s, name in re.findall(r"^([0-9.]+) s: (.*)$", done.stdout, re.M)]))
        self.cases[program] = json.loads(kept.read_text())
        return self.cases[program]

    def run(self, command, limit):
        return subprocess.run([*self.wrapper, *map(str, command)], cwd=self.folder, env=self.environment, text=True,
                              errors="replace", capture_output=True, timeout=limit)

    def units(self, name):
        """Which files are compiled again where this one has changed."""
        if name in self.compile:
            return [name]
        # The kernels of all sizes share their code: two sizes stand for them, one with a frame per half warp.
        return ["fused_256.cu", "fused_512.cu"]

    def see(self, mutant):
        """Who notices it."""
        for old in (self.place / "cuda").iterdir():
            old.unlink()
        (self.place / "cuda" / mutant.name).write_text(mutant.text)
        objects, compilers = {}, []
        for unit in self.units(mutant.name):
            out = f"{self.place}/{unit}.o"
            command = shlex.split(self.compile[unit])
            was = command[command.index("-o") + 1]
            command[command.index("-o") + 1] = out
            command[-1] = str(self.place / "cuda" / unit) if unit == mutant.name else command[-1]
            compiler = next(i for i, c in enumerate(command) if "++" in pathlib.Path(c).name)
            command[compiler + 1 : compiler + 1] = ["-I", str(self.place)]
            compilers.append(subprocess.Popen([*command, "-O1"], cwd=self.folder, stderr=subprocess.DEVNULL))
            objects[was] = out
        if any([c.wait() != 0 for c in compilers]):
            return "does not compile"
        for programs in RUNS if mutant.name in SEEN_BY_JOBS else RUNS[:1]:
            for program in programs:
                link = self.link_command(program)
                for was, out in objects.items():
                    # Objects go before an archive that contains the original, so that the original is not linked.
                    link = link.replace(f" {was} ", f" {out} ") if f" {was} " in link else link.replace(" -o ", f" {out} -o ", 1)
                link = re.sub(r"-o \S+", f"-o {self.place}/{program}", link, count=1)
                subprocess.run(link, cwd=self.folder, shell=True, check=True, capture_output=True)
            for seconds, program, case in sorted([s, p, c] for p in programs for s, c in self.cases_of(p)):
                # A comma would separate two names.
                command = [self.place / program, "--abort-after=1", f"--test-case={case.replace(',', '?')}"]
                try:
                    done = self.run(command, 30 + 10 * seconds)
                except subprocess.TimeoutExpired:
                    return f"{case} (does not end)"
                if done.returncode not in (0, 77):
                    return f"{case} (data race)" if "data race" in done.stderr else case
        return None


def results(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return {r["key"]: r["seen"] for r in map(json.loads, lines)}


def table(known):
    counts, rest = collections.defaultdict(collections.Counter), []
    for mutant in mutants():
        seen = known.get(mutant.key, "not run")
        kind = ("not seen" if seen is None else seen if seen in ("not run", "does not compile") else
                "race" if seen.endswith("(data race)") else "value")
        for name in (mutant.name, "all"):
            counts[name][kind] += 1
        if kind == "not seen":
            rest.append(f"- {mutant.what}: {mutant.why_unseen or 'not explained'}")
    print("| file | changes | seen in values or calls | seen as a race | not seen | does not compile | not run |\n|---|---|---|---|---|---|---|")
    for name in sorted(counts, key=lambda n: (n == "all", n)):
        c = counts[name]
        print(f"| {name} | {sum(c.values())} | {c['value']} | {c['race']} | {c['not seen']} | {c['does not compile']} | {c['not run']} |")
    print("", *rest, sep="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("builds", nargs="*", default=["build/release", "build/tsan"])
    parser.add_argument("--only", default="", help="changes that have this in their names")
    parser.add_argument("--again", action="store_true", help="also those that were seen before")
    parser.add_argument("--table", action="store_true", help="print what is known")
    arguments = parser.parse_args()
    path = pathlib.Path(arguments.builds[0], "mutations.jsonl").resolve()
    if arguments.table:
        return table(results(path))
    builds = [Build(b) for b in arguments.builds]
    count = missed = 0
    for mutant in sorted(mutants(), key=lambda m: m.why_unseen is not None):  # those take longest
        if arguments.only not in mutant.what or (not arguments.again and results(path).get(mutant.key)):
            continue
        count += 1
        begin = time.monotonic()
        seen = next((w for w in (b.see(mutant) for b in builds) if w), None)
        missed += seen is None and mutant.why_unseen is None
        with path.open("a") as lines:
            lines.write(json.dumps({"key": mutant.key, "what": mutant.what, "seen": seen}) + "\n")
        said = seen or "NOT SEEN" + (f": {mutant.why_unseen}" if mutant.why_unseen else "")
        print(f"{mutant.what} | {said} | {time.monotonic() - begin:.0f} s", flush=True)
    print(f"{count} changes were tried, {missed} of them are neither seen nor listed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
