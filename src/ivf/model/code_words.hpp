// The codewords of a product or additive code in the forms that searches need. Each form is computed on first use and
// kept with the model: for a single query, computing it would take longer than the search.
//
// Memory: 4 bytes per codeword, plus 4 per codeword value for tables and 2 for tiles.
#pragma once

#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "core/host_array.hpp"
#include "quantize/codec.hpp"

#include <cstdint>
#include <mutex>

namespace kith {

class CodeWords {
 public:
  struct Forms {
    HostArray<float> squares;     // of each codeword
    float largest = 0;            // largest norm of a decoded vector; additive: sum of each book's largest norm
    HostArray<float> columns;     // for tables: the codewords of a part, column by column
    HostArray<uint16_t> rounded;  // for tiles: the codewords as bf16
    float moved_by = 0;           // an upper bound on the distance by which rounding moves a vector
  };
  struct Wanted {
    bool columns = false;
    bool rounded = false;
  };

  // Must be called with the same codec every time. Forms that already exist are not moved.
  const Forms& get(const Codec& codec, const Wanted& wanted, const Resources& resources);
  static Footprint footprint(const CodeFormat& format, const Wanted& wanted);
  int64_t bytes() const;

 private:
  void make_squares(const Codec& codec, const Resources& resources);
  void make_columns(const Codec& codec, const Resources& resources);
  void make_rounded(const Codec& codec, const Resources& resources);

  mutable std::mutex making_;
  Forms forms_;
};

}  // namespace kith
