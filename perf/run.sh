#!/usr/bin/env bash
# All benchmarks: builds the programs, makes the corpora, and measures melflow and its rivals in turn.
#
# In:  perf/run.sh [--runs N] [--jobs a,b] [--scale F] [--python PATH] [--recordings DIR] [--dir DIR]
#                  [--micro] [--million]
#        --runs N          measured rounds of every program, after a warm-up round; default 5
#        --jobs a,b        some of leak, builder, speech, real, music, long, tiny, write, growth,
#                          cores, settings, update; default all, none for --micro alone
#        --scale F         smaller corpora, 0.05 for a quick look; default 1
#        --python PATH     a Python with h5py, soundfile and any of the libraries in
#                          perf/rivals/requirements.txt; rivals whose library is missing are omitted
#                          with a warning
#        --recordings DIR  the demo's recordings; default melflow-demo/audio
#        --dir DIR         corpora and outputs; default build/perf. At scale 1: 9 GB, kept, and up to
#                          4 GB temporarily
#        --micro           also the micro-benchmarks (Debian: libbenchmark-dev)
#        --million         also a million files
# Out: Markdown tables on stdout and in DIR/results.md, all measurements in DIR/results.json, progress
#      on stderr. Exit status 1 when a program fails, makes a wrong number of rows, or features that
#      differ from melflow's.
set -euo pipefail

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
  exit 0
fi
command -v python3 >/dev/null || {
  echo "perf: python3 is needed to measure" >&2
  exit 1
}
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Options are checked before the build; paths are relative to the caller's folder.
python3 "$repository/perf/harness/main.py" --check "$@" || exit
targets=(melflow melflow_make_corpus melflow_hand_fused melflow_decode_only melflow_write_rows
  melflow_measure_child)
(
  cd "$repository"
  cmake --preset release -DMELFLOW_PERF=ON
  for argument in "$@"; do
    # Without google-benchmark this target does not exist; the run reports that.
    if [[ $argument == --micro && $(cmake --build --preset release --target help) == *melflow_micro:* ]]; then
      targets+=(melflow_micro)
    fi
  done
  cmake --build --preset release --target "${targets[@]}"
) >&2
exec python3 "$repository/perf/harness/main.py" "$@"
