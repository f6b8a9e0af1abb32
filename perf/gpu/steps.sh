#!/usr/bin/env bash
# One step of perf/gpu.sh.
#
# In:  steps.sh NAME; from gpu.sh in the environment: BIN (programs), WORK (recordings, outputs),
#      LOGS (results), HERE (perf/), PYTHON, QUICK, HAS_CUFFT.
# Out: LOGS/NAME.md and, of steps with figures, LOGS/NAME.json. Exit status 1 when something failed
#      and 77 when what it needs is not here; the last line printed says what.
set -euo pipefail

step=$1
md=$LOGS/$step.md
json=$LOGS/$step.json.part  # named at the end: one that is not whole does not count
problems=0 last_problem='' what=''

problem() {
  echo "$*"
  problems=$((problems + 1))
  last_problem=$*
}
leave_out() {
  echo "$*"
  exit 77
}
finish() {
  if [[ -s $json ]]; then mv "$json" "${json%.part}"; fi
  if [[ $problems -gt 1 ]]; then last_problem="$problems checks, the last: $last_problem"; fi
  if [[ $problems -gt 0 ]]; then
    echo "$last_problem"
    exit 1
  fi
}

# What two backends may differ by: the limits of either against the definition in double precision,
# together (tests/support/kernel_checks.h). Of a frame's largest value; in dB, of levels within 60.
# Operands of 16 bits have noise at a share of the peak, so low levels have no limit in dB.
limit_linear() { case $1 in fp32) echo 2e-6 ;; fp16) echo 2.1e-3 ;; bf16) echo 1.6e-2 ;; esac; }
limit_db() { case $1 in fp32) echo 2e-3 ;; *) echo inf ;; esac; }

value_of() { sed -n "s/.*\\b$1=\\([^ ]*\\).*/\\1/p" <<<"$2"; }

do_corpus() {
  local files=39563 free
  free=$(df -Pk "$WORK" | awk 'NR == 2 { print $4 }')
  if [[ $QUICK == 1 ]]; then
    files=200
  elif [[ $free -lt 7000000 ]]; then
    files=4000
    echo "Only $((free / 1000000)) GB are free: the jobs get $files recordings." >"$md"
  fi
  local make=$BIN/melflow_make_corpus
  "$make" --out "$WORK/16000" --files 6 --rate 16000 --seconds-min 1 --seconds-max 5
  "$make" --out "$WORK/22050" --files 4 --rate 22050 --seconds-min 1 --seconds-max 4
  "$make" --out "$WORK/few" --files 16 --rate 4096 --seconds 10
  "$make" --out "$WORK/leak" --files "$files" --rate 4096 --seconds 10 --threads "$(nproc)"
  if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,power.limit,pcie.link.gen.max,pcie.link.width.max \
      --format=csv >"$LOGS/nvidia-smi.txt" || true
  fi
}

do_tests() {
  local status=0 tests=()
  if [[ $HAS_CUFFT == 0 ]]; then tests=('--test-case=*device: fused*,mel kernels:*'); fi
  "$BIN/melflow_device_tests" "${tests[@]}" 2>&1 | tee "$LOGS/tests.txt" || status=1
  {
    echo '```'
    grep -E 'at most|test cases:|assertions:' "$LOGS/tests.txt" | sed 's/^ *//'
    echo '```'
  } >"$md" || true
  if grep -q 'skipped, no CUDA device' "$LOGS/tests.txt"; then problem "the tests found no device"; fi
  if [[ $status != 0 ]]; then problem "$(grep 'test cases:' "$LOGS/tests.txt" || echo 'the tests ended early')"; fi
}

# run_preset PREFIX PRESET DATA BACKEND PATH OPERANDS STREAMS BATCH [ROWS STATISTICS]
run_preset() {
  OUT=$1 PRESET=$2 DATA=$3 BACKEND=$4 MEL_PATH=$5 OPERANDS=$6 STREAMS=$7 BATCH=$8 \
    ROWS=${9:-float32} STATISTICS=${10:-none} \
    "$BIN/melflow" run "$HERE/gpu/parity.yaml" --quiet
}

