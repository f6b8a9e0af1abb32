#!/usr/bin/env bash
# Unpacks packages from another Debian release. Installs nothing.
#
# In:  apps/unpack_debian.sh RELEASE COMPONENT FOLDER PACKAGE..., such as trixie main FOLDER libpython3.13-dev; on
#      Debian, with the network. Uses the mirror of this system and package lists of its own.
# Out: the packages' files in FOLDER.
set -euo pipefail

die() {
  echo "unpack_debian: $*" >&2
  exit 1
}

[[ $# -ge 4 && $1 != -* ]] || die "usage: unpack_debian.sh RELEASE COMPONENT FOLDER PACKAGE..."
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
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release $component" >"$work/sources.list"
# Without the status of this system, whose newer versions apt would prefer.
apt() {
  apt-get -q -o APT::Sandbox::User=root -o "Dir::State::Lists=$work/lists" \
    -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::status=/dev/null -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@"
}
apt update || die "apt-get update failed: is the network there?"
(cd "$work" && apt download "$@")
for package in "$work"/*.deb; do dpkg -x "$package" "$folder"; done
