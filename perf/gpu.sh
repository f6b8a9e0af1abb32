#!/usr/bin/env bash
# The whole GPU check on one machine: runs the tests on the device, measures kernels, copies and whole
# jobs with either backend, compares rows with the processor's, checks memory, measures torchaudio, and
# derives decisions from the figures, in a table.
#
# In:  perf/gpu.sh [--bundle FILE] [--out DIR] [--work DIR] [--python PATH] [--steps LIST]
#                  [--seconds N] [--limit N] [--add] [--quick] [--cpu]
#        --bundle FILE  an archive of the target `bundle`, or the folder where it was unpacked; by
#                       default it is built first (inside a bundle: the bundle itself)
#        --out DIR      for the results; default perf/results
#        --work DIR     for recordings and outputs, 7 GB; default a folder of its own, removed at the
#                       end: in memory where there is plenty, else in $TMPDIR
#        --python PATH  with torch and torchaudio; default python3
#        --steps LIST   only these, separated by commas: corpus, tests, bench, jobs, parity, profile,
#                       sanitizer, torchaudio; without `corpus`, DIR of --work must have the recordings
#        --seconds N    for all steps together; default 470
#        --limit N      seconds for a step, in place of its own limit
#        --add          adds to the results of earlier calls instead of replacing them
#        --quick        less work: shows that everything runs, but gives no figures to quote
#        --cpu          without a device: the recordings, and whole jobs on the processor
# Out: DIR/gpu-DEVICE.md, .jsonl (a line per figure) and .log, each extended as soon as something is
#      known: an interruption loses only the steps that were not done, and the table covers the rest.
#      Progress on stderr. Exit status 1 when a step failed, 77 with one sentence where there is no
#      device. A step has a time limit, and one that fails or is late does not stop the others.
# cuFFT is not in a bundle: MELFLOW_CUFFT can name its folder; without cuFFT, its tests are omitted.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die() {
  echo "gpu.sh: $*" >&2
  exit 2
}

bundle='' work='' out=$here/results wanted='' total_seconds=470 most_seconds='' cpu_only=0 adds=0
export PYTHON=python3 QUICK=0 BACKENDS='cpu cuda'
while [[ $# -gt 0 ]]; do
  case $1 in
    --bundle | --out | --work | --python | --steps | --seconds | --limit)
      [[ $# -gt 1 ]] || die "$1 takes a value"
      case $1 in
        --bundle) bundle=$2 ;;
        --out) out=$2 ;;
        --work) work=$2 ;;
        --python) PYTHON=$2 ;;
        --steps) wanted=,$2, ;;
        --seconds) total_seconds=$2 ;;
        --limit) most_seconds=$2 ;;
      esac
      shift
      ;;
    --add) adds=1 ;;
    --quick) QUICK=1 ;;
    --cpu) cpu_only=1 BACKENDS=cpu ;;
    -h | --help)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"
      exit 0
      ;;
    *) die "there is no option $1; --help has them" ;;
  esac
  shift
done

# ---- working folder and cleanup

child='' holder='' is_quick=$QUICK
. "$here/programs.sh"
make_work gpu 7
cleanup() {
  # A step and its child processes form a process group.
  if [[ -n $child ]]; then
    kill -- "-$child" 2>/dev/null || true
    wait "$child" || true
    kill -KILL -- "-$child" 2>/dev/null || true
  fi
  [[ -z $holder ]] || kill "$holder" 2>/dev/null || true
  if [[ $made_work == 1 ]]; then rm -rf "$work"; fi
}
trap cleanup EXIT
trap 'exit 130' HUP INT TERM

# ---- programs

use_bundle melflow_gpu_bench
begin=$SECONDS

cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
export HAS_CUFFT=1
if [[ $cpu_only == 1 ]]; then
  devices=$'\t'$cpu wanted=${wanted:-,corpus,jobs,}
else
  devices=$(timeout 60 "$BIN/melflow_gpu_bench" --list) || {
    status=$?
    if [[ $status == 124 ]]; then echo 'gpu.sh: the driver did not answer in 60 s' >&2; fi
    exit $status
  }
fi
device=$(head -n 1 <<<"$devices" | cut -f 2)
kind=gpu
if [[ $cpu_only == 1 ]]; then kind=cpu; fi
name=$kind-$(tr -cs '[:alnum:]' '-' <<<"$device" | tr '[:upper:]' '[:lower:]' | sed 's/^-//;s/-$//')
mkdir -p "$out"
out=$(cd "$out" && pwd)
md=$out/$name.md log=$out/$name.log
export WORK=$work HERE=$here LINES_OUT=$out/$name.jsonl FIRST_DEVICE=${devices%%$'\t'*}
[[ $adds == 1 ]] || rm -f "$md" "$log" "$LINES_OUT"
touch "$log" "$LINES_OUT"
echo "gpu.sh: $device; results in $md" >&2

