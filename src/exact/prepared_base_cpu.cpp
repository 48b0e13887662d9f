// A base packed for the CPU ahead of the search.
#include "exact/prepared_base.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/float_mode.hpp"
#include "core/memory_budget.hpp"
#include "kernels/panels/packed_rows.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace kith {

namespace {

class PreparedBaseCpu final : public PreparedBase {
 public:
  // `rounded`: for few queries, where the rows are packed without a screen of their own.
  PreparedBaseCpu(PackedRows packed, std::optional<PackedRows> rounded)
      : packed_(std::move(packed)), rounded_(std::move(rounded)) {}
  bool serves(DType queries) const override {
    return packed_.fits(
        choose_panel_format(packed_.kind(), queries, packed_.dtype(), packed_.cols(), cpu_extensions()));
  }
  int64_t bytes() const override { return packed_.bytes() + (rounded_ ? rounded_->bytes() : 0); }
  const PackedRows* packed() const override { return &packed_; }
  const PackedRows* screened() const override {
    if (rounded_) return &*rounded_;
    return has_screen(packed_.format()) ? &packed_ : nullptr;
  }

 private:
  PackedRows packed_;
  std::optional<PackedRows> rounded_;
};

}  // namespace

std::shared_ptr<PreparedBase> prepare_base_cpu(const MatrixView& base, const PrepareOptions& options,
                                               const Resources& resources) {
  const DefaultFloatMode mode;
  const KeyKind kind = key_kind(options.metric);
  const PanelFormat format =
      kept_format(choose_panel_format(kind, options.queries, base.dtype(), base.cols(), cpu_extensions()), base.rows(),
                  base.cols());
  const auto bytes_for = [&](PanelFormat some) {
    return PackedRows::bytes_for(some, base.rows(), base.cols(), resources.threads());
  };
  const int64_t most = resources.host_memory()->available() / 2;  // a search needs memory too
  const int64_t bytes = bytes_for(format);
  if (bytes > most) {
    throw OutOfMemory(fmt::format("it needs {}, more than half of the {} that the host memory limit leaves",
                                  format_bytes(bytes), format_bytes(resources.host_memory()->available())),
                      2 * bytes);
  }
  const bool beside = !has_screen(format) && prepares_screen(format, base.cols(), cpu_extensions()) &&
                      bytes + bytes_for(PanelFormat::rounded) <= most;
  PackedRows packed(kind, format, choose_origin(kind, base), base.rows(), resources);
  packed.set_scale(choose_scale(kind, base, packed.origin()));
  ProgressMeter meter("prepare", base.rows(), resources);
  packed.pack(base, {options.check_finite, options.first_row, 1, true}, meter, resources);
  std::optional<PackedRows> rounded;
  if (beside) {
    rounded.emplace(kind, PanelFormat::rounded, packed.origin(), base.rows(), resources);
    rounded->set_scale(packed.scale());
    const Resources unheard = resources.with_progress({});  // rows are told of once
    ProgressMeter quiet("prepare", base.rows(), unheard);
    rounded->pack(base, {false, options.first_row, 1, false}, quiet, resources);
  }
  meter.finish();
  return std::make_shared<PreparedBaseCpu>(std::move(packed), std::move(rounded));
}

}  // namespace kith
