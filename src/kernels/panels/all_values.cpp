#include "kernels/panels/all_values.hpp"

#include "kernels/panels/instruction_family.hpp"
#include "kernels/panels/panel_shape.hpp"

#include <algorithm>

namespace kith {
namespace {

class CopiedValues final : public PanelHits {
 public:
  CopiedValues(float* values, int64_t stride, int64_t width) : values_(values), stride_(stride), width_(width) {}
  void on_hit(int64_t query, int64_t panel, const float* values) override {
    std::copy_n(values, width_, values_ + query * stride_ + panel * width_);
  }

 private:
  float* const values_;
  const int64_t stride_;
  const int64_t width_;  // of a panel
};

}  // namespace

void all_values(const PanelQueries& queries, const PanelBase& base, int64_t panels, float* values, int64_t stride) {
#if defined(KITH_X86)
  if (base.format == PanelFormat::bf16 && !has_segments(base.cols)) {
    return all_values_amx(queries, base, panels, values, stride);
  }
#endif
  CopiedValues copied(values, stride, panel_shape(base.format).rows_per_panel);
  scan_panels(queries, base, 0, panels, copied);
}

}  // namespace kith
