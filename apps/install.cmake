# What `cmake --install` puts where: the program, its pipelines, and a package for find_package(melflow), whose
# components are, each with all that stands before it but that config and stages need not each other:
#   pipeline   melflow::pipeline   the framework; needs oneTBB and fmt alone
#   config     melflow::config     YAML to plans
#   stages     melflow::stages     all stages, as objects, since they register themselves in whatever they are linked
#                                  into; with melflow::mel (samples to rows on the processor), melflow::cuda_host
#                                  (devices, as stages see them) and, in a build that has kernels, melflow::cuda
#   program    melflow::program    all verbs, reports and documentation, as objects; melflow_add_program(NAME SOURCE...)
#                                  makes the whole program with further stages in it
set(MELFLOW_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/melflow)

install(TARGETS melflow RUNTIME COMPONENT runtime)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/config/pipelines/ DESTINATION ${CMAKE_INSTALL_DATADIR}/melflow/pipelines
  COMPONENT runtime FILES_MATCHING PATTERN *.yaml)
install(FILES ${PROJECT_SOURCE_DIR}/tests/golden/presets.json parity/parity_reference.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/melflow/parity COMPONENT runtime)
install(DIRECTORY own_stage/ DESTINATION ${CMAKE_INSTALL_DATADIR}/melflow/own_stage COMPONENT runtime)

# melflow_options only carries what this build was compiled with (warnings, sanitizers).
set(component_pipeline melflow_pipeline)
set(component_config melflow_config)
set(component_stages melflow_stages melflow_mel melflow_cuda_host melflow_options)
if(TARGET melflow_cuda)
  list(APPEND component_stages melflow_cuda)
endif()
set(component_program melflow_program)
foreach(component pipeline config stages program)
  foreach(target ${component_${component}})
    string(REPLACE melflow_ "" name ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  endforeach()
  install(TARGETS ${component_${component}} EXPORT melflow_${component}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR}/melflow)
  install(EXPORT melflow_${component} NAMESPACE melflow:: FILE melflow_${component}.cmake
    DESTINATION ${MELFLOW_PACKAGE_DIR})
endforeach()

foreach(room pipeline stages cuda config)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${room}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/melflow/${room}
    FILES_MATCHING PATTERN *.h)
endforeach()
install(FILES program.h exit_codes.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/melflow/apps)

configure_package_config_file(melflowConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/melflowConfig.cmake
  INSTALL_DESTINATION ${MELFLOW_PACKAGE_DIR} PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/melflowConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/melflowConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/melflowConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/dependencies.cmake melflow_add_program.cmake main.cpp DESTINATION ${MELFLOW_PACKAGE_DIR})
