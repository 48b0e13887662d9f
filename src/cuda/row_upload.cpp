#include "cuda/row_upload.hpp"

#include "core/divide.hpp"
#include "cuda/error.hpp"

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

void copy_plain(const MatrixView& rows, std::byte* target, cudaStream_t stream) {
  constexpr int64_t kLargestPitch = INT32_MAX;  // what a two-dimensional copy takes
  const int64_t size = size_of(rows.dtype());
  const size_t width = static_cast<size_t>(rows.cols() * size);
  const size_t pitch = static_cast<size_t>(rows.row_stride() * size);
  const size_t count = static_cast<size_t>(rows.rows());
  if (width == pitch) {
    KITH_CUDA_CHECK(cudaMemcpyAsync(target, rows.data(), width * count, cudaMemcpyDefault, stream));
  } else if (rows.row_stride() * size <= kLargestPitch) {
    KITH_CUDA_CHECK(cudaMemcpy2DAsync(target, width, rows.data(), pitch, width, count, cudaMemcpyDefault, stream));
  } else {
    for (size_t i = 0; i < count; ++i) {
      KITH_CUDA_CHECK(
          cudaMemcpyAsync(target + i * width, rows.row(static_cast<int64_t>(i)), width, cudaMemcpyDefault, stream));
    }
  }
}

}  // namespace

RowUpload::RowUpload(bool pinned, const Resources& resources, int64_t gather_bytes)
    : resources_(resources), gathered_(pinned ? 0 : gather_bytes, "rows on their way to a GPU", resources) {
  if (pinned) stage_.emplace(resources_);
}

void RowUpload::copy(const MatrixView& rows, std::byte* target, cudaStream_t stream, ProgressMeter& meter) {
  if (rows.empty() || is_counted_only(stream)) return;
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const int64_t bytes = rows.rows() * row_bytes;
  const bool staged = stage_ && rows.space().kind == MemoryKind::host && bytes >= PinnedStage::kHalfBytes / 4;
  if (staged && rows.row_stride() == rows.cols()) {
    // Copies bytes in large pieces, independent of the length of a row.
    constexpr int64_t kPiece = 1 << 16;
    const int64_t pieces = bytes / kPiece;
    copy_staged({rows.data(), DType::u8, {pieces, kPiece, kPiece}}, {nullptr, 0, pieces}, target, stream, meter);
    const int64_t done = pieces * kPiece;
    const auto* const from = static_cast<const std::byte*>(rows.data());
    if (done < bytes) copy_plain({from + done, DType::u8, {1, bytes - done, bytes - done}}, target + done, stream);
  } else if (staged && row_bytes <= PinnedStage::kHalfBytes) {
    copy_staged(rows, {nullptr, 0, rows.rows()}, target, stream, meter);
  } else {
    copy_plain(rows, target, stream);
  }
}

void RowUpload::copy(const MatrixView& rows, const RowPicks& picks, std::byte* target, cudaStream_t stream,
                     ProgressMeter& meter) {
  if (is_counted_only(stream)) return;
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  if (stage_ && row_bytes <= PinnedStage::kHalfBytes) {
    return copy_staged(rows, picks, target, stream, meter);
  }
  const int64_t most = gathered_.bytes() / row_bytes;
  for (int64_t first = 0; first < picks.count;) {
    const int64_t count = most > 0 ? std::min(most, picks.count - first) : 1;
    const void* from = rows.row(picks.list[first] - picks.first_listed);  // one row goes as it is
    if (count > 1) {
      fill(rows, {picks.list + first, picks.first_listed, count}, gathered_.data(), meter);
      from = gathered_.data();
    }
    // From ordinary memory: what is copied has been read when this returns.
    KITH_CUDA_CHECK(cudaMemcpyAsync(target + first * row_bytes, from, static_cast<size_t>(count * row_bytes),
                                    cudaMemcpyHostToDevice, stream));
    first += count;
  }
}

// Packs the picked rows, with all threads.
void RowUpload::fill(const MatrixView& rows, const RowPicks& picks, std::byte* target, ProgressMeter& meter) const {
  constexpr int64_t kTaskBytes = 1 << 20;
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const int64_t task_rows = std::max<int64_t>(kTaskBytes / row_bytes, 1);
  const bool whole = picks.list == nullptr && rows.row_stride() == rows.cols();
  parallel_for(divide_up(picks.count, task_rows), meter, resources_, [&](int64_t task, int) {
    const int64_t begin = task * task_rows;
    const int64_t end = std::min(begin + task_rows, picks.count);
    if (whole) {
      std::memcpy(target + begin * row_bytes, rows.row(begin), static_cast<size_t>((end - begin) * row_bytes));
      return;
    }
    const bool packed = rows.row_stride() == rows.cols();
    for (int64_t i = begin; i < end;) {
      const int64_t row = picks.list == nullptr ? i : picks.list[i] - picks.first_listed;
      int64_t run = 1;  // of rows that are contiguous
      if (packed)
        while (i + run < end && picks.list[i + run] == picks.list[i] + run) ++run;
      std::memcpy(target + i * row_bytes, rows.row(row), static_cast<size_t>(run * row_bytes));
      i += run;
    }
  });
}

void RowUpload::copy_staged(const MatrixView& rows, const RowPicks& picks, std::byte* target, cudaStream_t stream,
                            ProgressMeter& meter) {
  const int64_t row_bytes = rows.cols() * size_of(rows.dtype());
  const int64_t half_rows = PinnedStage::kHalfBytes / row_bytes;
  for (int64_t first = 0; first < picks.count; first += half_rows, turn_ ^= 1) {
    const int64_t count = std::min(half_rows, picks.count - first);
    std::byte* const half = stage_->half(turn_);
    stage_->wait_for(turn_);
    if (picks.list == nullptr) {
      fill(rows.slice(first, count), {nullptr, 0, count}, half, meter);
    } else {
      fill(rows, {picks.list + first, picks.first_listed, count}, half, meter);
    }
    KITH_CUDA_CHECK(cudaMemcpyAsync(target + first * row_bytes, half, static_cast<size_t>(count * row_bytes),
                                    cudaMemcpyHostToDevice, stream));
    stage_->used_by(stream, turn_);
  }
}

}  // namespace kith
