#!/usr/bin/env bash
# Writes the program's manual page from the output of its --help.
#
# In:  apps/deb/man.sh PROGRAM > melflow.1
set -euo pipefail
program=$1

# Escapes text that troff would interpret: backslashes, and dots and quotes that begin a line.
literal() { sed 's/\\/\\e/g; s/^\([.'"'"']\)/\\\&\1/; s/-/\\-/g'; }

help=$("$program" --help)
mapfile -t verbs < <(sed -n 's/^  \([a-z][a-z-]*\)  *[A-Z].*/\1/p' <<<"$help")
cat <<END
.TH MELFLOW 1 "" "$("$program" --version | head -n 1)" "User Commands"
.SH NAME
melflow \- turns audio corpora into mel\-spectrogram features
.SH SYNOPSIS
.B melflow
.I VERB
[\fIOPTIONS\fR]
.SH DESCRIPTION
.nf
$(literal <<<"$help")
.fi
END
for verb in "${verbs[@]}"; do
  printf '.SH MELFLOW %s\n.nf\n%s\n.fi\n' "${verb^^}" "$("$program" "$verb" --help | literal)"
done
