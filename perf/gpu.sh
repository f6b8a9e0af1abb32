#!/usr/bin/env bash
# The whole GPU check on one machine: tests on the device, rows compared with the processor's,
# memory checks, kernels and copies measured, whole jobs with either backend, torchaudio beside them.
#
# In:  perf/gpu.sh [--bundle FILE] [--out DIR] [--work DIR] [--python PATH] [--quick]
#        --bundle FILE  an archive of the target `bundle`, or the folder it was unpacked to; without,
#                       it is built first (inside a bundle: its own programs)
#        --out DIR      for the results; default perf/results
#        --work DIR     for recordings and outputs, 7 GB; default a folder of its own in $TMPDIR,
#                       removed at the end
#        --python PATH  with torch and torchaudio; default python3
#        --quick        small and few: shows that everything runs, gives no figures to quote
# Out: DIR/gpu-DEVICE.md and .json, DIR/gpu-DEVICE-logs/; progress on stderr. Exit status 1 when a
#      step failed, 77 with one sentence where there is no device. Takes less than 8 minutes beside
#      the build: a step has a time limit, and one that fails or is late does not stop the others.
# cuFFT is not in a bundle: MELFLOW_CUFFT can name its folder; without it what needs it is left out.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
total_seconds=470

die() {
  echo "gpu.sh: $*" >&2
  exit 2
}

bundle='' work='' out=$here/results
export PYTHON=python3 QUICK=0
while [[ $# -gt 0 ]]; do
  case $1 in
    --bundle | --out | --work | --python)
      [[ $# -gt 1 ]] || die "$1 takes a value"
      case $1 in
        --bundle) bundle=$2 ;;
        --out) out=$2 ;;
        --work) work=$2 ;;
        --python) PYTHON=$2 ;;
      esac
      shift
      ;;
    --quick) QUICK=1 ;;
    -h | --help)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"
      exit 0
      ;;
    *) die "there is no option $1; --help has them" ;;
  esac
  shift
done

# ---- programs

made_work=0
if [[ -z $work ]]; then
  work=$(mktemp -d "${TMPDIR:-/tmp}/melflow-gpu.XXXXXX")
  made_work=1
fi
mkdir -p "$work"
work=$(cd "$work" && pwd)
child=''
cleanup() {
  # A step and what it started are a process group of their own.
  [[ -z $child ]] || kill -- "-$child" 2>/dev/null || true
  if [[ $made_work == 1 ]]; then rm -rf "$work"; fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM

if [[ -z $bundle && -x $here/../bin/melflow_gpu_bench ]]; then
  bundle=$(cd "$here/.." && pwd)
elif [[ -z $bundle ]]; then
  echo "gpu.sh: no --bundle: building one first" >&2
  (
    cd "$here/.."
    cmake --preset release -DMELFLOW_CUDA=ON
    cmake --build --preset release --target bundle
  ) >&2
  bundles=("$here"/../build/release/melflow-bundle-*.tar.gz)
  bundle=${bundles[0]}
fi
if [[ -f $bundle ]]; then
  mkdir -p "$work/bundle"
  tar xzf "$bundle" -C "$work/bundle" --strip-components=1 || die "$bundle is no bundle"
  bundle=$work/bundle
fi
[[ -x $bundle/bin/melflow_gpu_bench ]] || die "$bundle holds no melflow_gpu_bench: is it a bundle?"
export BIN=$bundle/bin

devices=$("$BIN/melflow_gpu_bench" --list) || exit
device=$(head -n 1 <<<"$devices" | cut -f 2)
name=gpu-$(tr -cs '[:alnum:]' '-' <<<"$device" | tr '[:upper:]' '[:lower:]' | sed 's/^-//;s/-$//')

mkdir -p "$out/$name-logs"
out=$(cd "$out" && pwd)
export WORK=$work LOGS=$out/$name-logs HERE=$here
rm -f "$LOGS"/*
echo "gpu.sh: $device; results in $out/$name.md" >&2

# ---- cuFFT, where the program itself would not find it: a wheel of Python's
if [[ -z ${MELFLOW_CUFFT:-} ]] && command -v "$PYTHON" >/dev/null; then
  packages=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' || true)
  for folder in "$packages"/nvidia/*/lib; do
    if compgen -G "$folder/libcufft.so.1*" >/dev/null; then export MELFLOW_CUFFT=$folder; fi
  done
fi
export HAS_CUFFT=1
"$BIN/melflow_gpu_bench" --cufft >"$LOGS/cufft.txt" || HAS_CUFFT=0

# ---- steps

begin=$SECONDS failed=() rows=()
json_text() { tr -d '\000-\037' <<<"$1" | sed 's/\\/\\\\/g;s/"/\\"/g;s/^/"/;s/$/"/'; }

# step NAME LIMIT TITLE: a step of steps.sh with LIMIT seconds at most. Its exit status 77: what it
# needs is not here.
step() {
  local name=$1 limit=$2 title=$3 status=0 from=$SECONDS left state
  left=$((total_seconds - (SECONDS - begin)))
  if [[ $left -lt $limit ]]; then limit=$left; fi
  if [[ $limit -lt 1 ]]; then
    state='not run: no time was left'
  else
    printf 'gpu.sh: %s ... ' "$title" >&2
    set -m
    timeout -k 5 "$limit" bash "$here/gpu/steps.sh" "$name" >"$LOGS/$name.log" 2>&1 </dev/null &
    child=$!
    set +m
    wait "$child" || status=$?
    child=''
    case $status in
      0) state=ok ;;
      77) state="left out: $(tail -n 1 "$LOGS/$name.log")" ;;
      124 | 137) state="failed: not done after $limit s" ;;
      *) state="failed, exit status $status: $(tail -n 1 "$LOGS/$name.log")" ;;
    esac
    printf '%s (%d s)\n' "$state" $((SECONDS - from)) >&2
  fi
  # A rival that cannot run is a remark.
  if [[ ($state == failed* || $state == not*) && $name != torchaudio ]]; then failed+=("$name"); fi
  rows+=("$name|$title|$state|$((SECONDS - from))")
}

