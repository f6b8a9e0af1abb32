#!/usr/bin/env bash
# Unpacks packages from another Debian release, or for another processor. Installs nothing.
#
# In:  apps/unpack_debian.sh [--arch ARCH | --source] RELEASE COMPONENT FOLDER PACKAGE..., such as
#        trixie main FOLDER libpython3.13-dev; on Debian, with the network. Uses the mirror of this system and package
#        lists of its own.
#        --arch     for this processor, such as arm64; default: that of this system
#        --source   sources, with Debian's patches; PACKAGE: names of source packages
# Out: the packages' files in FOLDER; of sources, FOLDER/PACKAGE.
set -euo pipefail

die() {
  echo "unpack_debian: $*" >&2
  exit 1
}

options=() type=deb
case ${1:-} in
  --arch) [[ $# -ge 2 ]] && options=(-o "APT::Architecture=$2") && shift 2 ;;
  --source) type=deb-src && shift ;;
esac
[[ $# -ge 4 && $1 != -* ]] ||
  die "usage: unpack_debian.sh [--arch ARCH | --source] RELEASE COMPONENT FOLDER PACKAGE..."
release=$1 component=$2 folder=$3
shift 3
for tool in apt-get dpkg; do
  command -v "$tool" >/dev/null || die "there is no $tool"
done
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' |
  awk '!/security/ && !found++')
[[ -n $mirror ]] || die "apt-get knows no mirror of Debian: is this Debian, and was apt-get update run?"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$folder"
echo "$type [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release $component" >"$work/sources.list"
# Without the status of this system, whose newer versions apt would prefer.
apt() {
  apt-get -q -o APT::Sandbox::User=root -o "Dir::State::Lists=$work/lists" \
    -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::status=/dev/null -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "${options[@]}" "$@"
}
apt update || die "apt-get update failed: is the network there?"
folder=$(cd "$folder" && pwd)
cd "$work"
if [[ $type == deb-src ]]; then
  # Fails where the mirror lacks the authors' signatures, which nothing here reads; dpkg-source misses other files.
  apt source --download-only "$@" || true
  for description in *.dsc; do
    source=$folder/$(sed -n 's/^Source: //p' "$description")
    rm -rf "$source"
    dpkg-source --no-copy --no-check -x "$description" "$source"
  done
else
  apt download "$@"
  for package in *.deb; do dpkg -x "$package" "$folder"; done
fi
