#include "ivf/scan/list_screen.hpp"

#include "core/divide.hpp"
#include "core/infinity.hpp"
#include "core/parallel_for.hpp"
#include "ivf/scan/list_product.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/panels/panel_packing.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int64_t kTaskRows = 1 << 10;
constexpr int64_t kDecoded = 16;  // vectors at a time
constexpr int32_t kZeroByte = 128;

bool has_words(const CodeFormat& format) { return format.copies_codewords() || format.adds_codewords(); }
bool has_terms(const CodeFormat& format, KeyKind kind) {
  return has_differences(kind) || (has_words(format) && kind == KeyKind::cosine);
}
bool has_scales(const CodeFormat& format, KeyKind kind) {
  return format.stores_values() || (format.steps_columns() && kind == KeyKind::cosine);
}

int64_t squared_length(const uint8_t* bytes, int64_t cols, int32_t zero) {
  int64_t sum = 0;
  for (int64_t c = 0; c < cols; ++c) sum += (bytes[c] - zero) * (bytes[c] - zero);
  return sum;
}

// A vector near those of a list without a centre: a mean of some.
std::vector<float> mean_of_some(const IvfModel& model, const ListSegment& segment) {
  constexpr int64_t kSample = 256;
  const int64_t cols = model.cols();
  std::vector<float> vector(static_cast<size_t>(cols));
  std::vector<double> sums(static_cast<size_t>(cols), 0.0);
  const int64_t count = std::min(kSample, segment.size());
  for (int64_t i = 0; i < count; ++i) {
    decode_rows_cpu(model.codec->view(), segment.code(segment.size() * i / count), 1, nullptr, vector.data());
    for (size_t c = 0; c < sums.size(); ++c) sums[c] += static_cast<double>(vector[c]);
  }
  for (size_t c = 0; c < sums.size(); ++c) {
    const double mean = count == 0 ? 0.0 : sums[c] / static_cast<double>(count);
    vector[c] = std::isfinite(mean) ? static_cast<float>(mean) : 0.0f;
  }
  return vector;
}

// The same for every segment.
std::vector<float> mean_of_centres(const IvfModel& model) {
  std::vector<double> sums(static_cast<size_t>(model.cols()), 0.0);
  for (int64_t list = 0; list < model.lists(); ++list) {
    for (size_t c = 0; c < sums.size(); ++c) sums[c] += static_cast<double>(model.centre(list)[c]);
  }
  std::vector<float> mean(sums.size());
  for (size_t c = 0; c < sums.size(); ++c) {
    const double value = sums[c] / static_cast<double>(model.lists());
    mean[c] = std::isfinite(value) ? static_cast<float>(value) : 0.0f;
  }
  return mean;
}

}  // namespace

bool ListScreen::suits(const IvfModel& model) {
  const CodeFormat& format = model.codec->format();
  const KeyKind kind = key_kind(model.metric);
  const bool known = has_differences(kind) || kind == KeyKind::inner_product || kind == KeyKind::cosine;
  if (format.adds_codewords()) return has_sum_terms(format, kind);
  if (format.copies_codewords()) {
    if (format.bits < 4) return false;
    if (kind == KeyKind::cosine) return true;
    return known && model.residual && format.bits > 4;  // tables of 4 bits are filled at once for every list
  }
  const bool bytes = format.stores_values() || (format.steps_columns() && format.bits >= 4);
  return known && bytes && format.cols <= kMostWeightColumns;
}

int64_t ListScreen::bytes_for(const IvfModel& model, int64_t size) {
  const CodeFormat& format = model.codec->format();
  const KeyKind kind = key_kind(model.metric);
  const int64_t floats = (has_terms(format, kind) ? 1 : 0) + (has_scales(format, kind) ? 1 : 0);
  if (!format.stores_values()) return array_bytes<float>(floats * size);
  return size * round_up(format.cols, kFewestWeightColumns) + array_bytes<float>((floats + 1) * size);
}

