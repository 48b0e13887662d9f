// What work takes of which a part depends on what is left.
#pragma once

#include "core/footprint.hpp"

#include <algorithm>
#include <cstdint>

namespace kith {

// Work that takes `behind`, beside pieces for each of which a share of what is left is taken, and `each` at least.
inline Footprint beside_share(const Footprint& behind, int64_t share, const Footprint& each) {
  const auto beside = [=](int64_t needed, int64_t least) {
    return least == 0 ? 0 : std::max(needed / (share - 1) + 1, least);
  };
  return behind.beside({beside(behind.host, each.host), beside(behind.device, each.device)});
}

}  // namespace kith
