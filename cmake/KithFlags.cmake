# Flags that every target of Kith is compiled with.
#
# -ffp-contract=off: results promise the same bits everywhere, so the compiler must not fuse a multiplication and an
# addition on its own; where fusing is wanted the code says so.
add_library(kith_flags INTERFACE)
target_compile_options(kith_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off -Wall -Wextra -Wshadow -Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra>)
# g++ 12 sees overlapping copies in std::string's operator+ where there are none.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(kith_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(KITH_WERROR)
  target_compile_options(kith_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
if(KITH_SANITIZE)
  target_compile_options(kith_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${KITH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(kith_flags INTERFACE -fsanitize=${KITH_SANITIZE})
endif()
