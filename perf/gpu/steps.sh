#!/usr/bin/env bash
# Runs one step of perf/gpu.sh.
#
# In:  steps.sh NAME, or a part of `parity`. Environment from gpu.sh: BIN (programs), WORK (recordings, outputs), HERE
#      (perf/), LINES_OUT, BACKENDS, FIRST_DEVICE, PYTHON, QUICK, HAS_CUFFT; from the user: COMPUTE_SANITIZER and NCU,
#      where these tools are not found automatically ("": they are not used).
# Out: Markdown on stdout, a line of JSON in LINES_OUT for each figure, all else on stderr. Exit status
#      1 when something failed, 77 when requirements are missing; stderr's last line says what.
set -euo pipefail

leave_out() {
  echo "$*" >&2
  exit 77
}
# Several shells may report problems at the same time, each as one line.
problem() { echo "$*" | sed "s|$WORK/||g" | tee -a "$WORK/problems" >&2; }
finish() {
  [[ -s $WORK/problems ]] || exit 0
  printf '\n'
  sed 's/^/- FAILED: /' "$WORK/problems"
  if [[ $(wc -l <"$WORK/problems") -gt 1 ]]; then
    sed "\$s/^/$(wc -l <"$WORK/problems") checks, the last: /;\$!d" "$WORK/problems" >&2
  fi
  exit 1
}
figures() { printf '{"kind": "%s", %s}\n' "$1" "$2" >>"$LINES_OUT"; }
value_of() { sed -n "s/.*\\b$1=\\([^ ]*\\).*/\\1/p" <<<"$2"; }
# number TEXT: prints it as a JSON number, or null.
number() { if [[ $1 =~ ^[0-9.e+-]+$ ]]; then echo "$1"; else echo null; fi; }
median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# tool NAME: prints the path of a CUDA tool, from PATH or the toolkit; nothing where it is missing.
tool() {
  local path
  for path in "$(command -v "$1")" "${CUDA_HOME:-/usr/local/cuda}"/{bin,compute-sanitizer,nsight-compute}/"$1"; do
    if [[ -x $path ]]; then
      echo "$path"
      return
    fi
  done
}

# The allowed differences between two backends: the sum of their limits against the definition in double precision
# (tests/support/kernel_checks.h), relative to a frame's largest value; in dB, for levels within 60 dB. Operands of 16
# bits have noise in proportion to the peak, so low levels have no limit in dB.
limit_linear() { case $1 in fp32) echo 2e-6 ;; fp16) echo 2.1e-3 ;; bf16) echo 1.6e-2 ;; esac; }
limit_db() { case $1 in fp32) echo 2e-3 ;; *) echo inf ;; esac; }

# compared WHAT A B OPTION...: prints the largest difference, and reports a problem where it is too large.
compared() {
  local what=$1 line status=0 said
  shift
  said=$(mktemp "$WORK/said.XXXXXX")
  line=$("$BIN/melflow_compare_rows" "$@" 2>"$said") || status=1
  value_of largest "$line"
  if [[ $status != 0 ]]; then problem "$what: $(sed 's/^melflow_compare_rows: //' "$said") (${2##*/})"; fi
  rm "$said"
}

# ---- recordings

do_corpus() {
  local files=39563 make=$BIN/melflow_make_corpus free
  free=$(df -Pk "$WORK" | awk 'NR == 2 { print $4 }')
  if [[ $QUICK == 1 ]]; then
    files=200
  elif [[ $free -lt 7000000 ]]; then
    files=4000
    echo "Only $((free / 1000000)) GB are free: the jobs get $files recordings."
  fi
  "$make" --out "$WORK/16000" --files 6 --rate 16000 --seconds-min 1 --seconds-max 5 >&2
  "$make" --out "$WORK/22050" --files 4 --rate 22050 --seconds-min 1 --seconds-max 4 >&2
  "$make" --out "$WORK/few" --files 16 --rate 4096 --seconds 10 >&2
  "$make" --out "$WORK/tenth" --files $((files / 10)) --rate 4096 --seconds 10 --threads "$(nproc)" >&2
  "$make" --out "$WORK/leak" --files "$files" --rate 4096 --seconds 10 --threads "$(nproc)" >&2
}

# ---- the kernels' own tests

