#include "index/file_vectors.hpp"

#include <kith/error.hpp>

#include "rows/finite_check.hpp"
#include "rows/stored_row.hpp"

#include <fmt/format.h>

namespace kith {

void check_refine_from(const VectorFile& file, const IndexState* state, const IndexParams& params) {
  if (params.metric == Metric::hamming) {
    throw InvalidArgument("refine_from compares vectors of numbers, and hamming bits: such searches are exact already");
  }
  if (state == nullptr) return;
  if (state->refines()) {
    throw InvalidArgument(
        "the index keeps vectors to refine with itself (RFlat, Refine): search it without refine_from");
  }
  if (file.cols() == state->content().cols) return;
  throw InvalidArgument(fmt::format("refine_from: '{}' holds vectors of {} columns, and the index of {}", file.path(),
                                    file.cols(), state->content().cols));
}

FileVectors::FileVectors(const VectorFile& file, const IndexVersion& version, const IndexParams& params,
                         const Resources& resources)
    : file_(file), version_(version), params_(params), memory_(file.reserve_memory(resources)) {}

void FileVectors::fetch(const int64_t* rows, int64_t count, float* out) const {
  const int64_t cols = file_.cols();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t id = version_.ids.id(rows[i]);
    if (id >= file_.rows()) {
      throw InvalidArgument(
          fmt::format("refine_from: the vector with id {} was found, and '{}' has {} rows: row i of the file must be "
                      "the vector with id i",
                      id, file_.path(), file_.rows()));
    }
    const MutableMatrixView row(out + i * cols, 1, cols);
    file_.read(id, row);
    if (params_.check_finite && !row_is_finite(row, 0)) throw_not_finite("refine_from", id);
    if (params_.metric == Metric::chi_square && row_has_negative(row, 0)) throw_negative("refine_from", id);
  }
}

}  // namespace kith