step corpus 90 'Recordings'
step tests 100 'Tests on the device'
step parity 120 'Rows of all presets, against the processor'
step sanitizer 70 'compute-sanitizer on small tests'
step bench 110 'Copies, kernels, lanes'
step jobs 150 'Whole jobs, cpu and cuda in turn'
step torchaudio 80 'torchaudio on the same device'

# ---- results

commit=$("$BIN/melflow" --version 2>/dev/null | head -n 1 || true)
cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
{
  echo "# GPU check: $device"
  echo
  echo "$commit; $cpu, $(nproc) cores; $(date -u '+%Y-%m-%d %H:%M') UTC."
  if [[ $QUICK == 1 ]]; then echo "Run with --quick: not figures to quote."; fi
  if [[ $HAS_CUFFT == 0 ]]; then echo "Without cuFFT: $(cat "$LOGS/cufft.txt")"; fi
  echo
  echo '| device | name | architecture | memory [MiB] |'
  echo '|---|---|---|---|'
  sed 's/\t/ | /g;s/^/| /;s/$/ |/' <<<"$devices"
  if [[ -s $LOGS/nvidia-smi.txt ]]; then
    echo
    sed 's/^/    /' "$LOGS/nvidia-smi.txt"
  fi
  echo
  echo '| step | | [s] |'
  echo '|---|---|---|'
  for row in "${rows[@]}"; do
    IFS='|' read -r _ title state seconds <<<"$row"
    echo "| $title | $state | $seconds |"
  done
  for row in "${rows[@]}"; do
    IFS='|' read -r step title state seconds <<<"$row"
    if [[ -s $LOGS/$step.md ]]; then
      printf '\n## %s\n\n' "$title"
      cat "$LOGS/$step.md"
    fi
  done
} >"$out/$name.md.part"
mv "$out/$name.md.part" "$out/$name.md"
{
  printf '{\n"device": %s,\n"quick": %s,\n' "$(json_text "$device")" \
    "$([[ $QUICK == 1 ]] && echo true || echo false)"
  printf '"version": %s,\n"cpu": %s,\n"cores": %s,\n"steps": {' "$(json_text "$commit")" \
    "$(json_text "$cpu")" "$(nproc)"
  comma=''
  for row in "${rows[@]}"; do
    IFS='|' read -r step title state seconds <<<"$row"
    printf '%s\n"%s": {"state": %s, "seconds": %s, "result": ' "$comma" "$step" \
      "$(json_text "$state")" "$seconds"
    if [[ -s $LOGS/$step.json ]]; then cat "$LOGS/$step.json"; else printf 'null'; fi
    printf '}'
    comma=,
  done
  printf '\n}\n}\n'
} >"$out/$name.json.part"
mv "$out/$name.json.part" "$out/$name.json"
echo "gpu.sh: $out/$name.md, $((SECONDS - begin)) s" >&2
if [[ ${#failed[@]} -gt 0 ]]; then
  echo "gpu.sh: failed: ${failed[*]}; logs in $LOGS" >&2
  exit 1
fi