# compared A B OPTION...: prints the largest difference; a problem of $what where it is too large.
compared() {
  local line status=0
  line=$("$BIN/melflow_compare_rows" "$@" 2>"$WORK/said") || status=1
  value_of largest "$line"
  if [[ $status != 0 ]]; then
    echo "$what: $(sed 's/^melflow_compare_rows: //' "$WORK/said") (${2##*/})" >>"$WORK/problems"
  fi
}

# parity_of PRESET DATA KIND...: KIND is path/operands. A row of the table for each, and of JSON.
parity_of() {
  local preset=$1 data=$2 kind path operands linear db same
  shift 2
  what=$preset
  run_preset "$WORK/cpu_" "$preset" "$data" cpu auto fp32 3 2MiB || {
    echo "$what: the run on the processor failed" >>"$WORK/problems"
    return
  }
  for kind in "$@"; do
    path=${kind%/*} operands=${kind#*/}
    what="$preset, $kind"
    if ! run_preset "$WORK/cuda_" "$preset" "$data" cuda "$path" "$operands" 3 2MiB; then
      echo "$what: the run failed" >>"$WORK/problems"
      continue
    fi
    linear=$(compared "$WORK"/{cpu,cuda}_linear.h5 --most "$(limit_linear "$operands")")
    db=$(compared "$WORK"/{cpu,cuda}_levels.h5 --db --most "$(limit_db "$operands")")
    echo "| $preset | $path | $operands | $linear | $db |" >>"$md"
    printf '%s\n{"preset": "%s", "path": "%s", "operands": "%s", "of_peak": %s, "db": %s}' "$comma" \
      "$preset" "$path" "$operands" "$(number "$linear")" "$(number "$db")" >>"$json"
    comma=,
    [[ $kind == auto/fp32 ]] || continue
    # As it is, whatever its unit: a gross error only.
    compared "$WORK"/{cpu,cuda}_preset.h5 --most 0.05 >/dev/null
    # Other batches in other lanes: the same bytes.
    what="$preset, small batches"
    run_preset "$WORK/other_" "$preset" "$data" cuda auto fp32 1 48KiB ||
      echo "$what: the run failed" >>"$WORK/problems"
    for same in linear levels preset; do
      compared "$WORK"/{cuda,other}_$same.h5 --same >/dev/null
    done
  done
}

# rows_of PRESET DATA PATH: rows of 16 bits that the device rounded, and its float32 rows rounded by
# the sink, are the same bytes.
rows_of() {
  local preset=$1 data=$2 path=$3 type same
  # Kaldi's powers of 16-bit samples are beyond float16: such files fail, which the tests show.
  for type in float16 bfloat16; do
    [[ $type != float16 || $preset != kaldi* ]] || continue
    what="$preset, $path, rows in $type"
    if ! run_preset "$WORK/cuda_" "$preset" "$data" cuda "$path" fp32 3 2MiB "$type" none ||
      ! run_preset "$WORK/other_" "$preset" "$data" cuda "$path" fp32 3 2MiB "$type" all; then
      echo "$what: the run failed" >>"$WORK/problems"
      continue
    fi
    for same in linear levels preset; do
      compared "$WORK"/{cuda,other}_$same.h5 --same >/dev/null
    done
  done
}

