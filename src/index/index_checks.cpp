#include "index/index_checks.hpp"

#include <kith/error.hpp>

#include "core/dispatch.hpp"
#include "exact/knn_checks.hpp"
#include "rows/finite_check.hpp"

#include <fmt/format.h>

#include <limits>
#include <string>

namespace kith {
namespace {

constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();

std::string place(const MemorySpace& space) {
  return space.host_readable() ? "host memory" : fmt::format("the memory of cuda:{}", space.device);
}

void check_device_rows(const MatrixView& rows, Device asked) {
  if (rows.space().host_readable()) return;
  if (asked.kind != DeviceKind::automatic && asked != Device::cuda(rows.space().device)) {
    throw InvalidArgument(
        fmt::format("the added vectors are in {} and the index searches on {}; add them from there, or from the host",
                    place(rows.space()), name_of(asked)));
  }
  if (!built_with_cuda()) throw_no_cuda();
}

bool same_place(const MemorySpace& a, const MemorySpace& b) { return a.host_readable() ? b.host_readable() : a == b; }

}  // namespace

void check_added(const IndexState* current, const MatrixView& rows, Metric metric, Device asked) {
  check_device_rows(rows, asked);
  check_rows_dtype("added vectors", rows.dtype(), metric);
  if (rows.cols() < 1) throw InvalidArgument("vectors without columns cannot be searched");
  const IndexContent before = current == nullptr ? IndexContent() : current->content();
  if (current != nullptr && (rows.cols() != before.cols || rows.dtype() != before.dtype)) {
    throw InvalidArgument(fmt::format("the index holds {} vectors of {} columns; {} of {} columns were added",
                                      name_of(before.dtype), before.cols, name_of(rows.dtype()), rows.cols()));
  }
  if (current != nullptr && !same_place(before.space, rows.space())) {
    throw InvalidArgument(
        fmt::format("the index holds vectors in {}, the added ones are in {}; an index keeps all in one place",
                    place(before.space), place(rows.space())));
  }
  if (rows.rows() > kMostRows - before.rows) {
    throw Unsupported(
        fmt::format("an index of {} + {} rows; one index takes up to {}", before.rows, rows.rows(), kMostRows));
  }
}

void check_added_values(const MatrixView& rows, const IndexParams& params, const Resources& resources) {
  if (!rows.space().host_readable()) return;
  if (params.check_finite) refuse_not_finite("added", rows, {0}, resources);
  if (params.metric == Metric::chi_square) refuse_negative("added", rows, {0}, resources);
}

void check_queries(const IndexContent& content, const MatrixView& queries, Metric metric) {
  check_rows_dtype("queries", queries.dtype(), metric);
  if (queries.cols() != content.cols) {
    throw InvalidArgument(fmt::format("the queries have {} columns and the index has {}; they must be the same",
                                      queries.cols(), content.cols));
  }
}

}  // namespace kith
