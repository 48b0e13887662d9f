# Toolchain file: compiles for the architecture that this machine is not, with Debian's own cross compiler, and runs what
# it built under qemu-user. x86-64 makes programs for ARM, ARM for x86-64. `scripts/setup --other-arch` installs all of it.
set(CMAKE_SYSTEM_NAME Linux)
if(CMAKE_HOST_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CMAKE_SYSTEM_PROCESSOR x86_64)
else()
  set(CMAKE_SYSTEM_PROCESSOR aarch64)
endif()
set(CMAKE_C_COMPILER ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${CMAKE_SYSTEM_PROCESSOR};-cpu;max)
# Packages of this machine's own architecture must not be found in place of missing ones.
set(CMAKE_IGNORE_PREFIX_PATH /usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu)
