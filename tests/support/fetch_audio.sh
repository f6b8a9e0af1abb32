#!/usr/bin/env bash
# Unpacks Debian packages of recordings into a folder; installs nothing.
#
# In:  DIR PACKAGE...
# Out: DIR/PACKAGE/usr/share/..., the package's files unchanged. A package that exists already and is
#      complete is left alone, so this can be called before every test run.
#
# Needs no root: where the machine has no package lists, they are fetched into DIR.
set -euo pipefail

if (($# < 2)); then
  echo "usage: fetch_audio.sh DIR PACKAGE..." >&2
  exit 2
fi
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift

exec 9>"$dir/.lock"
flock 9 # two test runs may start at the same time

# Private lists, for a machine without any, or a user who may not update them.
private_apt=(-o "Dir::State::Lists=$dir/.apt/lists" -o "Dir::Cache=$dir/.apt/cache"
  -o "APT::Sandbox::User=")

download() { # PACKAGE: its .deb into the current folder
  # Prints a harmless warning when apt's own user cannot write here.
  apt-get download "$1" >&2 && return
  mkdir -p "$dir/.apt/lists/partial" "$dir/.apt/cache/archives/partial"
  apt-get "${private_apt[@]}" update >&2
  apt-get "${private_apt[@]}" download "$1" >&2
}

complete() { # PACKAGE: whether it was unpacked before and has all its files
  local stamp="$dir/$1/.complete"
  [[ -f $stamp ]] && [[ $(find "$dir/$1" -type f | wc -l) -ge $(<"$stamp") ]]
}

for package in "$@"; do
  complete "$package" && continue
  part="$dir/.$package.part"
  rm -rf "$part" "${dir:?}/$package"
  mkdir -p "$part"
  (cd "$part" && download "$package")
  debs=("$part"/*.deb)
  if [[ ! -s ${debs[0]} ]]; then
    echo "fetch_audio.sh: no package came for $package" >&2
    exit 1
  fi
  dpkg-deb -x "${debs[0]}" "$part/tree"
  find "$part/tree" -type f | wc -l >"$part/tree/.complete"
  mv "$part/tree" "$dir/$package"
  rm -rf "$part"
done