if [[ $cpu_only == 0 ]]; then
  # Finds cuFFT where the program would not look: in a Python wheel.
  if [[ -z ${MELFLOW_CUFFT:-} ]] && command -v "$PYTHON" >/dev/null; then
    packages=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' || true)
    for folder in "$packages"/nvidia/*/lib; do
      if compgen -G "$folder/libcufft.so.1*" >/dev/null; then export MELFLOW_CUFFT=$folder; fi
    done
  fi
  cufft=$(timeout 60 "$BIN/melflow_gpu_bench" --cufft) || HAS_CUFFT=0
  # Keeps the devices open in one program throughout, so that they need not wake up for each other
  # program; not where a device can be open in only one program at a time.
  mode=$(timeout 30 nvidia-smi --query-gpu=compute_mode --format=csv,noheader 2>>"$log" | sort -u) || mode=''
  if [[ -z $mode || $mode == Default ]]; then
    rm -f "$work/hold" # left by an earlier call
    mkfifo "$work/hold"
    "$BIN/melflow_gpu_bench" --hold <"$work/hold" >>"$log" 2>&1 &
    holder=$!
    exec 9>"$work/hold"
  fi
fi

# ---- results, added to existing ones

{
  if [[ $cpu_only == 1 ]]; then echo "# Without a device: $device"; else echo "# GPU check: $device"; fi
  echo
  echo "$("$BIN/melflow" --version | head -n 1); $cpu, $(nproc) cores; $(date -u '+%Y-%m-%d %H:%M') UTC;" \
    "files on $(df -PT "$work" | awk 'NR == 2 { print $2 }')."
  if [[ $QUICK == 1 ]]; then echo "Run with --quick: not figures to quote."; fi
  if [[ $HAS_CUFFT == 0 ]]; then echo "Without cuFFT: $cufft"; fi
  if [[ $cpu_only == 0 ]]; then
    if [[ -n $holder ]]; then echo 'One program keeps the devices open all the time.'; else echo "Compute mode: $mode."; fi
    printf '\n| device | name | architecture | memory [MiB] |\n|---|---|---|---|\n'
    sed 's/\t/ | /g;s/^/| /;s/$/ |/' <<<"$devices"
    if command -v nvidia-smi >/dev/null; then
      echo
      timeout 30 nvidia-smi --format=csv --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,power.limit,pcie.link.gen.max,pcie.link.width.max |
        sed 's/^/    /' || true
    fi
  fi
} >>"$md"

failed=() decided=0
decide() {
  [[ $decided == 0 ]] || return 0
  decided=1
  {
    printf '\n## What follows\n\n'
    "$BIN/melflow_gpu_bench" --decide "$LINES_OUT" 2>>"$log" || true
  } >>"$md"
}
stopped() {
  printf '\n_Stopped here._\n' >>"$md"
  decide
  exit 130
}
trap stopped HUP INT TERM

# step NAME LIMIT TITLE: runs a step of steps.sh for at most LIMIT seconds. Its exit status 77 means
# that its requirements are missing.
step() {
  local name=$1 limit=$2 title=$3 status=0 from=$SECONDS left state
  [[ -z $wanted || $wanted == *,$name,* ]] || return 0
  left=$((total_seconds - (SECONDS - begin)))
  limit=${most_seconds:-$limit}
  if [[ $left -lt $limit ]]; then limit=$left; fi
  printf '\n## %s\n\n' "$title" >>"$md"
  printf 'gpu.sh: %s ... ' "$title" >&2
  if [[ $limit -lt 1 ]]; then
    state='failed: no time was left'
  else
    echo "== $name" >>"$log"
    set -m
    # 9>&-: the devices are kept open by this script, not by leftovers of a step.
    timeout -k 5 "$limit" bash "$here/gpu/steps.sh" "$name" >>"$md" 2>>"$log" </dev/null 9>&- &
    child=$!
    set +m
    wait "$child" || status=$?
    child=''
    case $status in
      0) state=ok ;;
      77) state="left out: $(tail -n 1 "$log")" ;;
      124 | 137) state="failed: not done after $limit s" ;;
      *) state="failed: $(tail -n 1 "$log")" ;;
    esac
  fi
  printf '\n_%s; %d s_\n' "$state" $((SECONDS - from)) >>"$md"
  printf '%s (%d s)\n' "$state" $((SECONDS - from)) >&2
  printf '{"kind": "step", "step": "%s", "state": "%s", "seconds": %d}\n' "$name" \
    "$(tr -d '\000-\037"\\' <<<"$state")" $((SECONDS - from)) >>"$LINES_OUT"
  # A rival that cannot run is only a warning.
  if [[ $state == failed* && $name != torchaudio ]]; then failed+=("$name"); fi
}

# The most valuable steps come first: there may be no time for the rest.
step corpus 60 'Recordings'
step tests 90 'Tests on the device'
step bench 120 'Copies, kernels, slots'
step jobs 120 'Whole jobs'
step parity 90 'Rows of all presets, against the processor'
step profile 60 'Where the time of the fused kernels goes'
step sanitizer 75 'compute-sanitizer on small tests'
step torchaudio 90 'torchaudio on the same device'
decide

echo "gpu.sh: $md, $((SECONDS - begin)) s" >&2
if [[ ${#failed[@]} -gt 0 ]]; then
  echo "gpu.sh: failed: ${failed[*]}; $log says more" >&2
  exit 1
fi
