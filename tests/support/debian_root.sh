# For scripts that work in folders with bare Debian systems: tests/bare_root.sh, tests/wheel_roots.sh.
#   skip REASON            ends the script with 77
#   "${apart[@]}" COMMAND  runs it with mounts that nobody else sees and that end with the script
#   sources, mirror        apt's sources on this machine, and its mirror of Debian
#   make_root ROOT RELEASE PACKAGE[,PACKAGE...]   makes a system with these packages
#   use_network ROOT       gives it apt's sources and proxies, resolver and certificates of this machine; sets
#                          `environment`, words for env
skip() {
  echo "$(basename "$0" .sh): skipped: $*"
  exit 77
}

apart=(unshare --mount --propagation private --pid --fork --kill-child)
"${apart[@]}" true 2>/dev/null || skip "no rights to mount (root, or CAP_SYS_ADMIN in a container)"
bash apps/install_deps.sh --bare-root || skip "debootstrap cannot be installed"
sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
  'Identifier: Packages' 'Origin: Debian' | sort -u)
mirror=$(awk '$3 == "bookworm" { print $2; exit }' <<<"$sources")
[[ -n $mirror ]] || skip "apt has no source of Debian 12 (bookworm)"

make_root() {
  rm -rf "$1"
  mkdir -p "$(dirname "$1")"
  "${apart[@]}" debootstrap --variant=minbase --include="$3" "$2" "$1" "$mirror" >"$1.log" 2>&1 || {
    rm -rf "$1"
    skip "debootstrap could not make the system: $(tail -n 3 "$1.log")"
  }
}

use_network() {
  echo "$sources" >"$1/etc/apt/sources.list"
  apt-config dump | grep -E '^Acquire::(http|https|Retries)\b' >"$1/etc/apt/apt.conf.d/90machine" || true
  environment=(HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
  local name file
  while read -r name; do
    environment+=("$name=${!name}")
  done < <(compgen -e | grep -E '_(proxy|PROXY)$|^PIP_')
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
    if [[ -e $file ]]; then cp -L "$file" "$1$file"; fi
  done
  # Not at its usual path, which belongs to the package of certificates.
  if [[ -e /etc/ssl/certs/ca-certificates.crt ]]; then
    cp -L /etc/ssl/certs/ca-certificates.crt "$1/certificates.crt"
    echo 'Acquire::https::CaInfo "/certificates.crt";' >>"$1/etc/apt/apt.conf.d/90machine"
    environment+=(SSL_CERT_FILE=/certificates.crt PIP_CERT=/certificates.crt)
  fi
}
