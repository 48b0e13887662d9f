// The cost of rounding is estimated from a sample of the rows. A window of a column is the range between one sampled
// value and the one an eighth of the sample further on. A column is shifted if a window is many times as far from 0 as
// it is wide and the shift gains much; other columns stay as they are.
#include "rows/narrowed_rows.hpp"

#include <kith/error.hpp>
#include <kith/narrowed_vectors.hpp>

#include "core/divide.hpp"
#include "core/dtype_visit.hpp"
#include "core/float_mode.hpp"
#include "core/memory_budget.hpp"
#include "core/typed_row.hpp"
#include "core/within_limits.hpp"
#include "rows/row_blocks.hpp"
#include "rows/rows_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

namespace kith {
namespace {

// Sampled rows, evenly spaced; fewer if rows are long.
constexpr int64_t kSampleRows = 512;
constexpr int64_t kFewestSampleRows = 64;
constexpr int64_t kSampleValues = 1 << 16;
// A window spans this part of the sample.
constexpr int64_t kWindowPart = 8;
// A column is shifted if a window is at least kFarWindow times as far from 0 as it is wide, and the shift gains at
// least kWorthwhileGain.
constexpr double kFarWindow = 64;
constexpr double kShiftGain = 4;
// How far rounding may move a vector without a warning, as a share of the estimated distance of neighbours.
constexpr double kMostMoved = 1.0 / 64;
constexpr double kHalfStep = 0x1p-24;           // rounding to f32 changes a number by this share of it at most
constexpr double kSmallestRounding = 0x1p-150;  // or by this, near 0

constexpr int64_t kValuesOfATask = 1 << 16;

// visit_dtype() with f64.
template <typename Use>
decltype(auto) visit_numbers(DType dtype, const Use& use) {
  return dtype == DType::f64 ? use(StoredAs<double>()) : visit_dtype(dtype, use);
}

bool is_shiftable(Metric metric) {
  return metric == Metric::l2 || metric == Metric::sqeuclidean || metric == Metric::l1 || metric == Metric::linf;
}

// Every so many-th row, on the host.
class RowsSample {
 public:
  RowsSample(const MatrixView& rows, const Resources& resources) {
    const int64_t wanted =
        std::min(std::max(kSampleValues / std::max<int64_t>(rows.cols(), 1), kFewestSampleRows), kSampleRows);
    const int64_t step = std::max<int64_t>(divide_up(rows.rows(), wanted), 1);
    const int64_t count = divide_up(rows.rows(), step);
    if (rows.space().host_readable()) {
      view_ = MatrixView(rows.data(), rows.dtype(), {count, rows.cols(), rows.row_stride() * step});
      return;
    }
    std::vector<uint32_t> numbers(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) numbers[static_cast<size_t>(i)] = static_cast<uint32_t>(i * step);
    copy_ = MatrixBuffer(rows.dtype(), count, rows.cols(), "a sample of the vectors", resources);
    gather_cuda(rows, numbers, copy_.mutable_view().row(0), resources);
    view_ = copy_.view();
  }

  const MatrixView& view() const { return view_; }

 private:
  MatrixBuffer copy_;
  MatrixView view_;
};

struct Window {
  double ratio = -1;  // how many times as far from the offset as wide; negative: none
  double reach = 0;
  double width = 0;
};

// The different values of a column's sample, ascending.
struct SampledColumn {
  std::vector<double> values;
  double middle = 0;  // of all, a value which rounding has not touched

  int64_t step() const { return std::max<int64_t>(1, static_cast<int64_t>(values.size()) / kWindowPart); }

  template <typename X>
  void take(const MatrixView& sample, const std::vector<int64_t>& rows, int64_t col) {
    values.clear();
    for (const int64_t row : rows) values.push_back(static_cast<double>(typed_row<X>(sample, row)[col]));
    std::sort(values.begin(), values.end());
    middle = values[(values.size() - 1) / 2];
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }

