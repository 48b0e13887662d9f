# Installs the library in components: `runtime` (libkith.so.*), `dev` (headers, the link, a static library, CMake's and
# pkg-config's files); cli/ adds `program` and python/ `python`.
include(CMakePackageConfigHelpers)

install(TARGETS kith EXPORT kithTargets
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev
  ARCHIVE COMPONENT dev)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/kith" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev)

set(kith_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/kith")
install(EXPORT kithTargets NAMESPACE kith:: DESTINATION "${kith_cmake_dir}" COMPONENT dev)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/kithConfig.cmake.in" "${CMAKE_CURRENT_BINARY_DIR}/kithConfig.cmake"
  INSTALL_DESTINATION "${kith_cmake_dir}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/kithConfigVersion.cmake" COMPATIBILITY ${kith_compatible})
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/kithConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/kithConfigVersion.cmake"
  DESTINATION "${kith_cmake_dir}" COMPONENT dev)

# Collections have components of their own: `collection` and `collection-dev`, and targets that the package kith loads where
# its component `collection` is asked for.
if(KITH_HAS_COLLECTION)
  install(TARGETS kith_collection EXPORT kithCollectionTargets
    LIBRARY COMPONENT collection NAMELINK_COMPONENT collection-dev
    ARCHIVE COMPONENT collection-dev)
  install(EXPORT kithCollectionTargets NAMESPACE kith:: DESTINATION "${kith_cmake_dir}" COMPONENT collection-dev)
endif()

# kith.pc finds its prefix from where it lies, so that an installation may be moved. A static library is of no use
# without what it needs, so that plain `pkg-config --libs` names that too.
set(kith_pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
foreach(place LIBDIR INCLUDEDIR)
  string(TOLOWER ${place} name)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${place}}")
    set(kith_pc_${name} "${CMAKE_INSTALL_${place}}")
  else()
    set(kith_pc_${name} "\${prefix}/${CMAKE_INSTALL_${place}}")
  endif()
endforeach()
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(kith_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH up "/${kith_pc_dir}" "/")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(kith_pc_prefix "\${pcfiledir}/${up}")
endif()
set(kith_pc_needs "-lfmt -lhwy -pthread -lstdc++ -lm")
if(KITH_HAS_ZLIB)
  string(APPEND kith_pc_needs " -lz")
endif()
if(KITH_HAS_CUDA AND KITH_CUDA_RUNTIME STREQUAL "SHARED")
  string(APPEND kith_pc_needs " -L${CUDAToolkit_LIBRARY_DIR} -lcudart")
elseif(KITH_HAS_CUDA)
  string(APPEND kith_pc_needs " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
endif()
if(BUILD_SHARED_LIBS)
  set(kith_pc_libs "-L\${libdir} -lkith")
else()
  set(kith_pc_libs "-L\${libdir} -lkith ${kith_pc_needs}")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/kith.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/kith.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/kith.pc" DESTINATION "${kith_pc_dir}" COMPONENT dev)
if(KITH_HAS_COLLECTION)
  set(kith_collection_pc_libs "-L\${libdir} -lkith-collection")
  if(NOT BUILD_SHARED_LIBS)
    string(APPEND kith_collection_pc_libs " -lsqlite3")
  endif()
  configure_file("${PROJECT_SOURCE_DIR}/cmake/kith-collection.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/kith-collection.pc" @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/kith-collection.pc" DESTINATION "${kith_pc_dir}" COMPONENT collection-dev)
endif()