ListScreen::ListScreen(const IvfModel& model, const ListSegment& segment, const Resources& resources)
    : kind_(key_kind(model.metric)),
      stored_(model.codec->format().stores_values()),
      words_(has_words(model.codec->format())),
      cols_(model.cols()),
      stride_(round_up(cols_, kFewestWeightColumns)) {
  const CodeFormat& format = model.codec->format();
  const int64_t size = segment.size();
  if (stored_) rounded_ = HostArray<uint8_t>(size * stride_, "rounded vectors of lists", resources);
  if (has_terms(format, kind_)) terms_ = HostArray<float>(size, "the lists' norms", resources);
  if (has_scales(format, kind_)) scales_ = HostArray<float>(size, "the lists' norms", resources);
  if (stored_) spreads_ = HostArray<float>(size, "rounded vectors of lists", resources);
  if (stored_ && !model.has_centres()) {
    origin_ =
        kind_ == KeyKind::cosine ? std::vector<float>(static_cast<size_t>(cols_), 0.0f) : mean_of_some(model, segment);
  }
  if (!stored_ && !format.adds_codewords() && model.residual) origin_ = mean_of_centres(model);
  const double most = stored_ ? 127 : middle_code(format.bits);
  longest_ = static_cast<float>(most * std::sqrt(static_cast<double>(cols_)) * 1.001);
  if (bytes() == 0) return;
  std::vector<double> longest(static_cast<size_t>(divide_up(size, kTaskRows)), 0.0);
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("prepare", size, quiet);
  parallel_for(divide_up(size, kTaskRows), meter, quiet, [&](int64_t task, int) {
    const int64_t end = std::min((task + 1) * kTaskRows, size);
    int64_t list = segment.list_of(task * kTaskRows);
    for (int64_t at = task * kTaskRows; at < end; ++list) {
      const int64_t stop = std::min(end, segment.offsets()[list + 1]);
      for (; at < stop; at += std::min(kDecoded, stop - at)) {
        const int64_t until = std::min(at + kDecoded, stop);
        if (words_) {
          measure_words(model, segment, list, at, until);
          continue;
        }
        double& mine = longest[static_cast<size_t>(task)];
        mine = std::max(mine, stored_ ? round_floats(model, segment, list, at, until)
                                      : measure_codes(model, segment, list, at, until));
      }
    }
  });
  for (const float term : terms_) largest_term_ = std::max(largest_term_, std::abs(term));
  longest_ = static_cast<float>(*std::max_element(longest.begin(), longest.end()) * 1.001);
}

// Distances and products are those of y = x - origin. Its rounding, |y| 2^-24, and what the rounding of a query's
// weights and sums take, which is less than |q| |y| 2^-12 together (byte_list_product.cpp), are in the spread.
double ListScreen::round_floats(const IvfModel& model, const ListSegment& segment, int64_t list, int64_t begin,
                                int64_t end) {
  std::vector<float> values(static_cast<size_t>(kDecoded * cols_));
  decode_rows_cpu(model.codec->view(), segment.code(begin), end - begin, model.base_of(list), values.data());
  const float* const origin = model.has_centres() ? model.centre(list) : origin_.data();
  int64_t longest = 0;
  for (int64_t i = begin; i < end; ++i) {
    float* const vector = values.data() + (i - begin) * cols_;
    if (kind_ == KeyKind::cosine) {
      const double inverse = canonical_inverse_norm(canonical_squared_norm_cpu(vector, cols_));
      for (int64_t c = 0; c < cols_; ++c) vector[c] = static_cast<float>(vector[c] * inverse);
    }
    for (int64_t c = 0; c < cols_; ++c) vector[c] -= origin[c];
    const double squared = canonical_squared_norm_cpu(vector, cols_);
    uint8_t* const bytes = rounded_.data() + i * stride_;
    std::fill_n(bytes, stride_, uint8_t{128});
    const RoundedVector rounded = round_row(vector, cols_, 1, reinterpret_cast<int8_t*>(bytes), kZeroByte);
    const bool sure = squared < kLargestSquaredNorm && std::isfinite(rounded.residual);
    scales_[i] = rounded.scale;
    const double spread = (static_cast<double>(rounded.residual) + std::sqrt(squared) * 0x1p-12) * 1.001;
    spreads_[i] = sure ? static_cast<float>(spread) : kInfinity;
    // Rounded down, by more than all that is rounded relative to it.
    if (terms_.size() > 0) terms_[i] = static_cast<float>(squared * (1 - 16 * kUnitRoundoff));
    longest = std::max(longest, squared_length(bytes, cols_, 128));
  }
  return std::sqrt(static_cast<double>(longest));
}