do_parity() {
  local presets=(torchaudio kaldi kaldi_htk whisper whisper_large_v3 nemo speechbrain ast)
  local kinds=(auto/fp32 auto/fp16 auto/bf16) preset path comma=''
  : >"$WORK/problems"
  if [[ $HAS_CUFFT == 1 ]]; then kinds+=(cufft/fp32); fi
  if [[ $QUICK == 1 ]]; then presets=(torchaudio kaldi nemo); fi
  {
    echo '| preset | kernels | operands | of a band, over the frame'"'"'s peak | of a level within 60 dB [dB] |'
    echo '|---|---|---|---|---|'
  } >"$md"
  printf '[' >"$json"
  for preset in "${presets[@]}"; do parity_of "$preset" "$WORK/16000" "${kinds[@]}"; done
  for preset in librosa hifigan; do parity_of "$preset" "$WORK/22050" "${kinds[@]}"; done
  for path in "${kinds[@]}"; do
    if [[ $path == */fp32 ]]; then rows_of kaldi "$WORK/16000" "${path%/*}"; fi
  done
  printf '\n]\n' >>"$json"
  echo >>"$md"
  if [[ -s $WORK/problems ]]; then
    sed "s|$WORK/||g;s/^/- FAILED: /" "$WORK/problems" >>"$md"
    while read -r line; do problem "$line"; done < <(sed "s|$WORK/||g" "$WORK/problems")
  else
    echo 'Largest differences from the processor'"'"'s rows, all within their limits. Batches of 48 KiB on one' >>"$md"
    echo 'stream give the same bytes as those of 2 MiB on three; rows of 16 bits are the same bytes whether' >>"$md"
    echo 'the device rounds them or the sink.' >>"$md"
  fi
}

# A figure as JSON has it.
number() { if [[ $1 =~ ^[0-9.e+-]+$ ]]; then echo "$1"; else echo null; fi; }

do_sanitizer() {
  local sanitizer tool status program
  sanitizer=$(command -v compute-sanitizer || true)
  if [[ -z $sanitizer ]]; then
    for sanitizer in "${CUDA_HOME:-/usr/local/cuda}"/{bin,compute-sanitizer}/compute-sanitizer ''; do
      if [[ -x $sanitizer ]]; then break; fi
    done
  fi
  if [[ -z $sanitizer ]]; then leave_out 'there is no compute-sanitizer'; fi
  program=("$BIN/melflow_device_tests" '--test-case=*captured graph*,*every type*')
  if [[ $HAS_CUFFT == 0 ]]; then  # those tests take both paths
    program=("$BIN/melflow" run leak_two_stage --quiet --set mel.backend=cuda)
  fi
  : >"$md"
  for tool in memcheck racecheck synccheck; do
    status=0
    rm -f "$WORK/few.h5"
    DATA=$WORK/few OUT=$WORK/few.h5 timeout -k 2 25 "$sanitizer" --tool "$tool" --error-exitcode 9 \
      "${program[@]}" >"$LOGS/sanitizer-$tool.txt" 2>&1 || status=$?
    if grep -qi 'device not supported' "$LOGS/sanitizer-$tool.txt"; then
      leave_out 'compute-sanitizer does not support this device or system'
    fi
    case $status in
      0) echo "- $tool: nothing found" >>"$md" ;;
      124 | 137) echo "- $tool: not done after 25 s" >>"$md" ;;
      9)
        echo "- $tool: FAILED" >>"$md"
        problem "$tool: $(grep 'SUMMARY' "$LOGS/sanitizer-$tool.txt" || echo 'errors were found')"
        ;;
      *) problem "$tool: the tests ended with exit status $status" ;;
    esac
  done
}

do_bench() {
  local options=()
  if [[ $QUICK == 1 ]]; then options+=(--quick); fi
  "$BIN/melflow_gpu_bench" --json "$json" "${options[@]}" >"$md"
}

median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# run_job JOB BACKEND ROUND: one measured run of the whole program; round 0 is not counted.
run_job() {
  local job=$1 backend=$2 round=$3 sets=() usage
  if [[ $job == builder ]]; then
    sets=(--set segment.long=null --set segment.short=null --set segment.length=512)
  fi
  # What was removed need not be written back while the next one runs; the last two are compared.
  rm -f "$WORK/$backend.h5"
  if [[ $round -lt $rounds ]]; then rm -f "$WORK"/{cpu,cuda}.h5; fi
  sync
  DATA=$WORK/leak OUT=$WORK/$backend.h5 "$BIN/melflow_measure_child" "$WORK/usage" \
    "$BIN/melflow" run leak_two_stage --quiet "--json=$WORK/report.json" \
    --set "mel.backend=$backend" "${sets[@]}" || return 1
  usage=$(cat "$WORK/usage")
  cp "$WORK/report.json" "$LOGS/$job-$backend.json"
  if [[ $round -gt 0 ]]; then
    value_of wall "$usage" >>"$WORK/$job-$backend.wall"
    sed -n 's/^ *"graph_seconds": *\([0-9.e+-]*\).*/\1/p' "$WORK/report.json" >>"$WORK/$job-$backend.graph"
    value_of peak_kib "$usage" >>"$WORK/$job-$backend.peak"
  fi
  echo "$job $backend $usage"
}

