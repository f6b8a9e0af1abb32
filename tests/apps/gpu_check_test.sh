#!/usr/bin/env bash
# Tests perf/gpu.sh on an emulated device: every step runs, rows agree, and results exist as soon as
# they are known and stay when the script is stopped.
#
# In:  gpu_check_test.sh BIN SOURCE NVML
set -euo pipefail
bin=$1 source=$2
export MELFLOW_NVML=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "gpu_check: $*" >&2
  cat "$folder"/said "$folder"/out/gpu-* >&2 || true
  exit 1
}
# check OPTION...: runs the script; returns its exit status, and its messages in `said`.
check() {
  TMPDIR=$folder bash "$source/perf/gpu.sh" --quick --seconds 3600 --limit 1800 --python no-python --bundle "$folder/bundle" \
    --out "$folder/out" "$@" >"$folder/said" 2>&1
}
# Checks that no folder, and no process that has the device open, is left.
nothing_left() {
  if compgen -G "$folder/melflow-gpu.*" >/dev/null; then fail 'its folder was left behind'; fi
  while pgrep -f "$folder/bundle.* --hold" >/dev/null; do sleep 0.1; done  # else the test's time limit ends it
}

mkdir -p "$folder/bundle"/{bin,libexec}
programs=$folder/bundle/libexec
for program in melflow_make_corpus melflow_compare_rows melflow_measure_child; do
  ln -s "$bin/$program" "$programs/$program"
done
ln -s "$bin/melflow_on_host_gpu" "$programs/melflow"
ln -s "$bin/melflow_gpu_bench_on_host" "$programs/melflow_gpu_bench"
ln -s "$bin/melflow_gpu_bench_on_host" "$folder/bundle/bin/melflow_gpu_bench"
ln -s "$bin/melflow_emulated_tests" "$programs/melflow_device_tests"
# This test does not use the real tools of a machine that has devices.
export COMPUTE_SANITIZER='' NCU=''
md=$folder/out/gpu-emulated.md lines=$folder/out/gpu-emulated.jsonl

# ---- all of it
check --work "$folder/work" || fail "exit status $?"
[[ $(grep -c '_ok; ' "$md") == 5 ]] || fail 'not all steps are done'
for why in 'there is no ncu' 'there is no compute-sanitizer' 'there is no no-python'; do
  grep -q "_left out: $why; " "$md" || fail "it does not say: $why"
done
grep -Eq '^\[doctest\] test cases: +[0-9]+ .* 0 failed' "$md" || fail 'the tests of the kernels are not in the report'
grep -q 'all within their limits' "$md" || fail 'the parity of batches is not in the report'
grep -q 'the device rounds them or the sink' "$md" || fail 'rows of 16 bits are not in the report'
for row in '| nemo | auto | fp32 |' '| fused, rows in bf16 |' '| fused, fp32 |' '| two-stage | cuda |' \
  '| builder | cpu |' '| 1 | 0.9 | float32 | on |'; do
  grep -qF "$row" "$md" || fail "there is no row $row"
done
grep -q '| backend: auto | cpu: .* s and .*; cuda: .* s and' "$md" || fail 'nothing follows for auto'
if grep -q '| open |' "$md"; then fail 'a question is open'; fi
# Of each whole job's report: the use of the device, over time, too, its gaps and the rates over the link.
for figure in '"device_use": \[{"device": 0,' '"over_time": \[' '"memory_bytes": {"most": ' '"device_rates": \[{"device": 0,'; do
  grep '"kind": "job"' "$lines" | grep '"backend": "cuda"' | grep -q "$figure" || fail "no job has $figure"
done
if grep '"kind": "job"' "$lines" | grep '"backend": "cpu"' | grep -q '"device_use"'; then fail 'the CPU has a device'; fi
grep -Eq '^\| two-stage \| cuda \|.*\| [0-9]+ \| [0-9.]+ \| [0-9.]* \| [0-9]+ \| ([0-9.]+, [0-9.]+)? \|$' "$md" ||
  fail 'the table has no use of the device'
if command -v python3 >/dev/null; then
  python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' "$lines" || fail 'no JSON'
fi
[[ $(find "$folder/out" -type f | wc -l) -le 8 ]] || fail 'more files than eight'
nothing_left

