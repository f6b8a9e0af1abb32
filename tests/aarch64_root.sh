#!/usr/bin/env bash
# Cross-compiles the program for 64-bit Arm in a bare Debian 12, and runs it and the tests of values there in qemu. A
# system of its own, because packages of two architectures exclude each other (libhdf5-dev).
#
# In:  tests/aarch64_root.sh
# Out: build/aarch64-root/root, the system, and build/aarch64-root/build, its build/; both are kept. Exit status 0 when
#      all is right, 77 with the reason where no such system can be made. About 20 minutes on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repository=$PWD state=$PWD/build/aarch64-root
root=$state/root
. tests/support/debian_root.sh

there='
  set -euo pipefail
  export DEBIAN_FRONTEND=noninteractive
  if ! [[ -e /installed ]]; then
    dpkg --add-architecture arm64
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends ccache cmake ninja-build pkgconf:arm64 python3 g++-aarch64-linux-gnu \
      qemu-user-static doctest-dev libcli11-dev nlohmann-json3-dev \
      $(printf "%s:arm64 " libc6-dev libstdc++-12-dev libtbb-dev libsndfile1-dev libflac-dev libmpg123-dev libogg-dev \
        libfftw3-dev libhdf5-dev libyaml-cpp-dev libsoxr-dev libre2-dev libpng-dev libfmt-dev libxxhash-dev \
        libdeflate-dev zlib1g-dev liburing-dev)
    touch /installed
  fi
  cd "$1"
  . apps/use_ccache.sh
  cmake --preset aarch64
  cmake --build --preset aarch64 --target melflow melflow_numerics_tests melflow_numerics_own_tests
  qemu-aarch64-static build/aarch64/bin/melflow --version
  cd build/aarch64
  cp "$1/tests/support/tones.yaml" .
  qemu-aarch64-static bin/melflow run -q tones.yaml
  qemu-aarch64-static bin/melflow verify rows.h5
  ctest --output-on-failure --label-regex "^release$|" --tests-regex "^numerics" --timeout 1500 -j 2
'
mkdir -p "$state/build"
[[ -d $root ]] || make_root "$root" bookworm apt
use_network "$root"
mkdir -p "$root$repository"

enter() {
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --bind "$repository" "$root$repository"
  mount -o remount,bind,ro "$root$repository"
  mount --bind "$state/build" "$root$repository/build"
  exec chroot "$root" env -i "${environment[@]}" bash -c "$there" bash "$repository"
}
exec "${apart[@]}" bash -euc "$(declare -p root repository state environment there); $(declare -f enter); enter"