do_tests() {
  local status=0 tests=()
  if [[ $HAS_CUFFT == 0 ]]; then tests=('--test-case=*device: fused*,mel kernels:*'); fi
  # Omits the tests that compare hundreds of front ends with the definition, frame by frame.
  if [[ $QUICK == 1 ]]; then
    tests+=('--test-case-exclude=*agree with the definition*,*operands of 16 bits stay*,*many frames*')
  fi
  "$BIN/melflow_device_tests" "${tests[@]}" >"$WORK/tests" 2>&1 || status=1
  cat "$WORK/tests" >&2
  {
    echo '```'
    # Without the folder in which the tests were built.
    grep -E 'at most|test cases:|assertions:' "$WORK/tests" | sed 's/^ *//; s#^/.*/\(tests/device/\)#\1#'
    echo '```'
  } || true
  if grep -q 'skipped: no CUDA device' "$WORK/tests"; then problem 'the tests found no device'; fi
  if [[ $status != 0 ]]; then problem "$(grep 'test cases:' "$WORK/tests" || echo 'the tests ended early')"; fi
}

# Logs the device's clock meanwhile, without which figures mean little.
do_bench() {
  local options=() sampler=''
  if [[ $QUICK == 1 ]]; then options+=(--quick); fi
  if command -v nvidia-smi >/dev/null; then
    nvidia-smi -i "$FIRST_DEVICE" --query-gpu=clocks.sm,power.draw --format=csv,noheader,nounits -lms 500 >"$WORK/clocks" &
    sampler=$!
  fi
  "$BIN/melflow_gpu_bench" --device "$FIRST_DEVICE" --json "$LINES_OUT" "${options[@]}" ||
    problem 'the benchmark failed'
  [[ -n $sampler ]] || return 0
  kill "$sampler" 2>/dev/null || true
  awk -F', *' '$1 + 0 > 0 { print $1 }' "$WORK/clocks" | sort -g >"$WORK/clock"
  [[ -s $WORK/clock ]] || return 0
  echo "The SM clock meanwhile: $(head -n 1 "$WORK/clock") to $(tail -n 1 "$WORK/clock") MHz, median $(median <"$WORK/clock")."
  figures clock "\"sm_mhz\": $(median <"$WORK/clock"), \"least\": $(head -n 1 "$WORK/clock"), \"most\": $(tail -n 1 "$WORK/clock")"
}

# ---- whole jobs

# run_job JOB BACKEND WORKERS DATA: runs the whole program once and prints its resource usage.
run_job() {
  local job=$1 backend=$2 workers=$3 data=$4 sets=()
  if [[ $job == builder ]]; then
    sets=(--set segment.long=null --set segment.short=null --set segment.length=512)
  fi
  # Deletes the output first, so that it is not written back during the next run.
  rm -f "$WORK/$backend.h5"
  sync -f "$WORK"
  DATA=$data OUT=$WORK/$backend.h5 "$BIN/melflow_measure_child" "$WORK/usage" \
    "$BIN/melflow" run leak_two_stage --quiet --workers "$workers" "--json=$WORK/report.json" \
    --set "mel.backend=$backend" "${sets[@]}" >&2 || return 1
  cat "$WORK/usage"
}