# ---- a second call in the same folder adds to the results of the first, or replaces them
# Without the benchmark, which leaves no files there and takes longest.
check --work "$folder/work" --add --steps corpus,tests,jobs,parity,profile,sanitizer,torchaudio ||
  fail "a second call in the same folder: exit status $?"
[[ $(grep -c '^## ' "$md") == 17 && $(grep -c '"step"' "$lines") == 15 ]] || fail 'the second call added nothing'
[[ $(grep -c '_ok; ' "$md") == 9 ]] || fail 'not all steps are done a second time'
check --work "$folder/work" --steps corpus || fail "exit status $?"
[[ $(grep -c '^## ' "$md") == 2 && $(grep -c '"step"' "$lines") == 1 ]] || fail 'the third call replaced nothing'
nothing_left

# ---- a device that can be open in only one program at a time is not kept open
mkdir "$folder/smi"
printf '#!/bin/sh\necho Exclusive_Process\n' >"$folder/smi/nvidia-smi"
chmod +x "$folder/smi/nvidia-smi"
PATH=$folder/smi:$PATH check --steps corpus || fail "exit status $?"
grep -q '^Compute mode: Exclusive_Process' "$md" || fail 'the compute mode is not in the report'

# ---- existing measurements lead to decisions, whatever else is missing
cat >"$folder/lines" <<'LINES'
{"kind":"kernel","geometry":"builder: 80","case":"fused, fp32","windows_per_second":1e9}
{"kind":"kernel","geometry":"builder: 80","case":"fused, fp16","windows_per_second":1.2e9}
{"kind":"kernel","geometry":"builder: 80","case":"cuFFT","windows_per_second":5e8}
{"kind":"kernel","geometry":"music: 2048","case":"fused, fp32","windows_per_second":1e8}
{"kind":"kernel","geometry":"music: 2048","case":"fused, fp16","error":"no room"}
{"kind":"kernel","geometry":"music: 2048","case":"cuFFT","windows_per_second":2e8}
{"kind":"slots","geometry":"builder: 80","slots":3,"small":false,"rows":"float32","graphs":true,"link":{"files_per_second":300000}}
{"kind":"slots","geometry":"builder: 80","slots":6,"small":false,"rows":"float32","graphs":true,"link":{"files_per_second":590000}}
{"kind":"slots","geometry":"builder: 80","slots":8,"small":false,"rows":"float32","graphs":true,"link":{"files_per_second":600000}}
{"kind":"slots","geometry":"builder: 80","slots":8,"small":false,"rows":"float32","graphs":false,"link":{"files_per_second":500000}}
{"kind":"slots","geometry":"builder: 80","slots":8,"small":false,"rows":"float16","graphs":true,"link":{"files_per_second":606000}}
{"kind":"job","series":"files","job":"two-stage","backend":"cpu","files":0,"workers":16,"median_seconds":0.1}
{"kind":"job","series":"files","job":"two-stage","backend":"cpu","files":40000,"workers":16,"median_seconds":4.1}
{"kind":"job","series":"files","job":"two-stage","backend":"cuda","files":0,"workers":16,"median_seconds":0.6}
{"kind":"job","series":"files","job":"two-stage","backend":"cuda","files":40000,"workers":16,"median_seconds":2.6}
{"kind":"job","series":"workers","job":"two-stage","backend":"cpu","files":40000,"workers":8,"median_seconds":8,"graph_seconds":7.5}
{"kind":"job","series":"workers","job":"two-stage","backend":"cuda","files":40000,"workers":8,"median_seconds":3,"graph_seconds":null}
{"kind":"job","series":"workers","job":"two-stage","backend":"cpu","files":40000,"workers":16,"median_seconds":2,"graph_seconds":1.5}
{"kind":"job","series":"workers","job":"two-stage","backend":"cuda","files":40000,"workers":16,"median_seconds":3,"graph_seconds":2.5}
{"kind":"job","series":"workers","job":"two-stage","backend":"cpu","files":40000,"workers":1,"median_seconds":16,"graph_seconds":15}
{"kind":"job","series":"workers","job":"two-st
LINES
cat >"$folder/expected" <<'TABLE'
| question | figures | answer |
|---|---|---|
| fused or cuFFT | builder: 2.00 times; music: 0.50 times | cuFFT for music |
| operands of 16 bits | builder, fp16: +20.0 % | stay |
| rows of 16 bits | builder: +1.0 % | no gain on the way |
| slots | builder: 6 of 600,000 files/s | 6 |
| graphs | builder: +20.0 % | on |
| backend: auto | cpu: 0.10 s and 100.0 µs a file; cuda: 0.60 s and 50.0 µs a file | cuda from 10,000 files on, auto_from: 0.013 |
| workers | 8: cpu 8.00 s, cuda 3.00 s; 16: cpu 2.00 s, cuda 3.00 s | the device is ahead up to 8 |
| scaling | cpu 1: 15.00 s; 8: 7.50 s; 16: 1.50 s | cpu 10.0 times with 16 |
| fused kernel, windows of 512/s | 1,000,000,000 | reached |
| RAM to GPU to RAM, files/s | 600,000 | reached |
TABLE
"$programs/melflow_gpu_bench" --decide "$folder/lines" >"$folder/table"
diff "$folder/expected" "$folder/table" >&2 || fail 'decides otherwise'
: >"$folder/lines"
"$programs/melflow_gpu_bench" --decide "$folder/lines" >"$folder/table"
[[ $(grep -c '| open |' "$folder/table") == 10 ]] || fail 'decides without figures'

# ---- each measurement is written before the next one begins
mkfifo "$folder/rows"
rm "$folder/lines"
"$programs/melflow_gpu_bench" --json "$folder/lines" >"$folder/rows" &  # takes minutes on a host
bench=$!
exec 7<"$folder/rows"
while read -r row <&7; do
  if [[ $row == '| 256 KiB |'* ]]; then break; fi
done
kill -KILL $bench || fail 'the first row came with the last'
wait $bench || true
grep -q '^{"kind":"device"' "$folder/lines" || fail 'there is no line of what was measured'
if grep -q '"kind":"kernel"' "$folder/lines"; then fail 'the first row came late'; fi
exec 7<&-

# ---- without a device: whole jobs on the processor
check --cpu || fail "on the processor: exit status $?"
grep -q '| two-stage | cpu |' "$folder"/out/cpu-*.md || fail 'no job ran on the processor'
if grep -q '| cuda |' "$folder"/out/cpu-*.md; then fail 'a job ran on a device'; fi

# ---- a difference is a failure: rows of a device with wrong kernels
rm "$programs/melflow_compare_rows"
printf '#!/bin/sh\necho "rows=1 largest=0.5 row=0 other_bits=1"\nexit 1\n' >"$programs/melflow_compare_rows"
chmod +x "$programs/melflow_compare_rows"
status=0
check --steps corpus,parity || status=$?
[[ $status == 1 ]] || fail "rows that differ gave exit status $status"
grep -q 'failed: parity' "$folder/said" || fail 'rows that differ are not said'
grep -q -- '- FAILED: nemo, auto/fp32' "$md" || fail 'rows that differ are not in the report'

# ---- errors that a sanitizer finds
printf '#!/bin/sh\nexit 9\n' >"$folder/sanitizer"
chmod +x "$folder/sanitizer"
status=0
COMPUTE_SANITIZER=$folder/sanitizer check --steps sanitizer || status=$?
[[ $status == 1 ]] || fail "errors that a sanitizer finds gave exit status $status"
for tool in memcheck racecheck synccheck initcheck; do
  grep -q -- "- FAILED: $tool: errors were found" "$md" || fail 'what a sanitizer finds is not in the report'
done

# ---- a profiler: it launches each kernel once, and counts are per window; or it cannot count
cat >"$folder/ncu" <<'NCU'
#!/bin/sh
until [ "${1##*/}" = melflow_gpu_bench ]; do shift; done
"$@" || exit 1
cat <<'COUNTERS'
"ID","Kernel Name","Block Size","gpu__time_duration.sum","smsp__cycles_elapsed.avg.per_second","launch__registers_per_thread","sm__warps_active.avg.pct_of_peak_sustained_active","sm__inst_issued.avg.pct_of_peak_sustained_active","smsp__inst_executed.sum","l1tex__data_pipe_lsu_wavefronts_mem_shared.sum","l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum","smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio","smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio","smsp__average_warps_issue_stalled_wait_per_issue_active.ratio","smsp__average_warps_issue_stalled_wait_not_issued_per_issue_active.ratio","smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio"
"","","","ns","hz","register/thread","%","%","inst","","","inst","inst","inst","inst","inst"
"0","void melflow::cuda::fused_kernel<melflow::cuda::Shape<256, 4>, short, 0>(melflow::cuda::FusedArguments)","(128, 1, 1)","68,500","1755000000","96","30.5","71.25","329,280","78240","9600","0.1","1.5","0.75","9","2.25"
COUNTERS
NCU
chmod +x "$folder/ncu"
NCU=$folder/ncu check --steps profile || fail "exit status $?"
row='| builder | fused_kernel<Shape<256, 4>, short, 0> | 68.5 | 1755 | 96 | 30.5 | 71.25 | 686.0 | 163.0 | 20.0 | - | short_scoreboard 2.25, mio_throttle 1.50, wait 0.75 |'
grep -qF "$row" "$md" || fail 'a profile is not in the report'
grep -q '"kind": "profile", "geometry": "music", .*"instructions": [0-9]*\.[0-9], .*"dram_percent": null' "$lines" || fail 'no line of a profile'
printf '#!/bin/sh\necho "==ERROR== ERR_NVGPUCTRPERM: no permission"\nexit 1\n' >"$folder/ncu"
NCU=$folder/ncu check --steps profile || fail "exit status $?"
grep -q '_left out: ncu cannot profile here: ==ERROR== ERR_NVGPUCTRPERM' "$md" || fail 'it does not say that ncu cannot count'

# ---- a step that never ends is abandoned, and does not stop the others
mkfifo "$folder/reached"
rm "$programs/melflow_device_tests"
printf '#!/bin/sh\necho "at most 0.001 dB"\necho $$ >%s\nexec tail -f /dev/null\n' "$folder/reached" \
  >"$programs/melflow_device_tests"
chmod +x "$programs/melflow_device_tests"
exec 8<>"$folder/reached"  # so that opening it blocks nobody
status=0
check --limit 1 --steps tests,torchaudio || status=$?
[[ $status == 1 ]] || fail "a step without an end gave exit status $status"
grep -q '^## torchaudio' "$md" || fail 'a step without an end stopped the others'
grep -q 'failed: not done after 1 s' "$md" || fail 'what was not done is not in the report'
grep -q '## What follows' "$md" || fail 'nothing follows after a step without an end'
nothing_left
exec 8>&-
status=0
check --seconds 0 --steps tests || status=$?
[[ $status == 1 ]] || fail "no time at all gave exit status $status"
grep -q 'failed: no time was left' "$md" || fail 'that no time was left is not in the report'

# ---- stopped in the middle: earlier results stay
for signal in TERM HUP KILL; do
  TMPDIR=$folder bash "$source/perf/gpu.sh" --quick --python no-python --bundle "$folder/bundle" --out "$folder/out" \
    --steps corpus,tests,parity >"$folder/said" 2>&1 &
  script=$!
  read -r endless <"$folder/reached"
  kill -$signal $script
  status=0
  wait $script || status=$?
  grep -q '_ok; ' "$md" || fail "$signal: the recordings are not in the report"
  grep -q '"step": "corpus", "state": "ok"' "$lines" || fail "$signal: there is no line of what was done"
  if [[ $signal == KILL ]]; then
    # After KILL nothing more can be done: the table is made later, and processes are stopped here.
    "$programs/melflow_gpu_bench" --decide "$lines" | grep -q '^| question ' || fail 'killed: nothing can follow'
    kill -KILL -- "-$(ps -o pgid= -p "$endless" | tr -d ' ')"
    rm -r "$folder"/melflow-gpu.*
  else
    [[ $status == 130 ]] || fail "$signal: exit status $status"
    grep -q '_Stopped here' "$md" || fail "$signal: the report does not say so"
    grep -q '## What follows' "$md" || fail "$signal: nothing follows"
  fi
  nothing_left
done
