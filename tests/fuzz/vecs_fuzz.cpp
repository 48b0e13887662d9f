#include "fuzz/fuzz_target.hpp"
#include "fuzz/read_both_ways.hpp"

#include <array>

namespace kith::fuzz {

void vecs(Input input) {
  static constexpr std::array<const char*, 3> kNames{"input.fvecs", "input.bvecs", "input.ivecs"};
  if (input.empty()) return;
  read_both_ways(kNames[input[0] % kNames.size()], input.subspan(1));
}

}  // namespace kith::fuzz