do_jobs() {
  local rounds=5 job backend round files wall graph peak difference comma=''
  if [[ $QUICK == 1 ]]; then rounds=2; fi
  files=$(find "$WORK/leak" -name '*.wav' | wc -l)
  rm -f "$WORK"/*-{cpu,cuda}.{wall,graph,peak} "$WORK/differences"
  : >"$WORK/problems"
  {
    echo "$files files of 10 s at 4096 Hz, 16-bit WAV, read from a warm cache, into HDF5. Medians of $rounds runs"
    echo 'of the whole program, backends in turn; "graph" is without its start and end.'
    echo
    echo '| job | backend | median [s] | best [s] | files/s | graph [s] | peak [MiB] |'
    echo '|---|---|---|---|---|---|---|'
  } >"$md"
  printf '[' >"$json"
  for job in two-stage builder; do
    for ((round = 0; round <= rounds; ++round)); do
      for backend in cpu cuda; do
        run_job "$job" "$backend" "$round" || problem "$job with backend $backend failed"
      done
    done
    for backend in cpu cuda; do
      [[ -s $WORK/$job-$backend.wall ]] || continue
      wall=$(median <"$WORK/$job-$backend.wall")
      graph=$(median <"$WORK/$job-$backend.graph")
      peak=$(sort -g "$WORK/$job-$backend.peak" | tail -n 1)
      awk -v job="$job" -v backend="$backend" -v wall="$wall" -v graph="$graph" -v files="$files" -v peak="$peak" \
        -v best="$(sort -g "$WORK/$job-$backend.wall" | head -n 1)" \
        'BEGIN { printf "| %s | %s | %.2f | %.2f | %d | %.2f | %d |\n", job, backend, wall, best, files / wall, graph, peak / 1024 }' >>"$md"
      printf '%s\n{"job": "%s", "backend": "%s", "files": %s, "median_seconds": %s, "graph_seconds": %s, "seconds": [%s], "peak_kib": %s}' \
        "$comma" "$job" "$backend" "$files" "$wall" "$graph" "$(paste -sd, "$WORK/$job-$backend.wall")" "$peak" >>"$json"
      comma=,
    done
    what=$job
    difference=$(compared "$WORK/cpu.h5" "$WORK/cuda.h5" --db --most "$(limit_db fp32)")
    echo "$job: rows differ by at most $difference dB" | tee -a "$WORK/differences"
  done
  printf '\n]\n' >>"$json"
  {
    echo
    sed 's/^/- /' "$WORK/differences"
  } >>"$md"
  if [[ -s $WORK/problems ]]; then problem "$(cat "$WORK/problems")"; fi
}

do_torchaudio() {
  local options=()
  command -v "$PYTHON" >/dev/null || leave_out "there is no $PYTHON"
  "$PYTHON" -c 'import torch, torchaudio' 2>/dev/null || leave_out "$PYTHON has no torch with torchaudio"
  "$PYTHON" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
    leave_out "the torch of $PYTHON sees no device"
  if [[ $QUICK == 1 ]]; then options+=(--quick); fi
  "$PYTHON" "$HERE/rivals/torchaudio_gpu.py" --json "$json" "${options[@]}" "$WORK/leak" >"$md"
}

case $step in
  corpus | tests | parity | sanitizer | bench | jobs | torchaudio) "do_$step" ;;
  *)
    echo "there is no step $step"
    exit 2
    ;;
esac
finish
