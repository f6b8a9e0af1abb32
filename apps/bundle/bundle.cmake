# The target `bundle` packs the program, the programs of the GPU check and the libraries of both into one archive that
# runs where it is unpacked. In: the built programs. Out: melflow-bundle-VERSION-ARCHITECTURE.tar.gz in the build
# folder. The preset `bundle` uses the CUDA version that most drivers can run.
set(MELFLOW_BUNDLE_NAME melflow-bundle-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(bundled)
foreach(program melflow melflow_make_corpus melflow_compare_rows melflow_measure_child melflow_gpu_bench
                melflow_device_tests melflow_hand_fused melflow_decode_only)
  if(TARGET ${program})
    list(APPEND bundled ${program})
    # Uses DT_RPATH, which also applies to the dependencies of the libraries in that folder.
    set_property(TARGET ${program} APPEND PROPERTY BUILD_RPATH "$ORIGIN/../lib")
    target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
  endif()
endforeach()
list(TRANSFORM bundled REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE files)

# The oldest driver by minor version compatibility: https://docs.nvidia.com/deploy/cuda-compatibility
set(needs "no CUDA")
if(MELFLOW_HAS_CUDA AND CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13)
  set(needs "NVIDIA's driver 525 or later")
elseif(MELFLOW_HAS_CUDA)
  set(needs "NVIDIA's driver 580 or later (525: bash apps/bundle/build.sh)")
endif()

add_custom_target(bundle
  COMMAND ${CMAKE_COMMAND} -D "PROGRAMS=${files}" -D "NAME=${MELFLOW_BUNDLE_NAME}"
          -D "SOURCE=${PROJECT_SOURCE_DIR}" -D "BINARY=${PROJECT_BINARY_DIR}" -D "STRIP=${CMAKE_STRIP}"
          -D "NEEDS=${needs}"
          -P ${PROJECT_SOURCE_DIR}/apps/bundle/make_bundle.cmake
  COMMENT "Bundle ${MELFLOW_BUNDLE_NAME}.tar.gz" VERBATIM)
add_dependencies(bundle ${bundled})
