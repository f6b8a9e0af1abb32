#!/usr/bin/env bash
# Installs the Debian packages that melflow is built from, where they are missing; and ccache, so that nothing is
# compiled twice.
#
# In:  apps/install_deps.sh [--ffmpeg] [--python] [--tests] [--perf] [--bundle] [--deb] [--bare-root] [--dry-run]
#        --ffmpeg   also FFmpeg, which decodes M4A, WebM and WMA
#        --python   also what pip needs to build the Python package: Python, its headers and environments
#        --tests    also what the tests need: Python with h5py and NumPy, which must read the output,
#                   its headers and a shell that needs no library
#        --perf     also what the benchmarks need: Python and google-benchmark
#        --bundle   also what apps/bundle/fetch_cuda.sh needs: pip and unzip
#        --deb      also what `cpack -G DEB` needs: dpkg-dev
#        --bare-root   also what tests/bare_root.sh needs: debootstrap
#        --dry-run  only print what is missing, one package a line
# Out: only the packages. When all of them are installed it does nothing and needs neither
#      network nor privileges.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config
  libtbb-dev libsndfile1-dev libflac-dev libmpg123-dev libogg-dev libfftw3-dev libhdf5-dev libyaml-cpp-dev libsoxr-dev libre2-dev libpng-dev
  libfmt-dev libcli11-dev nlohmann-json3-dev libxxhash-dev libdeflate-dev zlib1g-dev liburing-dev
  doctest-dev ccache
)
dry_run=0
for argument in "$@"; do
  case $argument in
    --ffmpeg) packages+=(libavformat-dev libavcodec-dev libavutil-dev ffmpeg) ;;
    --python) packages+=(python3 python3-dev python3-venv) ;;
    --tests) packages+=(python3 python3-dev python3-venv python3-h5py python3-numpy python3-xxhash busybox-static) ;;
    --perf) packages+=(python3 libbenchmark-dev) ;;
    --bundle) packages+=(python3-pip unzip) ;;
    --deb) packages+=(dpkg-dev) ;;
    --bare-root) packages+=(debootstrap) ;;
    --dry-run) dry_run=1 ;;
    *)
      echo "usage: $0 [--ffmpeg] [--python] [--tests] [--perf] [--bundle] [--deb] [--bare-root] [--dry-run]" >&2
      exit 2
      ;;
  esac
done

die() {
  echo "install_deps: $*" >&2
  exit 1
}

command -v dpkg-query >/dev/null ||
  die "this is not a Debian system: install by hand what corresponds to: ${packages[*]}"

is_installed() {
  local status
  # On a multi-arch system a package may be listed once for each architecture.
  status=$(dpkg-query -W -f='${db:Status-Status}\n' "$1" 2>/dev/null) || return 1
  grep -qx installed <<<"$status"
}

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [[ $dry_run == 1 ]]; then
  [[ ${#missing[@]} == 0 ]] || printf '%s\n' "${missing[@]}"
  exit 0
fi
[[ ${#missing[@]} == 0 ]] && exit 0

as_root=()
if [[ $(id -u) != 0 ]]; then
  command -v sudo >/dev/null ||
    die "packages are missing, and neither root nor sudo is at hand." \
      "As root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
# `env` comes after sudo, which drops the variable; the timeout waits for another apt to finish.
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"
}

echo "install_deps: installing ${missing[*]}"
apt update || die "apt-get update failed: is the network there?"
apt install -y --no-install-recommends "${missing[@]}" ||
  die "apt-get could not install: ${missing[*]}"
