// AMX's tiles as a block of 32 by 32 uses them, for as long as this lives: 0-3 are sums, 4 and 5 queries, 6 and 7 rows.
// For x86-64 alone.
#pragma once

#include "kernels/panels/instruction_family.hpp"
#include "kernels/panels/x86_intrinsics.hpp"

#include <cstdint>

namespace kith {

class TileSetup {
 public:
  // Takes `units` groups of four bytes of columns at a time, at most 16. Registers before the first of queries hold
  // sums, those from the first of rows on rows.
  KITH_FOR("amx-tile") explicit TileSetup(int64_t units, int first_of_queries = 4, int first_of_rows = 6) {
    constexpr uint8_t kLanes = 16;
    Config config;
    for (int t = 0; t < 8; ++t) {
      const bool queries = t >= first_of_queries && t < first_of_rows;
      config.rows[t] = t < first_of_rows ? kLanes : static_cast<uint8_t>(units);
      config.row_bytes[t] = queries ? static_cast<uint16_t>(4 * units) : 64;
    }
    _tile_loadconfig(&config);
  }
  KITH_FOR("amx-tile") ~TileSetup() { _tile_release(); }
  TileSetup(const TileSetup&) = delete;
  TileSetup& operator=(const TileSetup&) = delete;

 private:
  struct alignas(64) Config {  // as the processor reads it
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  };
};

}  // namespace kith
