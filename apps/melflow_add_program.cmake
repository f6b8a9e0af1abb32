#   melflow_add_program(NAME SOURCE...)
# makes the program NAME: melflow with all its verbs and stages, and the stages that the sources register.
set(MELFLOW_MAIN ${CMAKE_CURRENT_LIST_DIR}/main.cpp)

function(melflow_add_program name)
  add_executable(${name} ${MELFLOW_MAIN} ${ARGN})
  # Objects: a stage that registers itself is in the program although nothing calls it by name.
  target_link_libraries(${name} PRIVATE melflow::program melflow::config melflow::stages)
  # Where pipelines and vectors were installed to, which are not beside this program.
  target_compile_definitions(${name} PRIVATE MELFLOW_SHARED_FILES="${MELFLOW_SHARED_FILES}")
endfunction()
