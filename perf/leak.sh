#!/usr/bin/env bash
# The two-stage job of 39,563 recordings: melflow against the same work fused by hand, warm.
#
# In:  perf/leak.sh [--runs N] [--files N] [DIR]     default: 5 rounds, 39563 files, DIR build/perf
#        DIR takes 3.3 GB of input (kept, and used again) and 1.2 GB of output (made anew each run)
# Out: a Markdown table on stdout, the same and more in build/perf/leak.json, progress on stderr.
#      Exit status 1 when a run fails, or the output does not have exactly 237 rows a file.
set -euo pipefail

runs=5 files=39563 dir=
while [[ $# -gt 0 ]]; do
  case $1 in
    --runs | --files)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "leak: $1 takes a positive number" >&2; exit 2; }
      [[ $1 == --runs ]] && runs=$2 || files=$2
      shift
      ;;
    -*)
      sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
    *) dir=$1 ;;
  esac
  shift
done

command -v python3 >/dev/null || { echo "leak: python3 is needed to measure" >&2; exit 1; }
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "${dir:-$repository/build/perf}" "$repository/build/perf"
dir=$(cd "${dir:-$repository/build/perf}" && pwd)
cd "$repository"
bin=$repository/build/release/bin
json=$repository/build/perf/leak.json

cmake --preset release -DMELFLOW_PERF=ON >&2
cmake --build --preset release >&2

# One folder for each size: the generator never mixes two corpora.
corpus=$dir/leak_corpus
[[ $files == 39563 ]] || corpus=$dir/leak_corpus_$files
"$bin/melflow_make_corpus" --out "$corpus" --files "$files" --rate 4096 --seconds 10 >&2
find "$corpus" -name '*.wav' -print0 | xargs -0 cat >/dev/null # into the page cache

output=$dir/leak_output.h5
export DATA=$corpus OUT=$output
rival=$bin/melflow_hand_fused
python3 perf/measure.py --runs "$runs" --fresh "$output" --json "$json" \
  "hand-fused, real FFT=$(printf '%q ' "$rival" --fft r2c "$corpus" "$output")" \
  "hand-fused, paired FFT=$(printf '%q ' "$rival" --fft pair "$corpus" "$output")" \
  "melflow=$(printf '%q ' "$bin/melflow" run config/pipelines/leak_two_stage.yaml --quiet)"

# melflow ran last: its output is there to be checked.
"$bin/melflow" inspect --json "$output" | python3 perf/leak_report.py "$json" "$files"
rm -f "$output"
