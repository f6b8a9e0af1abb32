#!/usr/bin/env bash
# Builds the site of these pages: build/site/index.html, to be read from the disk, without a server or a network, or put on any server.
#
# In:  docs/site.sh           takes its tools from PyPI (docs/site/requirements.txt) into build/site-env, once
#      docs/site.sh --check   also checks links, anchors and that nothing is loaded from elsewhere, in what was built
#      PYTHON: which Python, 3.11 or later; default: python3. With doxygen the reference of the C++ API is part of the site,
#      with a program in build/release, or MELFLOW_PROGRAM, that of its commands.
# Out: build/site; exit status 0, 1 where the pages are wrong, 77 where the tools cannot be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-python3} env=build/site-env

case ${1-} in
  '' | --check) ;;
  *) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' docs/site.sh >&2; exit 2 ;;
esac

missing() {
  echo "docs/site.sh: $1. Where there is no index of packages, make a folder of them elsewhere by" >&2
  echo "  pip download -r docs/site/requirements.txt -d FOLDER" >&2
  echo "and start this with PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER. \`python3 docs/site/pages.py --check\` checks links without packages." >&2
  exit 77
}

if ! cmp -s docs/site/requirements.txt "$env/requirements.txt"; then
  rm -rf "$env"
  "$python" -m venv "$env" || missing "$python makes no environment (apt-get install python3-venv)"
  "$env/bin/pip" install -q --disable-pip-version-check -r docs/site/requirements.txt || missing "the packages of the site cannot be had"
  cp docs/site/requirements.txt "$env/"
fi

program=${MELFLOW_PROGRAM:-build/release/bin/melflow}
[[ -x $program ]] || echo "docs/site.sh: there is no $program, so that the page of commands is empty" >&2
"$env/bin/python" docs/site/pages.py build/site-pages "$program"
reference='apt-get install doxygen, and build the site again'
if command -v doxygen >/dev/null; then
  bash tests/check.sh reference || echo "docs/site.sh: doxygen has warnings about the headers; the site has what it wrote" >&2
  reference='[reference](cpp/index.html)'
fi
sed -i "s|<!-- doxygen -->|$reference|" build/site-pages/native.md
rm -rf build/site-pages/cpp
[[ $reference == apt* ]] || cp -r build/reference/html build/site-pages/cpp

NO_MKDOCS_2_WARNING=1 "$env/bin/mkdocs" build --quiet --strict --clean --config-file docs/site/mkdocs.yml
rm -f build/site/404.html  # its links are those of a site at the root of a server
[[ ${1-} != --check ]] || "$env/bin/python" docs/site/check.py build/site
echo "build/site/index.html"
