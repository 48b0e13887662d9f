#include "ivf/model/training_sample.hpp"

#include "rows/device_row_gather_cuda.hpp"
#include "rows/row_sample.hpp"
#include "core/memory_budget.hpp"
#include "cuda/device_info.hpp"
#include "cuda/device_memory.hpp"
#include "transform/transform_chain.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace kith {
namespace {

constexpr std::string_view kPurpose = "the training sample";
constexpr int64_t kPieceBytes = int64_t{256} << 20;

std::vector<uint32_t> drawn_rows(const CounterRng& rng, int64_t all, int64_t count, const Resources& resources) {
  if (count < all) return sample_rows(rng, all, count, resources);
  std::vector<uint32_t> numbers(static_cast<size_t>(all));
  std::iota(numbers.begin(), numbers.end(), 0u);
  return numbers;
}

MutableMatrixView floats_at(std::byte* memory, int64_t rows, int64_t cols, MemorySpace space) {
  return {memory, DType::f32, {rows, cols, cols}, space};
}

}  // namespace

TrainingSample::TrainingSample(RowSource& rows, int64_t most, const CounterRng& rng, const Resources& resources) {
  if (!rows.space().host_readable()) {
    draw_on_gpu(rows, most, rng, resources);
    return;
  }
  const int64_t count = std::min(rows.rows(), most);
  take_room(count, rows.info().cols, MemorySpace::host(), resources);
  gather_as_floats(rows, drawn_rows(rng, rows.rows(), count, resources),
                   static_cast<float*>(here_.mutable_view().data()), resources);
}

void TrainingSample::take_room(int64_t count, int64_t cols, MemorySpace space, const Resources& resources) {
  if (space.host_readable()) {
    here_ = MatrixBuffer(DType::f32, count, cols, kPurpose, resources);
    view_ = here_.view();
    return;
  }
  there_ = allocate_on_device(count * cols * 4, kPurpose, space.device, resources);
  view_ = floats_at(there_.get(), count, cols, space);
}

// Piece after piece of the rows that lie there is gathered, made into what is wanted, and copied to its place.
void TrainingSample::draw_on_gpu(RowSource& rows, int64_t most, const CounterRng& rng, const Resources& resources) {
  const RowsInfo info = rows.info();
  RowSource* const stored = rows.made_from() == nullptr ? &rows : rows.made_from();
  const MatrixView all = stored->fetch(0, info.rows);
  const int64_t count = std::min(info.rows, most);
  if (stored == &rows && count == info.rows && all.dtype() == DType::f32) {
    view_ = all;
    return;
  }
  const MemorySpace space = info.space;
  const int64_t free = cuda_device(space.device).memory_free;
  const int64_t room = std::min(resources.device_memory()->available(), free);
  constexpr int64_t kShare = 4;  // of it: k-means wants as much again, and more
  const bool stays = count * info.cols * 4 <= room / kShare;
  take_room(count, info.cols, stays ? space : MemorySpace::host(), resources);
  const int64_t widest = std::max(info.cols, all.cols());
  const int64_t piece =
      std::clamp<int64_t>(std::min(kPieceBytes, room / 16) / (4 * widest), 1, std::max<int64_t>(count, 1));
  const bool made = stored != &rows;
  const auto gathered = allocate_on_device(piece * all.cols() * 4, kPurpose, space.device, resources);
  const auto finished =
      allocate_on_device(made && !stays ? piece * info.cols * 4 : 0, kPurpose, space.device, resources);
  const std::vector<uint32_t> numbers = drawn_rows(rng, info.rows, count, resources);
  for (int64_t first = 0; first < count; first += piece) {
    resources.check_cancelled();
    const int64_t some = std::min(piece, count - first);
    const std::vector<uint32_t> wanted(numbers.begin() + first, numbers.begin() + first + some);
    std::byte* const place = stays ? there_.get() + first * info.cols * 4 : finished.get();
    std::byte* const to = made || !stays ? gathered.get() : place;
    gather_floats_cuda(all, wanted, reinterpret_cast<float*>(to), resources);
    if (made) {
      rows.make(floats_at(to, some, all.cols(), space), floats_at(place, some, info.cols, space), resources);
    }
    if (!stays) {
      copy_to_host(made ? place : to, some * info.cols * 4, space.device, here_.mutable_view().row(first));
    }
  }
}

void TrainingSample::make_unit_length(const Resources& resources) {
  if (there_ == nullptr && !view_.space().host_readable()) {  // the caller's rows stay as they are
    const MatrixView given = view_;
    take_room(given.rows(), given.cols(), given.space(), resources);
    copy_to_device(given, there_.get(), given.space().device, resources.with_progress({}));
  }
  const MutableMatrixView out =
      there_ != nullptr ? floats_at(there_.get(), view_.rows(), view_.cols(), view_.space()) : here_.mutable_view();
  const int64_t cols = view_.cols();
  TransformChain()
      .then(std::make_shared<const Transform>(
          TransformParts{TransformParts::Kind::unit_length, "L2norm", cols, cols, {}, {}}, resources))
      .apply(view_, out, resources);
}

MatrixBuffer TrainingSample::on_host(const Resources& resources) && {
  if (view_.space().host_readable()) return std::move(here_);
  MatrixBuffer copy(DType::f32, view_.rows(), view_.cols(), kPurpose, resources);
  const int device = view_.space().device;
  wait_for_stream(device, resources);
  if (view_.row_stride() == view_.cols()) {
    copy_to_host(view_.data(), view_.rows() * view_.cols() * 4, device, copy.mutable_view().data());
    return copy;
  }
  for (int64_t i = 0; i < view_.rows(); ++i) {
    copy_to_host(view_.row(i), view_.cols() * 4, device, copy.mutable_view().row(i));
  }
  return copy;
}

}  // namespace kith
