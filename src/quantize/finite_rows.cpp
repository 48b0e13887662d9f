#include "quantize/finite_rows.hpp"

#include <kith/error.hpp>

#include "cluster/data/kmeans_checks.hpp"
#include "core/parallel_for.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kPieceBytes = int64_t{16} << 20;  // of a file, at a time

}  // namespace

void refuse_not_finite_rows(RowSource& source, const Resources& resources) {
  const RowsInfo info = source.info();
  if (info.rows == 0 || info.dtype == DType::u8 || info.dtype == DType::i8) return;
  const int64_t most = info.in_memory ? info.rows : std::max<int64_t>(1, kPieceBytes / info.row_bytes());
  source.open(std::min(most, info.rows), resources);
  ProgressMeter meter("check", info.rows, resources);
  for (int64_t first = 0; first < info.rows;) {
    const int64_t count = std::min({most, info.rows - first, source.together(first)});
    const int64_t bad = first_not_finite(source.fetch(first, count), meter, resources);
    if (bad >= 0) {
      throw InvalidArgument(fmt::format(
          "data row {} holds a NaN or an infinity; remove it, or make the quantizer with check_finite = false",
          first + bad));
    }
    meter.add(count);
    meter.poll();
    first += count;
  }
  meter.finish();
}

}  // namespace kith
