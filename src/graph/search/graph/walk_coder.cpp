#include "graph/search/graph/walk_coder.hpp"

#include <kith/knn.hpp>

#include "core/parallel_for.hpp"
#include "core/random.hpp"
#include "core/within_limits.hpp"
#include "rows/row_sample.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace kith {
namespace {

constexpr uint64_t kWalkSampleStream = 0x77616C6B;  // of random numbers
constexpr int64_t kSampleValues = int64_t{1} << 22;
constexpr int64_t kFewestSampleRows = 256;
constexpr int64_t kMostSampleRows = 16384;
constexpr int64_t kClippedOf = 1000;  // one of this many sampled values may be clipped
constexpr double kLargestCode = 127;
constexpr double kLargestNibble = 7.5;  // half of the levels that there are
constexpr double kMostSum = 2147483647.0;
constexpr int64_t kWidestWord = 16383;
constexpr int64_t kMostJudged = 256;  // rows
constexpr int64_t kFewestJudged = 16;
constexpr double kJudgedValues = 1e10;         // that these rows are compared with
constexpr int64_t kJudgedTogether = 1 << 14;  // of the others
constexpr int64_t kJudgedNear = 11;   // a row, and its 10 nearest
constexpr int64_t kJudgedFirst = 40;  // that a search compares again
constexpr double kJudgedShare = 0.97;

// The nearest whole number, ties to even, of what is below 2^51: a sum with kUnits has no fraction. Without a call,
// which would take longer than the rest of coding a value. What is larger stays larger than every code.
inline double nearest_whole(double value) {
  constexpr double kUnits = 0x1.8p52;
  return (value + kUnits) - kUnits;
}

constexpr float kLargestFloat = std::numeric_limits<float>::max();

// No more than a float holds: values beyond half of its range are farther apart.
float distance_between(float a, float b) { return std::min(std::abs(a - b), kLargestFloat); }

int64_t judged_rows(int64_t count, int64_t cols) {
  const double affordable = kJudgedValues / static_cast<double>(cols) / static_cast<double>(count);
  return std::min(count, std::clamp(static_cast<int64_t>(affordable), kFewestJudged, kMostJudged));
}

WalkKind kind_for(Metric metric) {
  switch (metric) {
    case Metric::l2:
    case Metric::sqeuclidean:
    case Metric::cosine: return WalkKind::squares;
    case Metric::inner_product: return WalkKind::products;
    default: return WalkKind::canonical;
  }
}

// The factor by which to widen the step that follows from `spread`, up to 2, so that the total error of rounding and
// clipping is smallest. Clipping would move all rows of a cluster at the rim; but a few outliers should not make the
// codes of all others coarse. For four bits the factor may be below 1, since their steps are much larger.
float widening(const float* begin, const float* end, float spread, WalkBits bits) {
  constexpr float kFactors[] = {1.0F, 1.125F, 1.25F, 1.5F, 1.75F, 2.0F, 0.5F, 0.6F, 0.7F, 0.8F, 0.9F};
  constexpr size_t kWider = 6;
  const bool four = bits == WalkBits::four;
  const double levels = four ? kLargestNibble : kLargestCode;
  float best = 1;
  double least = 0;
  for (const float factor : std::span(kFactors).first(four ? std::size(kFactors) : kWider)) {
    const double largest = static_cast<double>(spread * factor);
    double error = static_cast<double>(end - begin) * (largest / levels) * (largest / levels) / 12;
    for (const float* value = begin; value != end; ++value) {
      const double beyond = std::max(0.0, static_cast<double>(*value) - largest);
      error += beyond * beyond;
    }
    if (factor == 1.0F || error < least) {
      least = error;
      best = factor;
    }
  }
  return best;
}

// A word b and a code c differ by at most widest + 128, and `cols` such squares are summed.
int64_t widest_word(int64_t cols) {
  const double most = std::floor(std::sqrt(kMostSum / static_cast<double>(cols))) - 128;
  return std::clamp<int64_t>(static_cast<int64_t>(most), 127, kWidestWord);
}

// A query's values less their offsets, which may be null. Every walk begins with these loops: they have no calls, and
// their comparisons are independent.
double moved(const float* values, const float* offsets, int64_t c) {
  return static_cast<double>(values[c]) - (offsets == nullptr ? 0.0 : static_cast<double>(offsets[c]));
}
double largest_moved(const float* values, const float* offsets, int64_t count) {
  constexpr int64_t kLanes = 4;
  double largest[kLanes] = {};
  for (int64_t c = 0; c < count; ++c) {
    const double size = std::abs(moved(values, offsets, c));
    double& lane = largest[c % kLanes];
    lane = lane < size ? size : lane;
  }
  return *std::max_element(largest, largest + kLanes);
}
// Rounded to whole numbers, ties to even, after a multiplication. Returns whether all of them fit a signed byte.
bool round_moved(const float* values, const float* offsets, int64_t count, double factor, int16_t* rounded) {
  int least = 0;
  int most = 0;
  for (int64_t c = 0; c < count; ++c) {
    const auto level = static_cast<int>(nearest_whole(moved(values, offsets, c) * factor));
    rounded[c] = static_cast<int16_t>(level);
    least = std::min(least, level);
    most = std::max(most, level);
  }
  return least >= -128 && most <= static_cast<int>(kLargestCode);
}

}  // namespace

