// Vectors of one list, decoded and packed for a product (kernels/panels): less the list's centre where the key is made
// of differences, of length 1 for cosine. What is packed is the vector that the index holds, so that the bounds of
// kernels/distance/error_bound.hpp are bounds for its distance, whatever the code.
//
// One thread's: each has its own. Cost: a decoded vector and its packing; memory for one piece.
#pragma once

#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/panels/panel_product.hpp"
#include "quantize/code_format.hpp"

#include <cstdint>
#include <vector>

namespace kith {

class ListPanels {
 public:
  // For pieces of up to `capacity` vectors.
  ListPanels(KeyKind kind, PanelFormat format, int64_t capacity, int64_t cols, const Resources& resources);
  static int64_t bytes_for(PanelFormat format, int64_t capacity, int64_t cols);

  // Decodes and packs `count` vectors. `centre` is added to what is decoded, or null.
  void pack(const CodecView& codec, const uint8_t* codes, int64_t count, const float* centre,
            const std::vector<float>& origin);

  int64_t count() const { return count_; }
  int64_t rows_per_panel() const { return shape_.rows_per_panel; }
  int64_t panel_count() const;
  PanelBase panels() const;

 private:
  KeyKind kind_;
  PanelFormat format_;
  PanelShape shape_;
  int64_t cols_;
  int64_t count_ = 0;
  HostArray<float> decoded_;  // a panel's vectors
  HostBuffer scratch_;
  HostBuffer panels_;
  HostArray<float> terms_;
  HostArray<float> norms_;
};

}  // namespace kith
