# Sourced by gpu.sh and scaling.sh: a working folder, and the programs of a bundle.
#
# In:  here (perf/), work and bundle ("" for the defaults that those scripts name), is_quick; die(), which ends the script.
# Out: work, a folder; made_work, 1 where it is to be removed; BIN, the folder of the programs.

# make_work NAME GIGABYTES: in memory, where nothing waits for a disk, if so much is at most half of what is free.
make_work() {
  local place=${TMPDIR:-/tmp} free available
  made_work=0
  if [[ -z $work ]]; then
    free=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
    available=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
    if [[ -z ${TMPDIR:-} && ${free:-0} -gt $(($2 * 2000000)) && $available -gt $(($2 * 4000000)) ]]; then place=/dev/shm; fi
    work=$(mktemp -d "$place/melflow-$1.XXXXXX")
    made_work=1
  fi
  # A quick run makes smaller files, which other calls must not use.
  if [[ $is_quick == 1 && $made_work == 0 ]]; then work=$work/quick; fi
  mkdir -p "$work"
  work=$(cd "$work" && pwd)
}

# use_bundle PROGRAM: unpacks the bundle, or builds one where there is none, and sets BIN to its programs, PROGRAM among them.
use_bundle() {
  if [[ -z $bundle && -x $here/../bin/$1 ]]; then
    bundle=$(cd "$here/.." && pwd)
  elif [[ -z $bundle ]]; then
    echo 'no --bundle: building one first' >&2
    (
      cd "$here/.."
      cmake --preset release -DMELFLOW_CUDA=ON
      cmake --build --preset release --target bundle
    ) >&2
    local bundles=("$here"/../build/release/melflow-bundle-*.tar.gz)
    bundle=${bundles[0]}
  fi
  if [[ -f $bundle ]]; then
    mkdir -p "$work/bundle"
    tar xzf "$bundle" -C "$work/bundle" --strip-components=1 || die "$bundle is no bundle"
    bundle=$work/bundle
  fi
  [[ -x $bundle/bin/$1 ]] || die "$bundle holds no $1: is it a bundle?"
  # Uses the programs directly where they start on this machine, else through the bundle's own glibc.
  export BIN=$bundle/libexec
  "$BIN/melflow" --version >/dev/null 2>&1 || BIN=$bundle/bin
}
