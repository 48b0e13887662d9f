# kith_join_sources(TARGET [EXCEPT REGEX]): compiles the C++ files of a folder eight at a time, where KITH_JOIN_SOURCES is
# on.
#
# Most of a file's compile time goes into the headers that all of them include, and into what those instantiate. Files of
# one folder share it, so that no two of them may give one name to two things (tests/structure/test_names.py). What Highway
# includes once for each instruction set stays alone, and so does what the regular expression matches.
function(kith_join_sources target)
  cmake_parse_arguments(PARSE_ARGV 1 join "" "EXCEPT" "")
  if(NOT KITH_JOIN_SOURCES)
    return()
  endif()
  set(most_joined 8)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(NOT source MATCHES "\\.cpp$" OR (join_EXCEPT AND source MATCHES "${join_EXCEPT}"))
      continue()
    endif()
    get_filename_component(source "${source}" ABSOLUTE)
    file(STRINGS "${source}" includes_itself REGEX "HWY_TARGET_INCLUDE" LIMIT_COUNT 1)
    if(includes_itself)
      continue()
    endif()
    get_filename_component(folder "${source}" DIRECTORY)
    file(RELATIVE_PATH folder "${CMAKE_CURRENT_SOURCE_DIR}" "${folder}")
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    math(EXPR count_${folder} "${count_${folder}} + 1" OUTPUT_FORMAT DECIMAL)
    math(EXPR group "(${count_${folder}} - 1) / ${most_joined}")
    set_source_files_properties("${source}" TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP "${folder}_${group}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
