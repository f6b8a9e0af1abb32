#   melflow_add_program(NAME SOURCE...)
# makes the program NAME: melflow with all its verbs and stages, and the stages registered in the sources.
set(MELFLOW_MAIN ${CMAKE_CURRENT_LIST_DIR}/main.cpp)

function(melflow_add_program name)
  add_executable(${name} ${MELFLOW_MAIN} ${ARGN})
  target_link_libraries(${name} PRIVATE melflow::melflow)
endfunction()

#   melflow_add_plugin(NAME SOURCE...)
# makes the plug-in NAME.so: the stages that the sources register, for `melflow --plugin` and the Python module. It needs
# no library that it does not call, and none of fmt, so that it runs where only melflow is.
function(melflow_add_plugin name)
  set(target melflow_plugin_${name}) # some names of stages are no names of targets
  add_library(${target} MODULE ${ARGN})
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${name})
  target_compile_definitions(${target} PRIVATE FMT_HEADER_ONLY)
  target_link_options(${target} PRIVATE LINKER:--as-needed)
  target_link_libraries(${target} PRIVATE melflow::melflow)
endfunction()
