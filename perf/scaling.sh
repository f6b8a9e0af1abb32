#!/usr/bin/env bash
# Measures how the two-stage job grows with the number of workers on one machine: melflow, the hand-fused
# program, decoding alone, and a copy, which reads the files and writes as many bytes of rows.
#
# In:  perf/scaling.sh [--bundle FILE] [--out DIR] [--work DIR] [--workers LIST] [--seconds N] [--limit N] [--quick]
#        --bundle FILE   as of gpu.sh, built first by default
#        --out DIR       for the results; default perf/results
#        --work DIR      for recordings and outputs; by default a folder of its own, removed at the end: in memory
#                        where there is plenty, else in $TMPDIR
#        --workers LIST  default 1,4,16, without those that have no core each (--quick: 1,2)
#        --seconds N     for each run of melflow: the list grows with the workers, by hard links; default 8
#        --limit N       seconds for all; what is left then is not run; default 230
#        --quick         0.2 s each: shows that everything runs
# Out: DIR/scaling-PROCESSOR.md and .jsonl (a line for each run); progress on stderr. Exit status 1 when a run failed.
# What is before the first file (starting, listing, plans) is apart. Cycles, instructions and cache misses are there
# where the machine counts them. With a CUDA device the largest number of workers runs with that backend, too.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() {
  echo "scaling.sh: $*" >&2
  exit 2
}

bundle='' work='' out=$here/results workers='' seconds=8 limit=230 is_quick=0
while [[ $# -gt 0 ]]; do
  case $1 in
    --bundle | --out | --work | --workers | --seconds | --limit)
      [[ $# -gt 1 ]] || die "$1 takes a value"
      declare "${1#--}=$2"
      shift
      ;;
    --quick) is_quick=1 seconds=0.2 ;;
    -h | --help)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"
      exit 0
      ;;
    *) die "there is no option $1; --help has them" ;;
  esac
  shift
done
if [[ -z $workers ]]; then
  workers=1,4,16
  if [[ $is_quick == 1 ]]; then workers=1,2; fi
fi
[[ $workers =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || die "--workers: $workers; write numbers such as 1,4,16"
[[ $seconds =~ ^[0-9]+(\.[0-9]+)?$ && $limit =~ ^[0-9]+$ ]] || die '--seconds and --limit take numbers'

. "$here/programs.sh"
make_work scaling 8
cleanup() {
  jobs -p | xargs -r kill 2>/dev/null || true
  if [[ $made_work == 1 ]]; then rm -rf "$work"; fi
}
trap cleanup EXIT
trap 'exit 130' HUP INT TERM
use_bundle melflow_decode_only
programs=(melflow decoding)
# A build without FFTW has no loop by hand.
if [[ -x $BIN/melflow_hand_fused ]]; then programs=(melflow hand-fused decoding copy); fi
mkdir -p "$out"
out=$(cd "$out" && pwd)
cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
name=scaling-$(tr -cs '[:alnum:]' '-' <<<"$cpu" | tr '[:upper:]' '[:lower:]' | sed 's/^-//;s/-$//')
md=$out/$name.md lines=$out/$name.jsonl
: >"$lines"

# ---- recordings: a part of them, and as many links to it as a run needs

part=20000 rows=30336 # bytes of a file's rows
if [[ $is_quick == 1 ]]; then part=200; elif [[ $(df -Pk "$work" | awk 'NR == 2 { print $4 }') -lt 12000000 ]]; then part=4000; fi
"$BIN/melflow_make_corpus" --out "$work/files/part_00000" --files "$part" --rate 4096 --seconds 10 --threads "$(nproc)" >&2
parts=1
# The output takes a third of what is free at most.
most=$(df -Pk "$work" | awk -v rows=$rows 'NR == 2 { print int($4 * 1024 / 3 / rows) }')
available=$(awk -v rows=$rows '$1 == "MemAvailable:" { print int($2 * 1024 / 3 / rows) }' /proc/meminfo)
if [[ $available -lt $most ]]; then most=$available; fi

# list_of FILES: makes the list at least so long.
list_of() {
  while ((parts * part < $1 && (parts + 1) * part <= most)); do
    cp -al "$work/files/part_00000" "$work/files/part_$(printf %05d "$parts")"
    parts=$((parts + 1))
  done
}

# ---- a run

value_of() { sed -n "s/^\(.* \)\{0,1\}$1=\([^ ]*\).*/\2/p" <<<"$2"; }
of_report() { sed -n "s/^ *\"$1\": *\([0-9.e+-]*\).*/\1/p" "$work/report.json" | head -n 1; }

# measured PROGRAM WORKERS: runs it once over the list; sets usage, start and took [s].
measured() {
  local said command
  rm -f "$work/rows" "$work/report.json"
  case $1 in
    melflow | cuda) command=(melflow run leak_two_stage --quiet --workers "$2" "--json=$work/report.json") ;;
    hand-fused) command=(melflow_hand_fused "$work/files" "$work/rows" --fft pair --threads "$2") ;;
    decoding) command=(melflow_decode_only "$work/files" --threads "$2") ;;
    copy) command=(melflow_hand_fused "$work/files" "$work/rows" --fft none --threads "$2") ;;
  esac
  if [[ $1 == cuda ]]; then command+=(--set mel.backend=cuda); fi
  said=$(DATA=$work/files OUT=$work/rows "$BIN/melflow_measure_child" "$work/usage" "$BIN/${command[0]}" "${command[@]:1}") || return 1
  usage=$(<"$work/usage")
  if [[ -f $work/report.json ]]; then
    took=$(awk "BEGIN { print $(of_report graph_seconds) + $(of_report finish_seconds) }")
  else
    took=$(awk "BEGIN { print $(value_of seconds "$said") - $(value_of start "$said") }")
  fi
  start=$(awk "BEGIN { print $(value_of wall "$usage") - $took }")
}

