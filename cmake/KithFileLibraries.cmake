# Libraries that some file formats need, used where they are found; sets KITH_HAS_ZLIB and KITH_HAS_HDF5. Without them
# these formats are an error that says so.
set(KITH_HAS_ZLIB OFF)
find_package(ZLIB QUIET)
if(ZLIB_FOUND)
  set(KITH_HAS_ZLIB ON)
endif()
message(STATUS "gzip files (zlib): ${KITH_HAS_ZLIB}")

# HDF5's module asks the C compiler; where the C library of HDF5 is linked, it is the shared one that is loaded at run
# time. KITH_HDF5_LIBRARY is its name with the version that the headers belong to.
option(KITH_HDF5 "Read and write HDF5 files where libhdf5 is found" ON)
set(KITH_HAS_HDF5 OFF)
if(KITH_HDF5)
  enable_language(C)
  find_package(HDF5 QUIET COMPONENTS C)
  foreach(library IN LISTS HDF5_C_LIBRARIES)
    if(library MATCHES "/libhdf5[^/]*[.]so")
      get_filename_component(real "${library}" REALPATH)
      get_filename_component(name "${real}" NAME)
      string(REGEX REPLACE "([.]so[.][0-9]+).*" "\\1" KITH_HDF5_LIBRARY "${name}")
    endif()
  endforeach()
  if(HDF5_FOUND AND KITH_HDF5_LIBRARY)
    set(KITH_HAS_HDF5 ON)
  endif()
endif()
message(STATUS "HDF5 files: ${KITH_HAS_HDF5} ${KITH_HDF5_LIBRARY}")
