# To be sourced: builds from here on keep in ccache what they compiled, so that the program, its tests and the Python
# package do not compile the same files again.
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache}
  export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
  # Without these ccache keeps nothing that was compiled with a precompiled header.
  sloppiness=$(ccache --get-config sloppiness)
  export CCACHE_SLOPPINESS=${sloppiness:+$sloppiness, }pch_defines,time_macros
  # Without this a file is compiled again for each folder below build/, whose path is in its command.
  [[ -n $(ccache --get-config base_dir) ]] || export CCACHE_BASEDIR=$PWD
fi
