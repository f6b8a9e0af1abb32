#!/usr/bin/env bash
# Tests the unpacked bundle: with the machine's glibc, with its own where the machine reports an old
# glibc, and where there is only a shell.
#
# In:  bundle_test.sh BUILD_FOLDER. The last part needs busybox-static and namespaces; without these it
#      is omitted with a message.
set -euo pipefail
build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "bundle: $*" >&2
  exit 1
}

cmake --build "$build" --target bundle >"$folder/log" || fail "$(tail -n 20 "$folder/log")"
archives=("$build"/melflow-bundle-*.tar.gz)
mkdir -p "$folder/root/opt" "$folder/root/data" "$folder/old"
tar xzf "${archives[0]}" -C "$folder/root/opt"
bundles=("$folder"/root/opt/*)
bin=${bundles[0]}/bin own=${bundles[0]}/glibc
"$bin/melflow_make_corpus" --out "$folder/root/data/clips" --files 3 --rate 4096 --seconds 2 2>/dev/null

# job WHERE OUT COMMAND...: runs a whole job, the same in every case.
job() {
  local where=$1 out=$2
  shift 2
  DATA=$where/data/clips OUT=$where/data/$out "$@" run leak_two_stage --quiet
}
same_rows() { "$bin/melflow_compare_rows" --same "$folder"/root/data/{here,"$1"}.h5 >/dev/null; }
loads_own_glibc() {
  LD_DEBUG=files "$bin/melflow" --version >"$folder/loads" 2>&1
  grep -q "calling init: $own/libc.so.6" "$folder/loads"
}

# ---- here: the programs were built with this glibc
job "$folder/root" here.h5 "$bin/melflow" || fail 'a job failed'
if loads_own_glibc; then fail 'takes its own glibc where that of the machine would do'; fi
ln -s "$bin/melflow" "$folder/link"
(cd / && "$folder/link" stages mel >/dev/null) || fail 'cannot be started by a link'
(cd "$bin" && sh melflow --version >/dev/null) || fail 'cannot be started by its name alone'
status=0
"$bin/melflow" run no-such-file.yaml 2>/dev/null || status=$?
[[ $status != 0 ]] || fail 'an exit status was lost'

# The files that the GPU check uses from its own folder exist.
grep -oh '\$HERE/[A-Za-z0-9_./]*' "${bundles[0]}/perf/gpu/steps.sh" | sort -u >"$folder/named"
[[ $(wc -l <"$folder/named") -ge 3 ]] || fail 'the GPU check names no files'
while read -r file; do
  [[ -f ${bundles[0]}/perf${file#'$HERE'} ]] || fail "the GPU check's $file is not in it"
done <"$folder/named"

# The measurement of many cores: each program for each number of workers, and lines that are JSON.
TMPDIR=$folder bash "${bundles[0]}/perf/scaling.sh" --quick --workers 1,9999 --out "$folder/out" 2>"$folder/said" ||
  fail "$(cat "$folder/said")"
programs=(melflow decoding)
if [[ -x ${bundles[0]}/libexec/melflow_hand_fused ]]; then programs+=(hand-fused copy); fi # only with FFTW
grep -q '9999 workers are omitted' "$folder/said" || fail 'it does not say that there are not so many cores'
[[ $(grep -c '^{.*"workers": 1, .*"start_seconds": [0-9.]*, "seconds": [0-9.]*, .*}$' "$folder"/out/scaling-*.jsonl) == "${#programs[@]}" ]] ||
  fail "not all programs were measured: $(cat "$folder"/out/scaling-*.jsonl)"
for program in "${programs[@]}"; do
  grep -Eq "^\| $program \| 1 \| [0-9]+ \|.* 1\.00 \|" "$folder"/out/scaling-*.md || fail "$program is not in the table"
done
if compgen -G "$folder/melflow-scaling.*" >/dev/null; then fail 'the measurement left its folder behind'; fi

# ---- where the machine reports an older glibc, another C library, or nothing
for version in 'glibc 2.17' 'musl' ''; do
  printf '#!/bin/sh\n%s\n' "${version:+echo $version}" >"$folder/old/getconf"
  chmod +x "$folder/old/getconf"
  PATH=$folder/old:$PATH loads_own_glibc || fail "takes the machine's glibc: '$version'"
  rm -f "$folder/root/data/old.h5"
  PATH=$folder/old:$PATH job "$folder/root" old.h5 "$bin/melflow" || fail "a job failed: '$version'"
  same_rows old || fail "other rows: '$version'"
done

# ---- where there is only a shell, and no network
busybox=$(command -v busybox || true)
mkdir "$folder"/root/{bin,dev,proc}
touch "$folder/root/dev/null"
in_root() {
  unshare -rmnpf sh -c 'mount -t proc proc "$0/proc" && PATH=/bin exec '"$(command -v chroot)"' "$0" "$@"' \
    "$folder/root" "$@"
}
if [[ -n $busybox ]]; then cp "$busybox" "$folder/root/bin/sh"; fi
if ! in_root sh -c true 2>/dev/null; then
  echo 'bundle: the empty root was left out: no static busybox, or namespaces are not allowed'
  exit 0
fi
bin_there=${bin#"$folder/root"}
job '' bare.h5 in_root "$bin_there/melflow" || fail 'a job failed in an empty root'
same_rows bare || fail 'other rows in an empty root'
if [[ -x $bin/melflow_gpu_bench ]]; then
  status=0
  in_root "$bin_there/melflow_gpu_bench" --list 2>"$folder/said" || status=$?
  [[ $status == 77 ]] || fail "--list in an empty root gave $status: $(cat "$folder/said")"
fi
