#!/usr/bin/env bash
# Lists which lines of the kernels and their launcher the tests on the emulated device execute, by gcov.
#
# In:  lines.sh [BUILD]     default: build/release, built
# Out: a line per file of cuda/: executed lines in percent, their total, and the numbers of lines not executed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$(realpath "${1:-build/release}") folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 - "$build" "$folder" <<'PY'
import json, pathlib, re, shlex, subprocess, sys
build, folder = sys.argv[1:]
programs = ["melflow_emulated_tests", "melflow_cuda_runtime_tests"]
links = [subprocess.run(["ninja", "-t", "commands", p], cwd=build, check=True, text=True,
                        capture_output=True).stdout.splitlines()[-1] for p in programs]
for c in json.load(open(f"{build}/compile_commands.json")):
    path = pathlib.Path(c["file"])
    if "/melflow_emulated.dir/" not in c["command"] or path.suffix != ".cu":
        continue
    command = shlex.split(c["command"])
    at = command.index("-o") + 1
    out = f"{folder}/{path.stem}.o"
    links = [link.replace(f" {command[at]} ", f" {out} ") for link in links]
    command[at] = out
    subprocess.run([*command, "--coverage", "-O0"], cwd=build, check=True)
for program, link in zip(programs, links):
    link = re.sub(r"-o \S+", f"-o {folder}/{program} --coverage", link, count=1)
    subprocess.run(link, cwd=build, shell=True, check=True)
PY
# Coverage works although lanes take turns: one thread runs them all.
"$folder/melflow_emulated_tests" >/dev/null
"$folder/melflow_cuda_runtime_tests" >/dev/null
(cd "$folder" && gcov -r -s "$PWD" ./*.gcda >/dev/null 2>&1; gcov ./*.gcda >/dev/null 2>&1) || true
python3 - "$folder" <<'PY'
import collections, glob, os, sys
lines = collections.defaultdict(dict)
for name in glob.glob(f"{sys.argv[1]}/*.gcov"):
    source = None
    for text in open(name, errors="replace"):
        if text.count(":") < 2:
            continue
        count, number, rest = text.split(":", 2)
        if number.strip() == "0" and rest.startswith("Source:"):
            source = rest[7:].strip()
        count = count.strip()
        if source is None or count == "-" or not number.strip().isdigit() or int(number) == 0:
            continue
        path = os.path.relpath(source) if os.path.isabs(source) else source
        if path.startswith("cuda/") and path.endswith((".cu", ".cuh")):
            n = int(number)
            lines[path][n] = lines[path].get(n, False) or not count.startswith(("#", "="))
done = sum(sum(l.values()) for l in lines.values())
every = sum(map(len, lines.values()))
for path, all_lines in sorted(lines.items()):
    rest = [n for n, is_done in sorted(all_lines.items()) if not is_done]
    print(f"{path}: {100 * sum(all_lines.values()) / len(all_lines):.0f} % of {len(all_lines)}", f"not {rest}" if rest else "")
print(f"all: {100 * done / every:.1f} % of {every}")
PY
