// Hands libFuzzer's inputs to the target that this program was built for. An exception that leaves it is a finding.
#include "fuzz/fuzz_target.hpp"

#include <cstddef>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kith::fuzz::KITH_FUZZ_TARGET({data, size});
  return 0;
}
