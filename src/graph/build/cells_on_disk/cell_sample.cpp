#include "graph/build/cells_on_disk/cell_sample.hpp"

#include "core/typed_row.hpp"
#include "graph/build/cells/cell_space.hpp"

#include <algorithm>
#include <vector>

namespace kith {

CellSample::CellSample(StepFile step, int64_t rows, int64_t cols, DType dtype, Metric metric, double longest)
    : step_(std::move(step)),
      rows_(rows),
      stored_cols_(cols),
      stored_dtype_(dtype),
      metric_(metric),
      longest_(longest) {}

int64_t CellSample::cols() const { return cell_cols(stored_cols_, metric_); }

void CellSample::read_rows(int64_t first, int64_t count, void* out) const {
  std::vector<std::byte> bytes(static_cast<size_t>(kSampleSection * stored_cols_ * size_of(stored_dtype_)));
  const MutableMatrixView made(out, DType::f32, {count, cols(), cols()});
  for (int64_t done = 0; done < count;) {
    const int64_t section = (first + done) / kSampleSection;
    const int64_t from = first + done - section * kSampleSection;
    const int64_t there = std::min(kSampleSection, rows_ - section * kSampleSection);
    const int64_t some = std::min(there - from, count - done);
    step_.read(section, bytes.data());
    const MatrixView stored(bytes.data(), stored_dtype_, {there, stored_cols_, stored_cols_});
    const CellSpace space(stored, metric_, longest_);
    for (int64_t i = 0; i < some; ++i) space.make(from + i, CellSide::found, typed_row<float>(made, done + i));
    done += some;
  }
}

}  // namespace kith