bool walks_by_codes(Metric metric) { return kind_for(metric) != WalkKind::canonical; }

// Rows drawn by the seed, as codes are made of them.
struct WalkCoder::Sample {
  Sample(const WalkCoder& coder, const MatrixView& rows, uint64_t seed, const Resources& resources)
      : numbers(drawn_rows(CounterRng(seed, kWalkSampleStream), rows.rows(),
                           std::clamp(kSampleValues / rows.cols(), kFewestSampleRows, kMostSampleRows), resources)),
        count(static_cast<int64_t>(numbers.size())),
        values(count * rows.cols(), "a sample for the codes of a graph", resources),
        apart(count * rows.cols(), "a sample for the codes of a graph", resources) {
    if (counts_only(resources)) return;
    for (int64_t i = 0; i < count; ++i) {
      coder.load(rows, numbers[static_cast<size_t>(i)], values.data() + i * rows.cols());
    }
  }

  const std::vector<uint32_t> numbers;
  const int64_t count;
  const HostArray<float> values;
  const HostArray<float> apart;  // memory for the distances of values from their means
};

WalkCoder::WalkCoder(const Form& form, float step, std::vector<float> offsets)
    : form_(form),
      kind_(offsets.empty() ? WalkKind::canonical : kind_for(form.metric)),
      // Squares are in the order of their roots, and have means.
      key_(form.metric == Metric::l2 ? KeyKind::squared_l2 : key_kind(form.metric)),
      widest_(widest_word(form.cols)),
      step_(step),
      offsets_(std::move(offsets)) {}

WalkCoder WalkCoder::choose(const MatrixView& rows, Metric metric, uint64_t seed, const Resources& resources) {
  const Form form{metric, rows.dtype(), rows.cols()};
  const WalkCoder without(form, 1, {});
  WalkCoder coder(form, 1,
                  std::vector<float>(static_cast<size_t>(form.cols), rows.dtype() == DType::u8 ? 128.0F : 0.0F));
  if (!coder.has_codes()) return without;
  if (coder.takes_values()) return coder;
  const Sample sample(coder, rows, seed, resources);
  if (!counts_only(resources)) coder.fit(rows, sample);
  if (!coder.may_have_none()) return coder;
  // Where memory is only counted it is not known yet which it will be.
  return coder.tells_apart(rows, resources) && !counts_only(resources) ? coder : without;
}

WalkCoder WalkCoder::with_four_bits(const MatrixView& rows, uint64_t seed, const Resources& resources) const {
  Form form = form_;
  form.bits = WalkBits::four;
  WalkCoder coder(form, 1, offsets_);
  const Sample sample(coder, rows, seed, resources);
  if (!counts_only(resources)) coder.fit(rows, sample);
  return coder;
}

void WalkCoder::fit(const MatrixView& rows, const Sample& sample) {
  const int64_t cols = form_.cols;
  const auto columns = static_cast<size_t>(cols);
  std::vector<double> sums(columns, 0.0);
  for (int64_t i = 0; i < sample.count; ++i) {
    const float* const row = sample.values.data() + i * cols;
    for (int64_t c = 0; c < cols; ++c) sums[static_cast<size_t>(c)] += static_cast<double>(row[c]);
  }
  for (size_t c = 0; c < columns; ++c) offsets_[c] = static_cast<float>(sums[c] / static_cast<double>(sample.count));
  const HostArray<float>& apart = sample.apart;
  for (int64_t i = 0; i < sample.count * cols; ++i) {
    apart[i] = distance_between(sample.values[i], offsets_[static_cast<size_t>(i % cols)]);
  }
  float spread = 0;
  if (kind_ == WalkKind::products) {
    // The longest rows are the answers: none is clipped.
    for (int64_t i = 0; i < rows.rows(); ++i) {
      widen_row(rows, i, apart.data());
      for (size_t c = 0; c < columns; ++c) {
        spread = std::max(spread, distance_between(apart[static_cast<int64_t>(c)], offsets_[c]));
      }
    }
  } else {
    float* const cut = apart.begin() + (apart.size() - 1 - apart.size() / kClippedOf);
    std::nth_element(apart.begin(), cut, apart.end());
    spread = *cut > 0 ? std::min(*cut * widening(apart.begin(), apart.end(), *cut, form_.bits), kLargestFloat)
                      : *std::max_element(cut, apart.end());
  }
  const double largest = packed() ? kLargestNibble * kNibbleStep : kLargestCode;
  if (spread > 0) step_ = static_cast<float>(static_cast<double>(spread) / largest);
  if (!(step_ > 0)) step_ = 1;  // all rows alike, or apart by less than a float tells
}

