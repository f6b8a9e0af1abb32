#!/usr/bin/env bash
# Runs many random graphs (tests/pipeline/random_graph.h): compares rows, warnings and accounts with a
# computation without a graph, and checks edges, bounds, memory and times. The tests run 400 of these
# graphs; this script is for changes to the graph itself.
#
# In:  tests/long/random_graphs.sh [--count N] [--seed N] [--preset NAME]     default: 10000 from 1, release
#      --preset: asan or tsan for those builds.
# Out: the seed and the graph of each that failed, a summary, and exit status 0 when none failed.
#      The same seed gives the same graph: --seed N --count 1 reruns one.
set -euo pipefail

count=10000 seed=1 preset=release
usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; }
while [[ $# -gt 0 ]]; do
  case $1 in
    --count | --seed | --preset)
      [[ $# -gt 1 ]] || { echo "$1: a value is missing" >&2; exit 2; }
      declare "${1#--}=$2"
      shift 2
      ;;
    --help) usage; exit 0 ;;
    *) echo "$1: no such option; --help lists them" >&2; exit 2 ;;
  esac
done
for name in count seed; do
  [[ ${!name} =~ ^[0-9]{1,9}$ ]] || { echo "--$name: ${!name} is no number" >&2; exit 2; }
done

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=build/$preset/bin/melflow_pipeline_tests
if [[ ! -x $program ]]; then
  cmake --preset "$preset"
fi
cmake --build --preset "$preset" --target melflow_pipeline_tests

SECONDS=0 status=0
MELFLOW_RANDOM_GRAPHS=$count MELFLOW_RANDOM_SEED=$seed \
  "$program" --source-file='*random_graphs_test.cpp' || status=$?
echo "$count random graphs from seed $seed in $SECONDS s: $([[ $status -eq 0 ]] && echo all right || echo FAILED)"
exit "$status"
