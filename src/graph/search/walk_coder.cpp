#include "graph/search/walk_coder.hpp"

#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "core/within_limits.hpp"
#include "rows/row_sample.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace kith {
namespace {

constexpr uint64_t kWalkSampleStream = 0x77616C6B;  // of random numbers
constexpr int64_t kSampleValues = int64_t{1} << 22;
constexpr int64_t kFewestSampleRows = 256;
constexpr int64_t kMostSampleRows = 16384;
constexpr int64_t kClippedOf = 1000;  // one of so many sampled values may be clipped
constexpr double kLargestCode = 127;
constexpr double kMostSum = 2147483647.0;
constexpr int64_t kWidestWord = 16383;

WalkKind kind_for(Metric metric) {
  switch (metric) {
    case Metric::l2:
    case Metric::sqeuclidean:
    case Metric::cosine: return WalkKind::squares;
    case Metric::inner_product: return WalkKind::products;
    default: return WalkKind::canonical;
  }
}

// A word b and a code c differ by at most widest + 128, and `cols` such squares are summed.
int64_t widest_word(int64_t cols) {
  const double most = std::floor(std::sqrt(kMostSum / static_cast<double>(cols))) - 128;
  return std::clamp<int64_t>(static_cast<int64_t>(most), 127, kWidestWord);
}

}  // namespace

WalkCoder::WalkCoder(Metric metric, DType dtype, int64_t cols, float step, std::vector<float> offsets)
    : kind_(kind_for(metric)),
      key_(key_kind(metric)),
      unit_length_(metric == Metric::cosine),
      dtype_(dtype),
      cols_(cols),
      widest_(widest_word(cols)),
      step_(step),
      offsets_(std::move(offsets)) {}

WalkCoder WalkCoder::choose(const MatrixView& rows, Metric metric, uint64_t seed, const Resources& resources) {
  const int64_t cols = rows.cols();
  WalkCoder coder(metric, rows.dtype(), cols, 1, {});
  if (!coder.has_codes()) return coder;
  const auto columns = static_cast<size_t>(cols);
  coder.offsets_.assign(columns, rows.dtype() == DType::u8 ? 128.0F : 0.0F);
  if (coder.takes_values()) return coder;
  const int64_t most = std::clamp(kSampleValues / cols, kFewestSampleRows, kMostSampleRows);
  const std::vector<uint32_t> sample = drawn_rows(CounterRng(seed, kWalkSampleStream), rows.rows(), most, resources);
  const auto count = static_cast<int64_t>(sample.size());
  HostArray<float> values(count * cols, "a sample for the codes of a graph", resources);
  if (only_counts(resources)) return coder;
  std::vector<double> sums(columns, 0.0);
  for (int64_t i = 0; i < count; ++i) {
    float* const row = values.data() + i * cols;
    coder.load(rows, sample[static_cast<size_t>(i)], row);
    for (int64_t c = 0; c < cols; ++c) sums[static_cast<size_t>(c)] += static_cast<double>(row[c]);
  }
  for (size_t c = 0; c < columns; ++c) coder.offsets_[c] = static_cast<float>(sums[c] / static_cast<double>(count));
  for (int64_t i = 0; i < count * cols; ++i) {
    values[i] = std::abs(values[i] - coder.offsets_[static_cast<size_t>(i % cols)]);
  }
  float* const cut = values.begin() + (count * cols - 1 - count * cols / kClippedOf);
  std::nth_element(values.begin(), cut, values.end());
  const float spread = *cut > 0 ? *cut : *std::max_element(values.begin(), values.end());
  if (spread > 0) coder.step_ = static_cast<float>(static_cast<double>(spread) / kLargestCode);
  if (!(coder.step_ > 0)) coder.step_ = 1;  // all rows alike, or apart by less than a float tells
  return coder;
}

int64_t WalkCoder::place_bytes() const { return has_codes() ? code_stride(cols_) : cols_ * size_of(dtype_); }

MatrixView WalkCoder::view_of(const void* data, int64_t places) const {
  if (has_codes()) return {data, DType::i8, {places, cols_, code_stride(cols_)}};
  return {data, dtype_, {places, cols_, cols_}};
}

// As codes are made of it.
void WalkCoder::load(const MatrixView& rows, int64_t row, float* floats) const {
  widen_row(rows, row, floats);
  if (!unit_length_) return;
  double inverse = 0;
  canonical_inverse_norms_cpu(MatrixView(floats, 1, cols_), &inverse);
  for (int64_t c = 0; c < cols_; ++c) floats[c] = static_cast<float>(static_cast<double>(floats[c]) * inverse);
}

