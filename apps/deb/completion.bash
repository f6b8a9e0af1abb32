# Bash completion for melflow: verbs, options and stages as the program lists them, otherwise files.
_melflow() {
  local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words=
  if [[ $COMP_CWORD == 1 ]]; then
    words=$(melflow --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  *[A-Z].*/\1/p')
  elif [[ $word == -* ]]; then
    words=$(melflow "$verb" --help 2>/dev/null | grep -oE '^  (-[a-z],)?--[a-z-]+' | grep -oE -- '--[a-z-]+')
  elif [[ $verb == stages ]]; then
    words=$(melflow stages 2>/dev/null | sed -n 's/^\([a-z0-9_]*\)  .*/\1/p')
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o bashdefault -o default -F _melflow melflow