failed=0
# row PROGRAM WORKERS: measures it and adds a line to the results.
row() {
  if [[ $SECONDS -gt $limit ]]; then
    echo "scaling.sh: $1 with $2 workers: no time was left" >&2
    failed=1
    return
  fi
  if ! measured "$1" "$2"; then
    echo "scaling.sh: $1 with $2 workers failed" >&2
    failed=1
    return
  fi
  echo "scaling.sh: $1 with $2 workers: $((parts * part)) files in $took s" >&2
  {
    printf '{"program": "%s", "workers": %d, "files": %d, "start_seconds": %s, "seconds": %s' "$1" "$2" $((parts * part)) "$start" "$took"
    for key in user sys peak_kib cycles instructions cache_misses; do
      value=$(value_of $key "$usage")
      [[ -z $value ]] || printf ', "%s": %s' "$key" "$value"
    done
    printf '}\n'
  } >>"$lines"
}

has_device=0
if timeout 60 "$BIN/melflow_gpu_bench" --list >/dev/null 2>&1; then has_device=1; fi
last=0
for count in ${workers//,/ }; do
  if [[ $count -gt $(nproc) ]]; then
    echo "scaling.sh: $count workers are omitted: this machine has $(nproc) cores" >&2
    continue
  fi
  measured melflow "$count" || die "melflow failed with $count workers"
  list_of "$(awk "BEGIN { print int($seconds * $parts * $part / $took) }")"
  for program in "${programs[@]}"; do row "$program" "$count"; done
  last=$count
done
if [[ $has_device == 1 && $last -gt 0 ]]; then row cuda "$last"; fi

# ---- the table

{
  printf '# Workers: %s\n\n' "$cpu"
  echo "$("$BIN/melflow" --version | head -n 1); $(nproc) cores; $(date -u '+%Y-%m-%d %H:%M') UTC; files on $(df -PT "$work" | awk 'NR == 2 { print $2 }')."
  if [[ $is_quick == 1 ]]; then echo 'Run with --quick: not figures to quote.'; fi
  printf '\nThe two-stage job (files of 10 s at 4096 Hz, 237 rows each). Start: before the first file. µs: processor time of a file, of which sys\n'
  printf 'in the kernel; GHz: cycles in a second of processor time.\n\n'
  printf '| program | workers | files | start [s] | work [s] | files/s | ÷ fewest workers | µs a file | sys | GHz | instructions a cycle | cache misses a file |\n'
  printf '|---|---|---|---|---|---|---|---|---|---|---|---|\n'
  awk -F'[:,] *|}' '
    { split("", v)
      for (i = 1; i < NF; i += 2) { gsub(/[{" ]/, "", $i); gsub(/"/, "", $(i + 1)); v[$i] = $(i + 1) }
      rate = v["files"] / v["seconds"]; cpu = v["user"] + v["sys"]
      if (!(v["program"] in first)) first[v["program"]] = rate
      printf "| %s | %d | %d | %.2f | %.2f | %.0f | %.2f | %.1f | %.1f | ", v["program"], v["workers"], v["files"], v["start_seconds"],
        v["seconds"], rate, rate / first[v["program"]], 1e6 * cpu / v["files"], 1e6 * v["sys"] / v["files"]
      printf(v["cycles"] ? "%.2f | " : " | ", v["cycles"] / cpu / 1e9)
      printf(v["cycles"] ? "%.2f | " : " | ", v["cycles"] ? v["instructions"] / v["cycles"] : 0)
      printf(v["cache_misses"] ? "%.0f |\n" : " |\n", v["cache_misses"] / v["files"]) }' "$lines"
} >"$md"
echo "scaling.sh: $md, $SECONDS s" >&2
exit $failed
