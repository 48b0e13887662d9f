# zlib, for compressed files, used where it is found; sets KITH_HAS_ZLIB. Without it such files are an error that says
# so.
set(KITH_HAS_ZLIB OFF)
find_package(ZLIB QUIET)
if(ZLIB_FOUND)
  set(KITH_HAS_ZLIB ON)
endif()
message(STATUS "compressed files (zlib): ${KITH_HAS_ZLIB}")