// Whether codes can tell near rows apart: for a sample of rows, nearly all of the kJudgedNear nearest must be among the
// rows that a search by codes would compare again. That fails if distances differ by decades, as one step is too coarse
// for the short ones, and for clusters that are small compared with the gaps between them. Neighbours are searched
// among all rows, since those in a sample would be farther apart.
bool WalkCoder::tells_apart(const MatrixView& rows, const Resources& resources) const {
  const int64_t count = rows.rows();
  const int64_t judged = judged_rows(count, form_.cols);
  const int64_t near = std::min(kJudgedNear, count);
  const int64_t first = std::min(kJudgedFirst, count);
  const int64_t block = std::min(kJudgedTogether, count);
  const int64_t slots = resources.threads();
  constexpr const char* kPurpose = "a sample for the codes of a graph";
  const HostArray<float> floats(judged * form_.cols, kPurpose, resources);
  const HostArray<std::byte> codes(block * place_bytes(), kPurpose, resources);
  const HostArray<std::byte> asked_codes(judged * place_bytes(), kPurpose, resources);
  const HostArray<uint32_t> numbers(block, kPurpose, resources);
  const HostArray<uint32_t> near_keys(judged * near, kPurpose, resources);
  const HostArray<uint32_t> least(judged * first, kPurpose, resources);  // the first keys of each so far
  const HostArray<uint32_t> keys(slots * (block + first), kPurpose, resources);
  Neighbors nearest(judged, near, resources);
  for (int64_t i = 0; i < judged && !counts_only(resources); ++i) {
    load(rows, i * count / judged, floats.data() + i * form_.cols);
  }
  const KnnParams params{.k = near, .metric = Metric::sqeuclidean, .check_finite = false};
  const MatrixView asked(floats.data(), judged, form_.cols);
  call_or_count(resources, [&](const Resources& used) { knn(asked, rows, nearest.view(), params, used); });
  const HostArray<float> room(row_room(), kPurpose, resources);
  if (counts_only(resources)) return true;
  for (int64_t i = 0; i < judged; ++i) {
    encode(rows, i * count / judged, asked_codes.data() + i * place_bytes(), room.data());
  }
  const WalkRows asked_rows = rows_of(asked_codes.data(), judged);
  std::iota(numbers.begin(), numbers.end(), 0U);
  std::fill(least.begin(), least.end(), 0xFFFFFFFFU);
  std::fill(near_keys.begin(), near_keys.end(), 0xFFFFFFFFU);
  ProgressMeter meter("judge codes", judged * divide_up(count, block), resources);
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t some = std::min(block, count - begin);
    encode_all(rows.slice(begin, some), codes.data(), resources);
    const WalkRows coded = rows_of(codes.data(), some);
    parallel_for(judged, meter, resources, [&](int64_t i, int slot) {
      uint32_t* const own = keys.data() + slot * (block + first);
      uint32_t* const best = least.data() + i * first;
      walk_keys(coded, query_of_place(asked_rows, i, nullptr), numbers.data(), some, own);
      for (int64_t n = 0; n < near; ++n) {
        const int64_t at = nearest.ids(i)[n] - begin;
        if (at >= 0 && at < some) near_keys[i * near + n] = own[at];
      }
      std::copy_n(best, first, own + some);
      std::nth_element(own, own + first - 1, own + some + first);
      std::copy_n(own, first, best);
      meter.add(1);
    });
  }
  meter.finish();
  int64_t right = 0;
  for (int64_t i = 0; i < judged; ++i) {
    const uint32_t last = *std::max_element(least.data() + i * first, least.data() + (i + 1) * first);
    right += std::count_if(near_keys.data() + i * near, near_keys.data() + (i + 1) * near,
                           [&](uint32_t key) { return key <= last; });
  }
  return static_cast<double>(right) >= kJudgedShare * static_cast<double>(judged * near);
}

WalkRows WalkCoder::rows_of(const void* data, int64_t places) const {
  if (!packed()) return centres_of(data, places);
  return {kind_, key_, {data, DType::i8, {places, place_bytes(), place_bytes()}}, true};
}

WalkRows WalkCoder::centres_of(const void* data, int64_t centres) const {
  if (has_codes()) return {kind_, key_, {data, DType::i8, {centres, form_.cols, code_columns()}}};
  return {kind_, key_, {data, form_.dtype, {centres, form_.cols, form_.cols}}};
}

