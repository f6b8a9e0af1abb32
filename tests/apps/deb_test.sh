#!/usr/bin/env bash
# Tests the manual page and the completion of the program's package.
#
# In:  tests/apps/deb_test.sh PROGRAM REPOSITORY
set -euo pipefail
program=$1 repository=$2

fail() {
  echo "deb_test: $*" >&2
  exit 1
}

page=$(bash "$repository/apps/deb/man.sh" "$program")
for line in '.SH MELFLOW RUN' '.SH MELFLOW VERIFY-PARITY' '.SH MELFLOW BENCH' '  \\-\\-set NODE.OPTION=VALUE'; do
  grep -q -- "^$line" <<<"$page" || fail "the manual page has no '$line'"
done
odd=$(grep -E "^['.]" <<<"$page" | grep -vE '^[.](TH|SH|B|I|nf|fi)( |$)' || true)
[[ -z $odd ]] || fail "lines of text that are taken for requests: $odd"

PATH=$(dirname "$program"):$PATH
source "$repository/apps/deb/completion.bash"
expect() { # typed so far, required completion, forbidden completion
  read -ra COMP_WORDS <<<"$1"
  [[ $1 != *' ' ]] || COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  _melflow
  [[ " ${COMPREPLY[*]} " == *" $2 "* ]] || fail "'$1' is not completed to $2: ${COMPREPLY[*]}"
  [[ " ${COMPREPLY[*]} " != *" $3 "* ]] || fail "'$1' is completed to $3"
}
expect 'melflow ver' verify run
expect 'melflow ver' verify-parity run
expect 'melflow run --se' --set --json
expect 'melflow stages hdf' hdf5_write mel
