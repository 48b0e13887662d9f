// A base packed for the CPU ahead of the search.
#include "exact/prepared_base.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/float_mode.hpp"
#include "core/memory_budget.hpp"
#include "kernels/panels/packed_rows.hpp"

#include <fmt/format.h>

#include <utility>

namespace kith {

namespace {

class PreparedBaseCpu final : public PreparedBase {
 public:
  explicit PreparedBaseCpu(PackedRows packed) : packed_(std::move(packed)) {}
  bool serves(DType queries) const override {
    return packed_.fits(
        choose_panel_format(packed_.kind(), queries, packed_.dtype(), packed_.cols(), cpu_extensions()));
  }
  int64_t bytes() const override { return packed_.bytes(); }
  const PackedRows* packed() const override { return &packed_; }

 private:
  PackedRows packed_;
};

}  // namespace

std::shared_ptr<PreparedBase> prepare_base_cpu(const MatrixView& base, const PrepareOptions& options,
                                               const Resources& resources) {
  const DefaultFloatMode mode;
  const KeyKind kind = key_kind(options.metric);
  const PanelFormat format =
      kept_format(choose_panel_format(kind, options.queries, base.dtype(), base.cols(), cpu_extensions()), base.rows(),
                  base.cols(), cpu_extensions());
  const int64_t most = resources.host_memory()->available() / 2;  // a search needs memory too
  const int64_t bytes = PackedRows::bytes_for(format, base.rows(), base.cols(), resources.threads());
  if (bytes > most) {
    throw OutOfMemory(fmt::format("it needs {}, more than half of the {} that the host memory limit leaves",
                                  format_bytes(bytes), format_bytes(resources.host_memory()->available())),
                      2 * bytes);
  }
  PackedRows packed(kind, format, choose_origin(kind, base), base.rows(), resources);
  packed.set_scale(choose_scale(kind, base, packed.origin()));
  ProgressMeter meter("prepare", base.rows(), resources);
  packed.pack(base, {options.check_finite, options.first_row, 1, true}, meter, resources);
  meter.finish();
  return std::make_shared<PreparedBaseCpu>(std::move(packed));
}

}  // namespace kith
