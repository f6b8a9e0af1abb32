#   melflow_add_program(NAME SOURCE...)
# makes the program NAME: melflow with all its verbs and stages, and the stages registered in the sources.
set(MELFLOW_MAIN ${CMAKE_CURRENT_LIST_DIR}/main.cpp)

function(melflow_add_program name)
  add_executable(${name} ${MELFLOW_MAIN} ${ARGN})
  target_link_libraries(${name} PRIVATE melflow::melflow)
endfunction()
