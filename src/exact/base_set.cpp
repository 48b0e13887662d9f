#include "exact/base_set.hpp"

#include <kith/matrix_buffer.hpp>

#include "core/parallel_for.hpp"

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

constexpr int64_t kBytesPerTask = 64 << 10;

int64_t row_bytes(const MatrixView& view) { return view.cols() * size_of(view.dtype()); }

}  // namespace

void BlocksBase::walk(int64_t chunk, const Resources&, const Step& step) {
  int64_t first_row = 0;
  for (const Block& block : blocks_) {
    const int64_t rows = block.rows.rows();
    const int64_t most = block.ready != nullptr ? rows : std::min(chunk, rows);
    for (int64_t at = 0; at < rows; at += most) {
      step(block.rows.slice(at, std::min(most, rows - at)), first_row + at, block.ready.get());
    }
    first_row += rows;
  }
}

void BlocksBase::gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) {
  const auto bytes = static_cast<size_t>(row_bytes(out));
  const int64_t per_task = std::max<int64_t>(1, kBytesPerTask / row_bytes(out));
  const Resources quiet = resources.with_progress({});  // a part of a search, which reports its own
  ProgressMeter meter("gather", count, quiet);
  parallel_for((count + per_task - 1) / per_task, meter, resources, [&](int64_t task, int) {
    size_t block = 0;
    int64_t block_first = 0;
    for (int64_t i = task * per_task; i < std::min((task + 1) * per_task, count); ++i) {
      while (rows[i] - block_first >= blocks_[block].rows.rows()) block_first += blocks_[block++].rows.rows();
      std::memcpy(out.row(i), blocks_[block].rows.row(rows[i] - block_first), bytes);
    }
  });
}

void FileBase::walk(int64_t chunk, const Resources& resources, const Step& step) {
  const int64_t most = std::min(chunk, file_.rows());
  MatrixBuffer buffer(file_.dtype(), most, file_.cols(), "rows read from a file", resources);
  for (int64_t at = 0; at < file_.rows(); at += most) {
    const MutableMatrixView rows = buffer.mutable_view().slice(0, std::min(most, file_.rows() - at));
    file_.read(at, rows);
    step(rows, at, nullptr);
  }
}

void FileBase::gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) {
  for (int64_t i = 0; i < count;) {
    int64_t run = 1;
    while (i + run < count && rows[i + run] == rows[i] + run) ++run;
    file_.read(rows[i], out.slice(i, run));
    i += run;
    if (i % 1024 < run) resources.check_cancelled();
  }
}

void walk_gathered(BaseSet& base, const uint32_t* list, const KnnProblem& problem, int64_t chunk,
                   const Resources& resources, const BaseSet::Step& step) {
  const int64_t most = std::min(chunk, problem.rows);
  MatrixBuffer buffer(problem.base_dtype, most, problem.cols, "the rows that the filter keeps", resources);
  for (int64_t at = 0; at < problem.rows; at += most) {
    const MutableMatrixView rows = buffer.mutable_view().slice(0, std::min(most, problem.rows - at));
    base.gather(list + at, rows.rows(), rows, resources);
    step(rows, at, nullptr);
  }
}

}  // namespace kith