// As codes are made of it.
void WalkCoder::load(const MatrixView& rows, int64_t row, float* floats) const {
  widen_row(rows, row, floats);
  if (!unit_length()) return;
  double inverse = 0;
  canonical_inverse_norms_cpu(MatrixView(floats, 1, form_.cols), &inverse);
  for (int64_t c = 0; c < form_.cols; ++c) floats[c] = static_cast<float>(static_cast<double>(floats[c]) * inverse);
}

int64_t WalkCoder::encode(const MatrixView& rows, int64_t row, std::byte* out, float* floats) const {
  if (!has_codes()) {
    std::memcpy(out, rows.row(row), static_cast<size_t>(place_bytes()));
    return 0;
  }
  const int64_t cols = form_.cols;
  auto* const code = reinterpret_cast<int8_t*>(out);
  if (takes_values()) {
    std::fill(code + cols, code + code_columns(), int8_t{0});
    const auto* const bytes = reinterpret_cast<const uint8_t*>(rows.row(row));
    const uint8_t sign = form_.dtype == DType::u8 ? 0x80 : 0;
    for (int64_t c = 0; c < cols; ++c) code[c] = static_cast<int8_t>(bytes[c] ^ sign);
    return 0;
  }
  load(rows, row, floats);
  const double inverse = 1.0 / (static_cast<double>(step_) * (packed() ? kNibbleStep : 1));
  const double least = packed() ? kLeastNibble : -kLargestCode;
  const double most = packed() ? kMostNibble : kLargestCode;
  // Four bits are a byte each before they are packed, where the floats were.
  auto* const levels = packed() ? reinterpret_cast<int8_t*>(floats) : code;
  int64_t clipped = 0;
  for (int64_t c = 0; c < cols; ++c) {
    const double apart = static_cast<double>(floats[c]) - static_cast<double>(offsets_[static_cast<size_t>(c)]);
    const double level = nearest_whole(apart * inverse);
    const double kept = std::clamp(level, least, most);
    clipped += kept != level ? 1 : 0;
    levels[c] = static_cast<int8_t>(kept);
  }
  std::fill(levels + cols, levels + code_columns(), int8_t{0});
  if (packed()) pack_nibbles(levels, code_columns(), code);
  return clipped;
}

int64_t WalkCoder::encode_all(const MatrixView& rows, std::byte* out, const Resources& resources) const {
  constexpr int64_t kTask = 1024;
  HostArray<float> floats(resources.threads() * row_room(), "rows to be coded", resources);
  const int64_t tasks = divide_up(rows.rows(), kTask);
  std::vector<int64_t> clipped(static_cast<size_t>(tasks), 0);
  ProgressMeter meter("codes", rows.rows(), resources);
  parallel_for(tasks, meter, resources, [&](int64_t task, int slot) {
    const int64_t end = std::min((task + 1) * kTask, rows.rows());
    for (int64_t i = task * kTask; i < end; ++i) {
      clipped[static_cast<size_t>(task)] += encode(rows, i, out + i * place_bytes(), floats.data() + slot * row_room());
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
  const int64_t words = round_up(cols, kNibbleColumns) * 2;
  room.words = reinterpret_cast<int16_t*>(memory + round_up(cols * 4, 64));
  room.bytes = reinterpret_cast<int8_t*>(memory + round_up(cols * 4, 64) + round_up(words, 64));
  return room;
}

WalkQuery WalkCoder::query(const MatrixView& queries, int64_t number, const QueryRoom& room) const {
  WalkQuery made;
  if (!has_codes()) {
    widen_row(queries, number, room.floats);
    made.canonical.values = room.floats;
    canonical_inverse_norms_cpu(MatrixView(room.floats, 1, form_.cols), &made.canonical.inverse_norm);
    return made;
  }
  load(queries, number, room.floats);
  const bool whole = queries.dtype() == DType::u8 || queries.dtype() == DType::i8;
  const float* const offsets = kind_ == WalkKind::products ? nullptr : offsets_.data();
  const double largest = largest_moved(room.floats, offsets, form_.cols);
  double inverse = 1.0 / static_cast<double>(step_);
  if (kind_ == WalkKind::products) {
    inverse = whole || largest == 0 ? 1.0 : kLargestCode / largest;
  } else if (largest * inverse > static_cast<double>(widest_)) {
    inverse = static_cast<double>(widest_) / largest;
  }
  const bool narrow = round_moved(room.floats, offsets, form_.cols, inverse, room.words);
  std::fill(room.words + form_.cols, room.words + code_columns(), int16_t{0});
  made.code.words = room.words;
  if (!narrow) return made;
  for (int64_t c = 0; c < code_columns(); ++c) room.bytes[c] = static_cast<int8_t>(room.words[c]);
  made.code.bytes = room.bytes;
  return made;
}

}  // namespace kith