# device_list NAME: prints the list of that name of the last report, on one line; nothing where it has none.
device_list() {
  awk -v begin="\"$1\": [" '
    index($0, begin) { on = 1; sub(/^[^:]*: /, "") }
    on {
      gsub(/^ +/, "")
      line = line $0
      depth += gsub(/[[{]/, "&") - gsub(/[]}]/, "&")
      if (depth == 0) { sub(/,$/, "", line); print line; exit }
    }' "$WORK/report.json"
}
# of_first KEY LIST: prints the first number with that key.
of_first() { grep -o "\"$1\": *[0-9.e+-]*" <<<"$2" | head -n 1 | sed 's/.*: *//' || true; }
# device_cells USE RATES: prints cells of the table, of the first device.
device_cells() {
  local use=$1 rates=$2 link='' memory=''
  # Rates are known where there was time between the first batch and the last.
  if [[ $rates == *gaps_percent* ]]; then
    link="$(of_first gb_per_second "${rates#*\"to_device\"}"), $(of_first gb_per_second "${rates#*\"from_device\"}")"
  fi
  if [[ $use == *memory_bytes* ]]; then
    memory=$(of_first most "${use#*\"memory_bytes\"}" | awk '{ printf "%d", $1 / 1048576 }')
  fi
  printf ' %s | %s | %s | %s |\n' "$(of_first mean "$use")" "$(of_first gaps_percent "$rates")" "$memory" "$link"
}

# jobs_row SERIES ROUNDS JOB WORKERS DATA: alternates both backends, after an uncounted run of each
# unless there is only one round. Prints a row of the table for each.
jobs_row() {
  local series=$1 rounds=$2 job=$3 workers=$4 data=$5 round backend usage files wall graph peak use rates device
  files=$(find "$data" -name '*.wav' | wc -l)
  rm -f "$WORK"/*.{wall,graph,peak,use,rates}
  for ((round = rounds == 1 ? 1 : 0; round <= rounds; ++round)); do
    for backend in $BACKENDS; do
      if ! usage=$(run_job "$job" "$backend" "$workers" "$data"); then
        problem "$job with backend $backend and $workers workers failed"
        continue
      fi
      [[ $round -gt 0 ]] || continue
      value_of wall "$usage" >>"$WORK/$backend.wall"
      sed -n 's/^ *"graph_seconds": *\([0-9.e+-]*\).*/\1/p' "$WORK/report.json" >>"$WORK/$backend.graph"
      value_of peak_kib "$usage" >>"$WORK/$backend.peak"
      device_list device_use >"$WORK/$backend.use"
      device_list device_rates >"$WORK/$backend.rates"
    done
  done
  for backend in $BACKENDS; do
    [[ -s $WORK/$backend.wall ]] || continue
    wall=$(median <"$WORK/$backend.wall")
    graph=$(median <"$WORK/$backend.graph")
    peak=$(sort -g "$WORK/$backend.peak" | tail -n 1)
    awk -v job="$job" -v backend="$backend" -v workers="$workers" -v wall="$wall" -v graph="$graph" \
      -v files="$files" -v peak="$peak" -v best="$(sort -g "$WORK/$backend.wall" | head -n 1)" \
      'BEGIN { printf "| %s | %s | %d | %d | %.3f | %.3f | %d | %.3f | %d |", job, backend, files, workers, wall, best, files / wall, graph, peak / 1024 }'
    use=$(<"$WORK/$backend.use") rates=$(<"$WORK/$backend.rates") device=''
    [[ -z $use ]] || device+=", \"device_use\": $use"
    [[ -z $rates ]] || device+=", \"device_rates\": $rates"
    device_cells "$use" "$rates"
    figures job "\"series\": \"$series\", \"job\": \"$job\", \"backend\": \"$backend\", \"files\": $files, \"workers\": $workers, \"median_seconds\": $wall, \"graph_seconds\": $(number "$graph"), \"seconds\": [$(paste -sd, "$WORK/$backend.wall")], \"peak_kib\": $peak$device"
  done
}

do_jobs() {
  local rounds=5 few=2 job workers data
  if [[ $QUICK == 1 ]]; then rounds=1 few=1; fi
  [[ -d $WORK/leak ]] || leave_out 'there are no recordings'
  echo 'Files of 10 s at 4096 Hz, 16-bit WAV, read from a warm cache, into HDF5; medians of runs of the whole'
  echo 'program, backends in turn; "graph" is without its start and end. Of the last run, by its report: "use", the share of'
  echo 'the time in which a kernel ran (NVML); "gaps", that in which the device had nothing to do from the first batch to the'
  echo 'last; "device memory", the most that was taken of it; and the rates over the link. The use over time is in the lines'
  echo 'of JSON.'
  echo
  echo '| job | backend | files | workers | median [s] | best [s] | files/s | graph [s] | peak [MiB] | use [%] | gaps [%] | device memory [MiB] | to, from the device [GB/s] |'
  echo '|---|---|---|---|---|---|---|---|---|---|---|---|---|'
  for job in two-stage builder; do
    jobs_row all "$rounds" "$job" "$(nproc)" "$WORK/leak"
    if [[ $BACKENDS == *cuda* ]]; then
      compared "$job" "$WORK/cpu.h5" "$WORK/cuda.h5" --db --most "$(limit_db fp32)" >"$WORK/$job.difference"
    fi
  done
  for data in few tenth leak; do jobs_row files "$few" two-stage "$(nproc)" "$WORK/$data"; done
  for ((workers = 1; workers <= $(nproc); workers *= 2)); do
    jobs_row workers "$few" two-stage "$workers" "$WORK/leak"
  done
  echo
  for job in two-stage builder; do
    [[ ! -s $WORK/$job.difference ]] || echo "- $job: rows differ by at most $(cat "$WORK/$job.difference") dB"
  done
}

# ---- rows of either backend

# run_preset PREFIX PRESET DATA BACKEND PATH OPERANDS SLOTS BATCH [ROWS STATISTICS]: runs parity.yaml.
run_preset() {
  local status=0
  OUT=$1 PRESET=$2 DATA=$3 BACKEND=$4 MEL_PATH=$5 OPERANDS=$6 SLOTS=$7 BATCH=$8 \
    ROWS=${9:-float32} STATISTICS=${10:-none} \
    "$BIN/melflow" run "$HERE/gpu/parity.yaml" --quiet >&2 || status=$?
  if [[ $status != 0 ]]; then problem "$2, backend $4, path $5, $6, rows in ${9:-float32}: the run failed"; fi
  return $status
}

parity_kinds() {
  echo auto/fp32 auto/fp16 auto/bf16
  if [[ $HAS_CUFFT == 1 ]]; then echo cufft/fp32; fi
}

# parity_of PRESET: prints a row of the table for each kind, path/operands.
parity_of() {
  local preset=$1 data=$WORK/16000 at=$WORK/parity-$1 kind path operands linear db same
  case $preset in librosa | hifigan) data=$WORK/22050 ;; esac
  mkdir -p "$at"
  run_preset "$at/cpu_" "$preset" "$data" cpu auto fp32 3 2MiB || return 0
  for kind in $(parity_kinds); do
    path=${kind%/*} operands=${kind#*/}
    run_preset "$at/cuda_" "$preset" "$data" cuda "$path" "$operands" 3 2MiB || continue
    linear=$(compared "$preset, $kind" "$at"/{cpu,cuda}_linear.h5 --most "$(limit_linear "$operands")")
    db=$(compared "$preset, $kind" "$at"/{cpu,cuda}_levels.h5 --db --most "$(limit_db "$operands")")
    echo "| $preset | $path | $operands | $linear | $db |"
    figures parity "\"preset\": \"$preset\", \"path\": \"$path\", \"operands\": \"$operands\", \"of_peak\": $(number "$linear"), \"db\": $(number "$db")"
    [[ $kind == auto/fp32 ]] || continue
    # The preset unchanged, whatever its unit: detects gross errors only.
    compared "$preset" "$at"/{cpu,cuda}_preset.h5 --most 0.05 >/dev/null
    # Other batches in other slots must give the same bytes.
    run_preset "$at/other_" "$preset" "$data" cuda auto fp32 1 48KiB || continue
    for same in linear levels preset; do
      compared "$preset, small batches" "$at"/{cuda,other}_$same.h5 --same >/dev/null
    done
  done
  rm -r "$at"
}