  // The window farthest from the offset by its width; NaN, where numbers are too large to say, before all others.
  Window farthest(double offset) const {
    Window most;
    const auto apart = static_cast<size_t>(step());
    for (size_t i = 0; i + apart < values.size(); ++i) {
      const double low = values[i], high = values[i + apart];
      const Window window{.reach = std::max(std::abs(low - offset), std::abs(high - offset)), .width = high - low};
      const double ratio = window.reach / window.width;
      if (ratio <= most.ratio) continue;
      most = {ratio, window.reach, window.width};
      if (std::isnan(ratio)) break;
    }
    return most;
  }

  // What to subtract.
  double shift() const {
    const double before = farthest(0).ratio;
    if (before < 0 || std::isnan(before)) return middle;  // a column of one value is best subtracted
    return before >= kFarWindow && before >= kShiftGain * farthest(middle).ratio ? middle : 0;
  }
};

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

struct Survey {
  Offset offset;     // the chosen one
  double moved = 0;  // how far rounding moves a vector then, as a share of the distance of neighbours; about
};

template <typename X>
std::vector<int64_t> finite_rows(const MatrixView& sample) {
  std::vector<int64_t> finite;
  for (int64_t row = 0; row < sample.rows(); ++row) {
    const X* const values = typed_row<X>(sample, row);
    const auto is_finite = [](const X& value) { return std::isfinite(static_cast<double>(value)); };
    if (std::all_of(values, values + sample.cols(), is_finite)) finite.push_back(row);
  }
  return finite;
}

// Estimates the effect of rounding after an offset is subtracted: the `given` one or, with `shifts`, one that it
// chooses.
template <typename X>
Survey survey_of(const MatrixView& sample, int64_t all_rows, const Offset& given, bool shifts) {
  const std::vector<int64_t> rows = finite_rows<X>(sample);
  if (rows.empty() || sample.cols() == 0) return {given};
  std::vector<double> offset(static_cast<size_t>(sample.cols()));
  if (given != nullptr) offset = *given;
  std::vector<double> shares;  // of the values in a window
  std::vector<Window> windows;
  SampledColumn column;
  for (int64_t col = 0; col < sample.cols(); ++col) {
    column.take<X>(sample, rows, col);
    double& shift = offset[static_cast<size_t>(col)];
    if (shifts) shift = column.shift();
    const Window window = column.farthest(shift);
    shares.push_back(static_cast<double>(column.step()) / static_cast<double>(column.values.size()));
    if (window.ratio >= 0) windows.push_back(window);
  }
  Survey survey{given};
  if (shifts && std::any_of(offset.begin(), offset.end(), [](double value) { return value != 0; })) {
    survey.offset = std::make_shared<const std::vector<double>>(std::move(offset));
  }
  if (windows.empty()) return survey;
  // With its share of the rows spread evenly over windows that wide in every column, neighbours are
  // (rows in it) ** (1 / columns) times as close as it is wide.
  double largest = 0;
  for (const Window& window : windows) largest = std::max(largest, window.width);
  double moved = 0, widths = 0;
  for (const Window& window : windows) {
    const double width = window.width / largest;
    const double error = std::max(window.reach * kHalfStep, kSmallestRounding) / largest;
    moved += (width * error) * (width * error);
    widths += width * width;
  }
  const double inside = std::max(1.0, static_cast<double>(all_rows) * median(shares));
  survey.moved = std::sqrt(moved) / widths * std::pow(inside, 1.0 / static_cast<double>(windows.size()));
  return survey;
}

Survey survey_rows(const MatrixView& rows, const Offset& given, bool shifts, const Resources& resources) {
  const RowsSample sample(rows, resources);
  if (counts_only(resources)) return {given};
  return visit_numbers(rows.dtype(), [&](auto stored) {
    return survey_of<typename decltype(stored)::type>(sample.view(), rows.rows(), given, shifts);
  });
}

// Converts a row to f32; false if a finite value overflows.
template <typename X>
bool narrow_row(const X* from, const double* offset, int64_t cols, float* to) {
  bool beyond = false;
  for (int64_t col = 0; col < cols; ++col) {
    const auto given = static_cast<double>(from[col]);
    const auto rounded = static_cast<float>(offset == nullptr ? given : given - offset[col]);
    beyond |= std::isinf(rounded) & !std::isinf(given);
    to[col] = rounded;
  }
  return !beyond;
}

[[noreturn]] void throw_beyond(std::string_view name, const MatrixView& rows, int64_t row, const double* offset) {
  visit_numbers(rows.dtype(), [&](auto stored) {
    using X = typename decltype(stored)::type;
    const X* const values = typed_row<X>(rows, row);
    for (int64_t col = 0; col < rows.cols(); ++col) {
      float rounded;
      if (narrow_row(values + col, offset == nullptr ? nullptr : offset + col, 1, &rounded)) continue;
      throw_beyond_float(name, static_cast<double>(values[col]), row, col);
    }
  });
  throw InvalidArgument(fmt::format("{}: values in row {} are beyond float32's range", name, row));
}

void narrow_on_host(std::string_view name, const MatrixView& rows, const double* offset, float* out,
                    const Resources& resources) {
  const int64_t rows_at_once = std::max<int64_t>(kValuesOfATask / std::max<int64_t>(rows.cols(), 1), 1);
  std::atomic<int64_t> beyond{rows.rows()};  // the first such row
  const auto narrow_some = [&](int64_t first, int64_t end) {
    const DefaultFloatMode mode;
    visit_numbers(rows.dtype(), [&](auto stored) {
      using X = typename decltype(stored)::type;
      for (int64_t row = first; row < end; ++row) {
        if (narrow_row(typed_row<X>(rows, row), offset, rows.cols(), out + row * rows.cols())) continue;
        int64_t known = beyond.load();
        while (row < known && !beyond.compare_exchange_weak(known, row)) {
        }
        return;
      }
    });
  };
  for_row_blocks("narrow", rows.rows(), resources.with_progress({}), narrow_some, rows_at_once);
  if (beyond < rows.rows()) throw_beyond(name, rows, beyond, offset);
}

// Whether rounding changes nothing.
bool is_exact(const MatrixView& rows, const Offset& offset, const Resources& resources) {
  if (!rows.space().host_readable()) {
    return is_exact_cuda(rows, offset == nullptr ? nullptr : offset->data(), resources);
  }
  return visit_numbers(rows.dtype(), [&](auto stored) {
    using X = typename decltype(stored)::type;
    for (int64_t row = 0; row < rows.rows(); ++row) {
      const X* const values = typed_row<X>(rows, row);
      for (int64_t col = 0; col < rows.cols(); ++col) {
        const double given = static_cast<double>(values[col]);
        const double wide = offset == nullptr ? given : given - (*offset)[static_cast<size_t>(col)];
        if (static_cast<double>(static_cast<float>(wide)) != wide && !std::isnan(wide)) return false;
      }
    }
    return true;
  });
}

void warn_of_rounding(std::string_view name, bool wide, const Resources& resources) {
  const std::string advice =
      wide
          ? fmt::format(
                "To accept the rounding and silence this, pass {0} as float32 (numpy: {0}.astype(numpy.float32))", name)
          : "What is subtracted was told by the first vectors of the index, float64 ones: those here lie elsewhere";
  resources.log(
      LogLevel::precision,
      fmt::format("{}: float32, in which Kith reads vectors, cannot tell these values apart well enough, so that "
                  "other rows may come out as nearest. Subtract what the values of a column have in common (for "
                  "l2, sqeuclidean, l1 and linf Kith has done that), or spread such a column over two. {}",
                  name, advice));
}

}  // namespace

void throw_beyond_float(std::string_view name, double value, int64_t row, int64_t col) {
  throw InvalidArgument(
      fmt::format("{} holds {} in row {}, column {}, which is beyond float32's range of 3.4e38: scale the vectors",
                  name, value, row, col));
}

NarrowedRows::NarrowedRows(std::string_view name, const MatrixView& rows, Metric metric, const Resources& resources)
    : view_(rows) {
  if (rows.dtype() != DType::f64) return;
  if (!rows.empty()) {
    Survey survey = survey_rows(rows, nullptr, is_shiftable(metric), resources);
    // Values that f32 holds exactly stay unshifted, unless the differences are exact too.
    const bool stays =
        survey.offset != nullptr && !is_exact(rows, survey.offset, resources) && is_exact(rows, nullptr, resources);
    if (!stays) {
      offset_ = std::move(survey.offset);
      if (survey.moved > kMostMoved && !is_exact(rows, offset_, resources)) warn_of_rounding(name, true, resources);
    }
  }
  narrow(name, rows, resources);
}

NarrowedRows::NarrowedRows(std::string_view name, const MatrixView& rows, Offset offset, OfRounding told,
                           const Resources& resources)
    : offset_(has_offset(offset, rows.cols()) ? std::move(offset) : nullptr), view_(rows) {
  if (!is_narrowed(rows, offset_)) return;
  if (told == OfRounding::warns && !rows.empty() && survey_rows(rows, offset_, false, resources).moved > kMostMoved &&
      !is_exact(rows, offset_, resources)) {
    warn_of_rounding(name, rows.dtype() == DType::f64, resources);
  }
  narrow(name, rows, resources);
}

void NarrowedRows::narrow(std::string_view name, const MatrixView& rows, const Resources& resources) {
  const double* const offset = offset_ == nullptr ? nullptr : offset_->data();
  const MatrixShape shape{rows.rows(), rows.cols(), rows.cols()};
  if (!rows.space().host_readable()) {
    on_device_ = narrow_cuda(name, rows, offset, resources);
    view_ = MatrixView(on_device_.get(), DType::f32, shape, rows.space());
    return;
  }
  on_host_ = MatrixBuffer(DType::f32, rows.rows(), rows.cols(), "vectors as f32", resources);
  view_ = on_host_.view();
  if (resources.host_memory()->counts_only()) return;
  narrow_on_host(name, rows, offset, static_cast<float*>(on_host_.mutable_view().data()), resources);
}

static NarrowedVectors taken(const MatrixView& given, NarrowedRows narrowed) {
  NarrowedVectors vectors;
  if (!is_narrowed(given, narrowed.offset())) return vectors;
  if (narrowed.offset() != nullptr) vectors.offset = *narrowed.offset();
  vectors.rows = narrowed.take();
  vectors.is_copy = true;
  return vectors;
}

NarrowedVectors narrow_vectors(std::string_view name, const MatrixView& vectors, Metric metric,
                               const Resources& resources) {
  return taken(vectors, NarrowedRows(name, vectors, metric, resources));
}

NarrowedVectors narrow_vectors(std::string_view name, const MatrixView& vectors, const std::vector<double>& offset,
                               const Resources& resources) {
  const Offset given = offset.empty() ? nullptr : std::make_shared<const std::vector<double>>(offset);
  return taken(vectors, NarrowedRows(name, vectors, given, OfRounding::silent, resources));
}

void restore_rows(const MatrixView& rows, const Offset& offset, const MutableMatrixView& out) {
  for (int64_t row = 0; row < rows.rows(); ++row) {
    const float* const from = typed_row<float>(rows, row);
    for (int64_t col = 0; col < rows.cols(); ++col) {
      const double value =
          static_cast<double>(from[col]) + (offset == nullptr ? 0 : (*offset)[static_cast<size_t>(col)]);
      if (out.dtype() == DType::f64) {
        typed_row<double>(out, row)[col] = value;
      } else {
        typed_row<float>(out, row)[col] = static_cast<float>(value);
      }
    }
  }
}

}  // namespace kith
