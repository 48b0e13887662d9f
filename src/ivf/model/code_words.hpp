// The codewords of a product or additive code in the forms that searches want. Each is made when first asked for and kept as long
// as the model: a search of one query would take longer to make it than to use it.
//
// Memory: 4 bytes for each codeword, 4 for each of its values for tables and 2 for tiles.
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
    float largest = 0;            // norm of a vector made of codewords; additive: sum of the books' longest
    HostArray<float> columns;     // for tables: the columns of a part one after the other
    HostArray<uint16_t> rounded;  // for tiles: as bf16
    float moved_by = 0;           // the most that rounding moves a vector
  };
  struct Wanted {
    bool columns = false;
    bool rounded = false;
  };

  // The codec is the same at every call. Forms that were there stay where they are.
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
