"""Changes one line of the kernels, their launcher or what feeds them at a time, and looks whether a test sees it.

In:  mutations.py BUILD... [--only TEXT]
     BUILD: build/release, then build/tsan for what the first one does not see; each with melflow_emulated_tests and
     melflow_cuda_runtime_tests.
Out: a table, a line a change: what was changed, and which test saw it, or that none did. Exit status 1 when one was
     not seen that is not listed as such (UNSEEN).

The changed file stands before its own in the compiler's path; what includes it is compiled again, the test programs
are linked with that and run, the quick tests first.
"""

import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BARRIERS = ["fused_kernel.cuh", "any_size_kernels.cu", "condition_kernel.cu"]
# File, text that occurs once in it, replacement.
CHANGES = [
    # Bounds: which frames there are.
    ("fused_kernel.cuh", "min(frame, n_frames - 1)", "frame"),
    ("fused_kernel.cuh", "if (frame < n_frames) F::write", "F::write"),
    ("fused_kernel.cuh", "if (n_frames == 0) return;", ""),
    ("fused_kernel.cuh", "for (; base < n_frames; base += step)", "for (; base + 1 < n_frames; base += step)"),
    ("fused_kernel.cuh", "for (; base < n_frames; base += step)", "for (; base < n_frames + 1; base += step)"),
    ("fused_kernel.cuh", "base + step < n_frames)", "base + step + 1 < n_frames)"),
    ("fused_kernel.cuh", "i < a.bands.indices; i +=", "i < a.bands.indices - 1; i +="),
    ("fused_kernel.cuh", "i < a.bands.weights; i +=", "i < a.bands.weights - 1; i +="),
    ("any_size_kernels.cu", "n_frames <= chunk.first_frame ? 0 : min(", "min("),
    ("any_size_kernels.cu", "min(n_frames - chunk.first_frame, chunk.frames)", "n_frames - chunk.first_frame"),
    ("any_size_kernels.cu", "i < n; i += step) {\n    const auto* samples", "i + 1 < n; i += step) {\n    const auto* samples"),
    ("any_size_kernels.cu", "i < n; i += step) {\n    bins", "i + 1 < n; i += step) {\n    bins"),
    ("any_size_kernels.cu", "       i < end; i += threads)", "       i < 0; i += threads)"),
    ("any_size_kernels.cu", "       i < end; i += threads)", "       i < end + 65; i += threads)"),
    ("condition_kernel.cu", "i < n; i += step)", "i + 1 < n; i += step)"),
    ("condition_kernel.cu", "i < n; i += step)", "i < n + 1; i += step)"),
    # Places: of frames, samples and shared memory.
    ("fused_kernel.cuh", "+ group * a.frame_bytes", "+ group / 2 * a.frame_bytes"),
    ("fused_kernel.cuh", "shared_memory + table_bytes(a.bands)", "shared_memory + table_bytes(a.bands) - 16"),
    ("fused_kernel.cuh", "shared_memory + table_bytes(a.bands)", "shared_memory + table_bytes(a.bands) + 16"),
    ("fused_kernel.cuh", "(indices + a.bands.indices)", "(indices + a.bands.indices - 1)"),
    ("fused_kernel.cuh", "gridDim.x * fused_warps * warp_frames", "gridDim.x * warp_frames"),
    ("fused_kernel.cuh", "threadIdx.x / 32) * warp_frames", "threadIdx.x / 32)"),
    ("fused_kernel.cuh", "offset_of(frame + step)", "offset_of(frame)"),
    ("fused_kernel.cuh", "offset_of(base + in_warp)", "offset_of(base)"),
    ("any_size_kernels.cu", "+ warp * (s.n_bins + a.bands.partials())", "+ warp * s.n_bins"),
    ("any_size_kernels.cu", "bins.stored + s.n_bins;", "bins.stored + s.n_bins - 1;"),
    ("any_size_kernels.cu", "(blockIdx.x * warps + warp) * a.bands", "(blockIdx.x * warps) * a.bands"),
    ("any_size_kernels.cu", "a.chunk.first_frame + i);\n    AnySize::window", "i);\n    AnySize::window"),
    ("any_size_kernels.cu", "a.rows, a.chunk.first_frame + i)", "a.rows, i)"),
    ("any_size_kernels.cu", "step = gridDim.x * window_warps", "step = window_warps"),
    ("any_size_kernels.cu", "step = gridDim.x * warps", "step = gridDim.x"),
    ("condition_kernel.cu", "step = gridDim.x * condition_warps", "step = gridDim.x"),
    ("condition_kernel.cu", "sums[condition_warps][Condition::lanes]", "sums[1][Condition::lanes * condition_warps]"),
    ("condition_kernel.cu", "a.frame_offsets[i] = i * stride", "a.frame_offsets[i] = i * (stride - 1)"),
    # The launcher: parts of memory, sizes, what is asked of the device.
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
    # Streams: order, waiting, what is recorded.
    ("cuda_gpu.cpp", "must(cudaStreamSynchronize(nullptr), \"cudaStreamSynchronize\", device_);", ""),
    ("cuda_gpu.cpp", "must(cudaStreamSynchronize(stream_), \"cudaStreamSynchronize\", device_);", ""),
    ("cuda_gpu.cpp", "    cudaStreamSynchronize(stream_);\n    release();", "    release();"),
    ("cuda_gpu.cpp", "if (is_recording_)", "if (false)"),
    ("cuda_gpu.cpp", "cudaStreamNonBlocking)", "0)"),
    ("slot.cpp", "  s.mark(1);\n", ""),
    ("slot.cpp", "  s.copy_in(m.device_in + samples_at_, samples(), batch.sample_bytes);\n", ""),
    ("slot.cpp", "samples(), batch.sample_bytes);", "samples(), batch.sample_bytes - 2);"),
    ("slot.cpp", "SlotMemory::header + batch.frames * sizeof(std::uint32_t));", "SlotMemory::header + (batch.frames - 1) * sizeof(std::uint32_t));"),
    ("slot.cpp", "device_.row_bytes(batch.frames));\n  s.mark", "device_.row_bytes(batch.frames - 1));\n  s.mark"),
    ("slot.cpp", "  s.copy_out(m.host_out, m.device_out, device_.row_bytes(batch.frames));\n  s.mark(4);\n  s.call(reach<Phase::copied_out>, this);", "  s.call(reach<Phase::copied_out>, this);\n  s.copy_out(m.host_out, m.device_out, device_.row_bytes(batch.frames));\n  s.mark(4);"),
    ("slot.cpp", "work.scratch = m.scratch;", "work.scratch = m.device_in;"),
    ("slot.cpp", "work.rows = m.device_out;", "work.rows = m.device_in;"),
    ("slot.cpp", "Slot::~Slot() { finish(); }", "Slot::~Slot() {}"),
]
# What no test can see here, and why.
UNSEEN = {
    "any_size_kernels.cu:66: without":
        "between two frames a lane overwrites its own bins alone, and partials only behind the barrier of the bins; where "
        "bins have no room, a chunk has no more frames than there are warps",
}
# Programs and which of their tests, the quickest first.
RUNS = [
    ("melflow_cuda_runtime_tests", ["-tc=*recording holds*,*equal batches*,*copied in*"]),
    ("melflow_emulated_tests", ["-tc=*click*,*ends*,*column*,*conditioned*,*frame*,*graph*,*every type*,*silence*"]),
    ("melflow_cuda_runtime_tests", []),
    ("melflow_emulated_tests", []),
]


