#include "kernels/assign/assign_cpu.hpp"

#include <utility>

namespace kith {
namespace {

constexpr int64_t kFewBlock = 1024;

}  // namespace

CentreAssigner::CentreAssigner(KeyKind kind, PanelFormat format, std::vector<float> origin, int64_t capacity,
                               const Resources& resources) {
  const auto cols = static_cast<int64_t>(origin.size());
  if (has_few(capacity)) {
    block_ = kFewBlock;
    few_.emplace(kind, std::move(origin), capacity, resources);
    scratch_floats_ = CentreTable::scratch_floats(cols);
    scratch_ = HostArray<float>(resources.threads() * scratch_floats_, "a block of rows", resources);
    return;
  }
  block_ = NearestCentre::block_rows(format, cols);
  packed_.emplace(kind, format, std::move(origin), capacity, resources);
  for (int slot = 0; slot < resources.threads(); ++slot) nearest_.emplace_back(kind, format, cols, resources);
}

void CentreAssigner::set(const MatrixView& centres, ProgressMeter& meter, const Resources& resources) {
  centres_ = centres;
  few_ ? few_->set(centres) : packed_->pack(centres, {}, meter, resources);
}

bool CentreAssigner::assign(const MatrixView& rows, int32_t* labels, float* keys, int slot) {
  if (few_) return few_->nearest(rows, labels, keys, scratch_.data() + slot * scratch_floats_);
  nearest_[static_cast<size_t>(slot)].assign(*packed_, centres_, rows, labels, keys);
  return true;
}

}  // namespace kith