int64_t WalkCoder::encode(const MatrixView& rows, int64_t row, std::byte* out, float* floats) const {
  if (!has_codes()) {
    std::memcpy(out, rows.row(row), static_cast<size_t>(place_bytes()));
    return 0;
  }
  auto* const code = reinterpret_cast<int8_t*>(out);
  std::fill(code + cols_, code + code_stride(cols_), int8_t{0});
  if (takes_values()) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(rows.row(row));
    const uint8_t sign = dtype_ == DType::u8 ? 0x80 : 0;
    for (int64_t c = 0; c < cols_; ++c) code[c] = static_cast<int8_t>(bytes[c] ^ sign);
    return 0;
  }
  load(rows, row, floats);
  const double inverse = 1.0 / static_cast<double>(step_);
  int64_t clipped = 0;
  for (int64_t c = 0; c < cols_; ++c) {
    const double apart = static_cast<double>(floats[c]) - static_cast<double>(offsets_[static_cast<size_t>(c)]);
    const double level = std::nearbyint(apart * inverse);
    const double kept = std::clamp(level, -kLargestCode, kLargestCode);
    clipped += kept != level ? 1 : 0;
    code[c] = static_cast<int8_t>(kept);
  }
  return clipped;
}

int64_t WalkCoder::encode_all(const MatrixView& rows, std::byte* out, const Resources& resources) const {
  constexpr int64_t kTask = 1024;
  HostArray<float> floats(resources.threads() * cols_, "rows to be coded", resources);
  const int64_t tasks = divide_up(rows.rows(), kTask);
  std::vector<int64_t> clipped(static_cast<size_t>(tasks), 0);
  ProgressMeter meter("codes", rows.rows(), resources);
  parallel_for(tasks, meter, resources, [&](int64_t task, int slot) {
    const int64_t end = std::min((task + 1) * kTask, rows.rows());
    for (int64_t i = task * kTask; i < end; ++i) {
      clipped[static_cast<size_t>(task)] += encode(rows, i, out + i * place_bytes(), floats.data() + slot * cols_);
    }
    meter.add(end - task * kTask);
  });
  meter.finish();
  int64_t total = 0;
  for (const int64_t some : clipped) total += some;
  return total;
}

WalkCoder::QueryRoom WalkCoder::query_room(std::byte* memory, int64_t cols) {
  QueryRoom room;
  room.floats = reinterpret_cast<float*>(memory);
  room.words = reinterpret_cast<int16_t*>(memory + round_up(cols * 4, 64));
  room.bytes = reinterpret_cast<int8_t*>(memory + round_up(cols * 4, 64) + round_up(code_stride(cols) * 2, 64));
  return room;
}

WalkQuery WalkCoder::query(const MatrixView& queries, int64_t number, const QueryRoom& room) const {
  WalkQuery made;
  if (!has_codes()) {
    widen_row(queries, number, room.floats);
    made.canonical.values = room.floats;
    canonical_inverse_norms_cpu(MatrixView(room.floats, 1, cols_), &made.canonical.inverse_norm);
    return made;
  }
  load(queries, number, room.floats);
  const bool whole = queries.dtype() == DType::u8 || queries.dtype() == DType::i8;
  const auto moved = [&](int64_t c) {
    const double offset = kind_ == WalkKind::products ? 0.0 : static_cast<double>(offsets_[static_cast<size_t>(c)]);
    return static_cast<double>(room.floats[c]) - offset;
  };
  double largest = 0;
  for (int64_t c = 0; c < cols_; ++c) largest = std::max(largest, std::abs(moved(c)));
  double inverse = 1.0 / static_cast<double>(step_);
  if (kind_ == WalkKind::products) {
    inverse = whole || largest == 0 ? 1.0 : kLargestCode / largest;
  } else if (largest * inverse > static_cast<double>(widest_)) {
    inverse = static_cast<double>(widest_) / largest;
  }
  bool narrow = true;
  for (int64_t c = 0; c < cols_; ++c) {
    const double level = std::nearbyint(moved(c) * inverse);
    room.words[c] = static_cast<int16_t>(level);
    narrow = narrow && level >= -128 && level <= kLargestCode;
  }
  std::fill(room.words + cols_, room.words + code_stride(cols_), int16_t{0});
  made.code.words = room.words;
  if (!narrow) return made;
  for (int64_t c = 0; c < code_stride(cols_); ++c) room.bytes[c] = static_cast<int8_t>(room.words[c]);
  made.code.bytes = room.bytes;
  return made;
}

}  // namespace kith
