#!/usr/bin/env bash
# Runs the tests in a Debian 12 that has only its base system and the packages of apps/install_deps.sh, so that no
# tool of this machine hides a package that is missing in the list.
#
# In:  tests/bare_root.sh [ARGUMENT...]     arguments of tests/run.sh; default: release
# Out: build/bare-root/root, the system, and build/bare-root/build, its build/. Both are kept; the system is made
#      again when apps/install_deps.sh has changed, since it would still have packages removed from the list.
#      The exit status is that of tests/run.sh, or 77 with the reason where no such system can be made: this takes the
#      rights to mount and chroot, and Debian 12 among apt's sources.
#
# Apt's sources and proxies, certificates and the compiler cache come from this machine. Everything is mounted in its
# own namespace, which ends with the script in any case; the source tree is read-only there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repository=$PWD state=$PWD/build/bare-root
root=$state/root
[[ $# -gt 0 ]] || set -- release

. tests/support/debian_root.sh

mkdir -p "$state/build"
exec 9>"$state/lock"
flock 9
if ! cmp -s apps/install_deps.sh "$root/install_deps.sh"; then
  make_root "$root" bookworm apt
  cp apps/install_deps.sh "$root"
fi

use_network "$root"
environment+=(CCACHE_DIR=/ccache)
settings=${XDG_CONFIG_HOME:-$HOME/.config}/ccache/ccache.conf
if [[ -e $settings ]]; then cp "$settings" "$root/etc/ccache.conf"; fi
cache=$(ccache --get-config cache_dir 2>/dev/null) || cache=$state/ccache
mkdir -p "$cache" "$root/ccache" "$root$repository"

enter() {
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount --bind "$cache" "$root/ccache"
  mount --bind "$repository" "$root$repository"
  mount -o remount,bind,ro "$root$repository"
  mount --bind "$state/build" "$root$repository/build"
  exec chroot "$root" env -i "${environment[@]}" bash "$repository/tests/run.sh" "$@"
}
printf '\n== bare Debian 12: %s\n' "$*"
"${apart[@]}" bash -euc "$(declare -p root cache repository state environment); $(declare -f enter); "'enter "$@"' bash "$@" &
trap 'kill -KILL $! 2>/dev/null' EXIT # KILL, because it ignores other signals
status=0
wait $! || status=$?
trap - EXIT
exit "$status"