# rows_of PATH: checks that 16-bit rows rounded on the device equal its float32 rows rounded by the
# sink. Kaldi's powers of 16-bit samples exceed float16: such files fail, which tests show.
rows_of() {
  local path=$1 preset type same at=$WORK/rows-$1
  mkdir -p "$at"
  for type in float16 bfloat16; do
    preset=kaldi
    if [[ $type == float16 ]]; then preset=torchaudio; fi
    run_preset "$at/cuda_" $preset "$WORK/16000" cuda "$path" fp32 3 2MiB "$type" none || continue
    run_preset "$at/other_" $preset "$WORK/16000" cuda "$path" fp32 3 2MiB "$type" all || continue
    for same in linear levels preset; do
      compared "$preset, $path, rows in $type" "$at"/{cuda,other}_$same.h5 --same >/dev/null
    done
  done
  rm -r "$at"
}

do_parity() {
  local presets='torchaudio kaldi kaldi_htk whisper whisper_large_v3 nemo speechbrain ast librosa hifigan' path
  local at_a_time=$(($(nproc) / 2))
  if [[ $QUICK == 1 ]]; then presets='kaldi nemo'; fi
  [[ -d $WORK/16000 ]] || leave_out 'there are no recordings'
  echo '| preset | kernels | operands | of a band, over the frame'"'"'s peak | of a level within 60 dB [dB] |'
  echo '|---|---|---|---|---|'
  # Runs a few at a time, since a start takes longer than the work. The script calls itself.
  {
    printf 'parity_of %s\n' $presets
    for path in $(parity_kinds); do
      if [[ $path == */fp32 ]]; then echo "rows_of ${path%/*}"; fi
    done
  } | xargs -L 1 -P $((at_a_time < 1 ? 1 : at_a_time < 4 ? at_a_time : 4)) bash "$0" || problem 'a check ended early'
  [[ ! -s $WORK/problems ]] || return 0
  echo
  echo 'Largest differences from the processor'"'"'s rows, all within their limits. Batches of 48 KiB on one'
  echo 'stream give the same bytes as those of 2 MiB on three; rows of 16 bits are the same bytes whether'
  echo 'the device rounds them or the sink.'
}

