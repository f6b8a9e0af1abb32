#!/usr/bin/env bash
# Installs the packages of `cpack -G DEB` in a bare Debian 12, runs the program, and removes them again.
#
# In:  tests/deb_root.sh [FOLDER]     with the packages; default: build/release
# Out: build/deb-root/root, the system, which is kept; exit status 0 when all is right and nothing is left, 77 with the
#      reason where no such system can be made. Prints the time from the installation to the first rows.
set -euo pipefail
packages=$(realpath "${1:-build/release}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD/build/deb-root/root
. tests/support/debian_root.sh

[[ -d $root ]] || make_root "$root" bookworm apt
use_network "$root"
rm -rf "$root/packages"
mkdir "$root/packages"
cp "$packages"/melflow*.deb "$root/packages" || skip "$packages has no packages; make them: cd build/release && cpack -G DEB"
cp tests/support/tones.yaml "$root/packages"
there='
  set -e
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get purge -y -qq "melflow*" >/dev/null 2>&1 || true
  apt-get autoremove -y -qq --purge >/dev/null
  dpkg --get-selections | sort >/before
  started=$(date +%s%N)
  apt-get install -y -qq --no-install-recommends /packages/melflow_*.deb >/dev/null
  rm -rf /job
  mkdir /job
  cd /job
  cp /packages/tones.yaml .
  melflow run -q tones.yaml
  echo "first rows $((($(date +%s%N) - started) / 1000000)) ms after apt was started"
  melflow verify rows.h5
  melflow validate demo --var DATA=. --var OUT=o.h5 >/dev/null # a pipeline that is shipped
  files=$(dpkg -L melflow | grep -E "man1|completions" | wc -l)
  [ "$files" -gt 0 ] || { echo "neither manual page nor completion"; exit 1; }
  apt-get install -y -qq --no-install-recommends /packages/melflow-dev_*.deb >/dev/null
  dpkg -L melflow melflow-dev | sort -u >/files
  apt-get purge -y -qq melflow melflow-dev >/dev/null
  apt-get autoremove -y -qq --purge >/dev/null
  dpkg --get-selections | sort | diff /before - || { echo "packages are left"; exit 1; }
  while read -r file; do
    if [ -f "$file" ]; then echo "left: $file"; exit 1; fi
  done </files
  echo "installed and removed"
'
enter() {
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  exec chroot "$root" env -i "${environment[@]}" bash -c "$there"
}
exec "${apart[@]}" bash -euc "$(declare -p root environment there); $(declare -f enter); enter"