double ListScreen::measure_codes(const IvfModel& model, const ListSegment& segment, int64_t list, int64_t begin,
                                 int64_t end) {
  const CodecView codec = model.codec->view();
  const int32_t middle = middle_code(codec.format.bits);
  std::vector<uint8_t> codes(static_cast<size_t>(cols_));
  std::vector<double> from_mean(static_cast<size_t>(cols_), 0.0);
  if (model.residual) {
    for (size_t c = 0; c < from_mean.size(); ++c) {
      from_mean[c] = static_cast<double>(model.centre(list)[c]) - static_cast<double>(origin_[c]);
    }
  }
  int64_t longest = 0;
  for (int64_t i = begin; i < end; ++i) {
    unpack_sub_codes(segment.code(i), cols_, codec.format.bits, codes.data());
    longest = std::max(longest, squared_length(codes.data(), cols_, middle));
    if (kind_ == KeyKind::cosine) continue;
    double sum = 0;
    for (int64_t c = 0; c < cols_; ++c) {
      const double value = static_cast<double>(codec.steps[c]) * (codes[static_cast<size_t>(c)] - middle);
      sum += value * (value + 2 * from_mean[static_cast<size_t>(c)]);
    }
    terms_[i] = static_cast<float>(sum);
  }
  if (kind_ == KeyKind::cosine) {
    std::vector<float> values(static_cast<size_t>(kDecoded * cols_));
    decode_rows_cpu(codec, segment.code(begin), end - begin, model.base_of(list), values.data());
    for (int64_t i = begin; i < end; ++i) {
      const double squared = canonical_squared_norm_cpu(values.data() + (i - begin) * cols_, cols_);
      scales_[i] = static_cast<float>(canonical_inverse_norm(squared));
    }
  }
  return std::sqrt(static_cast<double>(longest));
}

void ListScreen::measure_words(const IvfModel& model, const ListSegment& segment, int64_t list, int64_t begin,
                               int64_t end) {
  std::vector<float> values(static_cast<size_t>(kDecoded * cols_));
  const bool cosine = kind_ == KeyKind::cosine;
  const bool sums = model.codec->format().adds_codewords();
  decode_rows_cpu(model.codec->view(), segment.code(begin), end - begin,
                  cosine || sums ? model.base_of(list) : nullptr, values.data());
  for (int64_t i = begin; i < end; ++i) {
    const float* const vector = values.data() + (i - begin) * cols_;
    const double squared = canonical_squared_norm_cpu(vector, cols_);
    if (cosine || sums) {
      terms_[i] = static_cast<float>(cosine ? std::sqrt(squared) : squared);
      continue;
    }
    const float* const centre = model.centre(list);
    double product = 0;
    for (int64_t c = 0; c < cols_; ++c) {
      product += (static_cast<double>(centre[c]) - static_cast<double>(origin_[static_cast<size_t>(c)])) *
                 static_cast<double>(vector[c]);
    }
    terms_[i] = static_cast<float>(squared + 2 * product);
  }
}

ByteRows ListScreen::rows(int64_t first, int64_t count) const {
  ByteRows rows;
  rows.count = count;
  rows.cols = stride_;
  rows.longest = longest_;
  if (stored_) {
    rows.bytes = rounded_.data() + first * stride_;
    rows.stride = stride_;
    rows.spreads = spreads_.data() + first;
  }
  if (terms_.size() > 0) rows.terms = terms_.data() + first;
  if (scales_.size() > 0) rows.scales = scales_.data() + first;
  if (scales_.size() > 0 && !stored_) rows.spreads = rows.scales;
  return rows;
}

SharedScreen find_list_screen(const SegmentCopies& segment) {
  return std::static_pointer_cast<const ListScreen>(segment.prepared().find(Device::cpu(), PreparedAs<ListScreen>()));
}

SharedScreen get_list_screen(const SegmentCopies& segment, const IvfModel& model, int64_t room,
                             const Resources& resources) {
  if (SharedScreen ready = find_list_screen(segment)) return ready;
  // A mapped file gets no screen: making one would read all of it.
  const Segment here = segment.on(Device::cpu(), resources);
  const bool owned = here->bytes() >= here->size() * here->code_bytes();
  if (!owned || ListScreen::bytes_for(model, here->size()) > room) return nullptr;
  return std::static_pointer_cast<const ListScreen>(
      segment.prepared().keep(Device::cpu(), std::make_shared<const ListScreen>(model, *here, resources),
                              PreparedAs<ListScreen>()));
}

}  // namespace kith