def mutants():
    for name in BARRIERS:
        text = (SOURCE / "cuda" / name).read_text()
        for at in re.finditer(r"__sync(warp|threads)\(\);", text):
            line = text.count("\n", 0, at.start()) + 1
            yield name, f"{name}:{line}: without {at.group()}", text[: at.start()] + text[at.end() :]
    for name, old, new in CHANGES:
        text = (SOURCE / "cuda" / name).read_text()
        if text.count(old) != 1:
            print(f"{name}: {text.count(old)} times: {old!r}", file=sys.stderr)
            continue
        line = text.count("\n", 0, text.index(old)) + 1
        short = " ".join(new.split()) or "nothing"
        yield name, f"{name}:{line}: {' '.join(old.split())} -> {short}", text.replace(old, new)


class Build:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        commands = json.loads((self.folder / "compile_commands.json").read_text())
        # Of a file of the room that is compiled for the emulated device and for none, the first.
        self.compile = {}
        for c in commands:
            path = pathlib.Path(c["file"])
            is_ours = "/melflow_emulated.dir/" in c["command"] or "/melflow_cuda_host.dir/" in c["command"]
            if path.parent == SOURCE / "cuda" and is_ours:
                self.compile[path.name] = c["command"]
        self.link = {}
        for program in {p for p, _ in RUNS}:
            lines = subprocess.run(["ninja", "-t", "commands", program], cwd=self.folder, check=True, text=True,
                                   capture_output=True).stdout.splitlines()
            self.link[program] = lines[-1]

    def units(self, name):
        """Which files are compiled again where this one has changed."""
        if name in self.compile:
            return [name]
        # A kernel of a size is that of all: two stand for them, one with a frame a half warp.
        return ["fused_256.cu", "fused_512.cu"]

    def see(self, name, text):
        """Who notices that `name` is `text`."""
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder) / "cuda"
            place.mkdir()
            (place / name).write_text(text)
            objects, compilers = {}, []
            for unit in self.units(name):
                out = f"{folder}/{unit}.o"
                command = shlex.split(self.compile[unit])
                was = command[command.index("-o") + 1]
                command[command.index("-o") + 1] = out
                command[-1] = str(place / unit) if unit == name else command[-1]
                compiler = next(i for i, c in enumerate(command) if "++" in pathlib.Path(c).name)
                command[compiler + 1 : compiler + 1] = ["-I", folder]
                compilers.append(subprocess.Popen([*command, "-O1"], cwd=self.folder, stderr=subprocess.DEVNULL))
                objects[was] = out
            if any([c.wait() != 0 for c in compilers]):
                return "the compiler"
            for program, filters in RUNS:
                link = self.link[program]
                for was, out in objects.items():
                    # What lies in an archive comes before it, so that the archive's is not taken.
                    link = link.replace(f" {was} ", f" {out} ") if f" {was} " in link else link.replace(" -o ", f" {out} -o ", 1)
                link = re.sub(r"-o \S+", f"-o {folder}/{program}", link, count=1)
                if not pathlib.Path(folder, program).exists():
                    subprocess.run(link, cwd=self.folder, shell=True, check=True, capture_output=True)
                try:
                    done = subprocess.run([f"{folder}/{program}", *filters], cwd=self.folder, text=True, errors="replace",
                                          capture_output=True, timeout=900)
                except subprocess.TimeoutExpired:
                    return f"{program}: does not end"
                if done.returncode != 0:
                    case = re.search(r"TEST CASE:\s+(.*)", done.stdout)
                    race = "data race" in done.stderr
                    return "a data race" if race else case.group(1) if case else (done.stderr.strip().splitlines() or ["?"])[0][:90]
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("builds", nargs="+")
    parser.add_argument("--only", default="", help="changes that have this in their names")
    arguments = parser.parse_args()
    builds = [Build(b) for b in arguments.builds]
    seen = count = missed = 0
    for name, what, text in mutants():
        if arguments.only not in what:
            continue
        count += 1
        who = next((w for w in (b.see(name, text) for b in builds) if w), None)
        seen += who is not None
        why = next((reason for part, reason in UNSEEN.items() if part in what), None)
        missed += who is None and why is None
        print(f"| {what} | {who or 'NOT SEEN' + (': ' + why if why else '')} |", flush=True)
    print(f"{seen} of {count} changes are seen, {count - seen - missed} are listed, {missed} are neither")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
