#include "ivf/list_panels.hpp"

#include "core/divide.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/lists/decode_rows_cpu.hpp"
#include "kernels/panels/panel_packing.hpp"
#include "kernels/panels/panel_shape.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kith {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

ListPanels::ListPanels(KeyKind kind, PanelFormat format, int64_t capacity, int64_t cols, const Resources& resources)
    : kind_(kind), format_(format), shape_(panel_shape(format)), cols_(cols) {
  const int64_t width = shape_.rows_per_panel;
  const int64_t rows = round_up(capacity, width);
  decoded_ = HostArray<float>(width * cols, "decoded vectors", resources);
  scratch_ = HostBuffer(PanelScratch::bytes_for(format, cols, width), "packing", resources);
  panels_ = HostBuffer(rows * packed_bytes(format, cols), "decoded vectors", resources);
  terms_ = HostArray<float>(rows, "decoded vectors", resources);
  norms_ = HostArray<float>(rows / width, "decoded vectors", resources);
}

int64_t ListPanels::bytes_for(PanelFormat format, int64_t capacity, int64_t cols) {
  const int64_t rows = capacity + kMostRowsPerPanel;
  return array_bytes<float>(kMostRowsPerPanel * cols + 2 * rows) + rows * packed_bytes(format, cols) +
         PanelScratch::bytes_for(format, cols, kMostRowsPerPanel);
}

int64_t ListPanels::panel_count() const { return divide_up(count_, shape_.rows_per_panel); }

PanelBase ListPanels::panels() const {
  return {panels_.data(), terms_.data(), norms_.data(), format_, cols_, PanelStep::product};
}

void ListPanels::pack(const CodecView& codec, const uint8_t* codes, int64_t count, const float* centre,
                      const std::vector<float>& origin) {
  count_ = count;
  const int64_t width = shape_.rows_per_panel;
  const int64_t bytes = packed_bytes(format_, cols_);
  const int64_t code_bytes = codec.format.bytes();
  const auto [moved, packed] = PanelScratch(scratch_.data(), cols_);
  for (int64_t panel = 0; panel < panel_count(); ++panel) {
    const int64_t first = panel * width;
    const int64_t here = std::min(width, count - first);
    decode_rows_cpu(codec, codes + first * code_bytes, here, centre, decoded_.data());
    float* const terms = terms_.data() + first;
    float largest = 0;
    for (int64_t i = 0; i < here; ++i) {
      const double squared = move_vector(kind_, origin, decoded_.data() + i * cols_, moved);
      terms[i] = has_differences(kind_) ? static_cast<float>(squared) : 0.0f;
      largest = std::max(largest, squared < kLargestSquaredNorm ? static_cast<float>(std::sqrt(squared)) : kInfinity);
      encode_floats(format_, moved, cols_, 1.0f, packed + i * bytes / 4);
    }
    std::fill(terms + here, terms + width, kInfinity);
    norms_[panel] = largest;
    pack_panel(format_, cols_, packed, here, width, panels_.data() + first * bytes);
  }
}

}  // namespace kith