# ---- memory checks

# sanitize TOOL PROGRAM...: prints a line of the list.
sanitize() {
  local tool=$1 status=0
  shift
  DATA=$WORK/few OUT=$WORK/$tool.h5 timeout -k 2 65 "$SANITIZER" --tool "$tool" --error-exitcode 9 \
    "$@" >"$WORK/$tool" 2>&1 || status=$?
  cat "$WORK/$tool" >&2
  if grep -qi 'device not supported' "$WORK/$tool"; then
    echo "- $tool: does not support this device or system"
    return
  fi
  case $status in
    0) echo "- $tool: nothing found" ;;
    124 | 137) echo "- $tool: not done after 65 s" ;;
    9) problem "$tool: $(grep 'SUMMARY' "$WORK/$tool" || echo 'errors were found')" ;;
    *) problem "$tool: the tests ended with exit status $status" ;;
  esac
}

do_sanitizer() {
  local tool program
  SANITIZER=${COMPUTE_SANITIZER-$(tool compute-sanitizer)}
  if [[ -z $SANITIZER ]]; then leave_out 'there is no compute-sanitizer'; fi
  program=("$BIN/melflow_device_tests" '--test-case=*captured graph*,*every type*')
  if [[ $HAS_CUFFT == 0 ]]; then  # these tests take both paths
    [[ -d $WORK/few ]] || leave_out 'there are no recordings'
    program=("$BIN/melflow" run leak_two_stage --quiet --set mel.backend=cuda)
  fi
  # In parallel, each with the whole time limit, so that one slow tool costs the others nothing.
  for tool in memcheck racecheck synccheck initcheck; do sanitize "$tool" "${program[@]}" & done
  wait
}

# ---- where the time of a kernel goes

# Launches the kernels of each geometry once, and reads the device's counters of instructions, shared memory and stalls.
do_profile() {
  local ncu=${NCU-$(tool ncu)} geometry options=() sections=() name said=$WORK/profile
  [[ -n $ncu ]] || leave_out 'there is no ncu'
  if [[ $QUICK == 1 ]]; then options+=(--quick); fi
  for name in SpeedOfLight ComputeWorkloadAnalysis SchedulerStats WarpStateStats InstructionStats Occupancy LaunchStats \
    MemoryWorkloadAnalysis MemoryWorkloadAnalysis_Tables; do
    sections+=(--section "$name")
  done
  for geometry in builder two-stage speech music; do
    # Does not change the device's clock. The log gets every counter.
    "$ncu" --clock-control none --csv --page raw --print-units base "${sections[@]}" "$BIN/melflow_gpu_bench" \
      --device "$FIRST_DEVICE" --once "$geometry" "${options[@]}" >"$said" 2>&1 || true
    cat "$said" >&2
    if ! grep -q '^"ID"' "$said"; then
      leave_out "ncu cannot profile here: $(grep -m 1 'ERROR' "$said" || tail -n 1 "$said")"
    fi
    awk -v geometry="$geometry" -v json="$LINES_OUT" -f "$HERE/gpu/profile.awk" "$said"
  done
}

# ---- the rival

do_torchaudio() {
  local options=() status=0
  command -v "$PYTHON" >/dev/null || leave_out "there is no $PYTHON"
  [[ -d $WORK/leak ]] || leave_out 'there are no recordings'
  if [[ $QUICK == 1 ]]; then options+=(--quick); fi
  "$PYTHON" "$HERE/rivals/torchaudio_gpu.py" --json "$LINES_OUT" "${options[@]}" "$WORK/leak" || status=$?
  # Its messages are in the log already.
  [[ $status == 0 ]] || exit $status
}

case $1 in
  parity_of | rows_of) "$@" ;;
  *)
    rm -f "$WORK/problems"
    "do_$1"
    finish
    ;;
esac
