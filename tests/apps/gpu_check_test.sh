#!/usr/bin/env bash
# perf/gpu.sh from end to end, where the device is a thread of the host: every step runs, rows agree
# and both results are written.
#
# In:  gpu_check_test.sh BIN SOURCE
set -euo pipefail
bin=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "gpu_check: $*" >&2
  cat "$folder"/out/gpu-*-logs/*.log >&2 || true
  exit 1
}

mkdir -p "$folder/bundle/bin"
for program in melflow_make_corpus melflow_compare_rows melflow_measure_child; do
  ln -s "$bin/$program" "$folder/bundle/bin/$program"
done
ln -s "$bin/melflow_on_host_gpu" "$folder/bundle/bin/melflow"
ln -s "$bin/melflow_gpu_bench_on_host" "$folder/bundle/bin/melflow_gpu_bench"
# The device's own tests need one.
printf '#!/bin/sh\necho "test cases: 1 | 1 passed"\n' >"$folder/bundle/bin/melflow_device_tests"
chmod +x "$folder/bundle/bin/melflow_device_tests"

TMPDIR=$folder bash "$source/perf/gpu.sh" --quick --python no-python --bundle "$folder/bundle" \
  --out "$folder/out" || fail "exit status $?"
md=$folder/out/gpu-a-thread-of-the-host.md json=$folder/out/gpu-a-thread-of-the-host.json
grep -q 'all within their limits' "$md" || fail 'the parity of batches is not in the report'
grep -q 'the device rounds them or the sink' "$md" || fail 'rows of 16 bits are not in the report'
grep -q '| fused, rows in bf16 |' "$md" || fail 'kernels with rows of 16 bits are not in the report'
grep -q '^| 3 | float16 |' "$md" || fail 'lanes with rows of 16 bits are not in the report'
grep -q '| two-stage | cuda |' "$md" || fail 'the jobs are not in the report'
grep -q '| fused, fp32 |' "$md" || fail 'the kernels are not in the report'
grep -q '"result": ' "$json" || fail 'there is no JSON'
if command -v python3 >/dev/null; then python3 -m json.tool "$json" >/dev/null || fail 'no JSON'; fi
if compgen -G "$folder/melflow-gpu.*" >/dev/null; then fail 'its folder was left behind'; fi

# A difference is a failure: rows of a device whose kernels are wrong.
printf '#!/bin/sh\necho "rows=1 largest=0.5 row=0 other_bits=1"\nexit 1\n' >"$folder/compare"
chmod +x "$folder/compare"
ln -sf "$folder/compare" "$folder/bundle/bin/melflow_compare_rows"
status=0
TMPDIR=$folder bash "$source/perf/gpu.sh" --quick --python no-python --bundle "$folder/bundle" \
  --out "$folder/out" 2>"$folder/said" || status=$?
[[ $status == 1 ]] || fail "rows that differ gave exit status $status"
grep -q 'failed: parity jobs' "$folder/said" || fail "rows that differ: $(cat "$folder/said")"
