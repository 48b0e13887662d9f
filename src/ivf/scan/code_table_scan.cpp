#include "ivf/scan/code_table_scan.hpp"

#include "core/cpu_target.hpp"
#include "ivf/scan/list_screen.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/select/smallest_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace kith {
namespace {

constexpr int64_t kNobody = -1;
constexpr int64_t kFewestScreened = 24;  // vectors: fewer are added up in the time of a block's screen
constexpr double kRounding = 1e-6;  // of limits in steps, relative to what they are made of

}  // namespace

CodeTableScan::CodeTableScan(const CodeFormat& format, bool adds_norms, Terms terms, const ListProductShape& shape,
                             const Resources& resources)
    : format_(format),
      adds_norms_(adds_norms),
      terms_kind_(terms),
      owners_(static_cast<size_t>(shape.table_queries), kNobody),
      used_(static_cast<size_t>(shape.table_queries), 0),
      table_bytes_(screen_table_bytes(format)),
      screens_(has_code_screen(format, cpu_extensions())),
      screen_block_(block_screen(format)),
      held_("lookup tables", resources, *this, shape) {}

CodeTableScan::Arrays::Arrays(ArrayPlaces& places, const CodeTableScan& scan, const ListProductShape& shape)
    : sums(places.take<float>(shape.table_queries * scan.entries())),
      bytes(places.take<uint8_t>(shape.table_queries * scan.table_bytes_)),
      rounded(places.take<ByteTables>(shape.table_queries)),
      loaded(places.take<Loaded>(shape.loaded_queries)),
      steps(places.take<uint16_t>(round_up(shape.piece_rows, kColumnVectors))),
      values(places.take<float>(shape.piece_rows)),
      scales(places.take<float>(scan.terms_kind_ == Terms::scaled ? shape.piece_rows : 0)),
      inverses(places.take<float>(scales.size())),
      shifts(places.take<float>(scales.size())),
      codes(places.take<uint8_t>(shape.piece_rows * scan.format_.bytes())),
      terms(places.take<float>(scan.terms_kind_ == Terms::none ? 0 : shape.piece_rows)) {}

void CodeTableScan::round_table(int64_t i) {
  if (screens_) held_->rounded[i] = round_code_tables(format_, table(i), held_->bytes.data() + i * table_bytes_);
}

float CodeTableScan::norm_of(int64_t row) const {
  if (!adds_norms_) return 0;
  float norm;  // behind whole bytes
  std::memcpy(&norm, codes_ + row * format_.bytes() + format_.parts, sizeof norm);
  return norm;
}

void CodeTableScan::load_rows(const ListRows& rows) {
  const int64_t count = rows.count;
  codes_ = rows.codes;
  rows_ = count;
  if (terms_kind_ == Terms::added || terms_kind_ == Terms::divisors) {
    terms_ = rows.screen->terms(rows.first);
    largest_term_ = rows.screen->largest_term();
  }
  if (rows.places != nullptr) gather(rows);
  if (terms_kind_ == Terms::scaled) return load_scales();
  if (!adds_norms_) return;
  least_norm_ = kInfinity;
  most_norm_ = 0;
  bool sure = true;
  for (int64_t i = 0; i < count; ++i) {
    const auto norm = static_cast<double>(norm_of(i));
    least_norm_ = std::min(least_norm_, norm);
    most_norm_ = std::max(most_norm_, norm);
    sure = sure && norm >= 0 && norm < kLargestSquaredNorm;
  }
  // A norm takes part in as many roundings as a part's entry.
  norm_error_ =
      sure ? static_cast<float>(1.01 * static_cast<double>(format_.parts + 4) * kUnitRoundoff * most_norm_) : kInfinity;
}

// Gathers the codes and terms of vectors at arbitrary places into contiguous memory.
void CodeTableScan::gather(const ListRows& rows) {
  constexpr int64_t kAhead = 8;  // vectors that are on their way
  const int64_t bytes = format_.bytes();
  const bool has_terms = terms_kind_ == Terms::added || terms_kind_ == Terms::divisors;
  const auto fetch = [&](int64_t i) {
    __builtin_prefetch(codes_ + rows.place(i) * bytes);
    if (has_terms) __builtin_prefetch(terms_ + rows.place(i));
  };
  for (int64_t i = 0; i < std::min(kAhead, rows_); ++i) fetch(i);
  for (int64_t i = 0; i < rows_; ++i) {
    if (i + kAhead < rows_) fetch(i + kAhead);
    std::memcpy(held_->codes.data() + i * bytes, codes_ + rows.place(i) * bytes, static_cast<size_t>(bytes));
    if (has_terms) held_->terms[i] = terms_[rows.place(i)];
  }
  codes_ = held_->codes.data();
  if (has_terms) terms_ = held_->terms.data();
}

void CodeTableScan::start_lists() {
  if (!cleared_) {
    std::fill(held_->bytes.begin(), held_->bytes.end(), uint8_t{0});
    std::fill(held_->rounded.begin(), held_->rounded.end(), ByteTables());
    cleared_ = true;
  }
  firsts_.assign(1, 0);
  first_ = 0;
  ++call_;
}

void CodeTableScan::scan(int64_t group, int64_t count, const float* limits, ListHits& hits) {
  const int64_t first = first_ + group;
  if (terms_kind_ == Terms::scaled) return scan_scaled(first, count, limits, hits);
  if (terms_kind_ != Terms::none) return scan_with_terms(first, count, limits, hits);
  ScreenQuery screened[kHitQueries];
  int64_t numbers[kHitQueries];
  int64_t screened_count = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t* const rows = hits.rows + i * hits.stride;
    const double most = most_steps(first + i, limits[i], hits);
    hits.counts[i] = 0;
    if (most < 0) continue;  // a lower bound of all is above the limit
    if (most == kInfinity) {
      std::iota(rows, rows + rows_, 0u);
      add_up(first + i, limits[i], rows_, i, hits);
      continue;
    }
    numbers[screened_count] = i;
    screened[screened_count++] = {bytes(first + i), static_cast<uint16_t>(std::min(most, 65535.0)), rows, 0, look_};
  }
  screen_codes(format_, codes_, rows_, screened, screened_count);
  for (int64_t j = 0; j < screened_count; ++j) {
    look_ = screened[j].look;
    add_up(first + numbers[j], limits[numbers[j]], screened[j].found, numbers[j], hits);
  }
}

// Steps of bytes that a value within the limit has at most. Infinite where bytes exclude nothing.
double CodeTableScan::most_steps(int64_t query, float limit, const ListHits& hits) {
  const float error = error_of(query);
  const ByteTables& rounded = held_->rounded[held_->loaded[query].table];
  if (!screens_ || !(rounded.step > 0) || !(error < kInfinity)) return kInfinity;
  const float most = limit + error;
  // One more for the roundings of this line.
  if (most < kInfinity) {
    return (static_cast<double>(most) - rounded.least - least_norm_) / rounded.step * (1 + 0x1p-40) + 1;
  }
  if (hits.enough <= 0 || rows_ < 2 * hits.enough) return kInfinity;
  return steps_that_hold(query, hits.enough, false);
}

// For use before any limit is known. Each part of a sum is less than one step above its byte: `enough` vectors have
// values below their steps plus one per part, and keys within the error of that. Norms add their range.
double CodeTableScan::steps_that_hold(int64_t query, int64_t enough, bool with_terms) {
  const ByteTables& rounded = held_->rounded[held_->loaded[query].table];
  sum_codes(format_, codes_, rows_, bytes(query), held_->steps.data());
  const auto inverse = static_cast<float>(with_terms ? 1 / rounded.step : 0.0);
  const float* const terms = with_terms ? terms_ : held_->values.data();
  float largest = 0;
  for (int64_t i = 0; with_terms && i < rows_; ++i) largest = std::max(largest, std::abs(terms[i] * inverse));
  for (int64_t i = 0; i < rows_; ++i) {
    held_->values[i] = static_cast<float>(held_->steps[i]) + (with_terms ? terms[i] * inverse : 0.0f);
  }
  return static_cast<double>(rank_value(held_->values.data(), rows_, enough)) + static_cast<double>(format_.parts) + 2 +
         1e-6 * static_cast<double>(largest) +
         (2 * static_cast<double>(error_of(query)) + most_norm_ - least_norm_) / rounded.step * (1 + 0x1p-40);
}

// A vector's sum T, of which `least + step * bytes` is a lower bound, counts where T + term <= limit, or, divided by
// the norm, (T + constant) / norm <= limit: either way the bytes of vector i may add up to start + slope * term[i] at
// most.
CodeTableScan::TermLimit CodeTableScan::term_limit(int64_t query, float limit, const ListHits& hits) {
  const Loaded& own = held_->loaded[query];
  const ByteTables& rounded = held_->rounded[own.table];
  const bool divides = terms_kind_ == Terms::divisors;
  const float error = error_of(query);
  const float most = limit + error;
  if (!screens_ || rows_ < kFewestScreened || !(rounded.step > 0) || !(error < kInfinity) || !(own.tilt < kInfinity)) {
    return {};
  }
  double start = kInfinity;
  double slope = 0;
  if (most < kInfinity) {
    const double of_sum =
        divides ? static_cast<double>(own.tilt) - static_cast<double>(own.constant) : static_cast<double>(most);
    start = (of_sum - rounded.least) / rounded.step;
    slope = (divides ? static_cast<double>(most) : -1.0) / rounded.step;
  } else if (!divides && hits.enough > 0 && rows_ >= 2 * hits.enough) {
    start = steps_that_hold(query, hits.enough, true);
    slope = -1 / rounded.step;
  }
  if (!(std::abs(start) < 1e30 && std::abs(slope) < 1e30)) return {};
  const double sizes = std::abs(start) + std::abs(slope) * static_cast<double>(largest_term_);
  return {static_cast<float>(start + 2 + kRounding * sizes), static_cast<float>(slope), true};
}

void CodeTableScan::scan_with_terms(int64_t first, int64_t count, const float* limits, ListHits& hits) {
  TermLimit own[kHitQueries];
  int64_t found[kHitQueries];
  bool any_screened = false;
  for (int64_t i = 0; i < count; ++i) {
    own[i] = term_limit(first + i, limits[i], hits);
    any_screened = any_screened || own[i].screens;
    found[i] = own[i].screens ? 0 : rows_;
    if (!own[i].screens) std::iota(hits.rows + i * hits.stride, hits.rows + i * hits.stride + rows_, 0u);
  }
  alignas(64) uint8_t block[kColumnVectors * kMostByteParts];
  uint16_t below[kColumnVectors];
  for (int64_t at = 0; any_screened && at < rows_; at += kColumnVectors) {
    const int64_t here = std::min(kColumnVectors, rows_ - at);
    transpose_codes(format_, codes_ + at * format_.bytes(), here, rows_ - at, block);
    for (int64_t i = 0; i < count; ++i) {
      if (!own[i].screens) continue;
      if (here == kColumnVectors) {
        limits_of_terms(terms_ + at, own[i].start, own[i].slope, kColumnVectors, below);
      } else {
        std::fill_n(below, kColumnVectors, uint16_t{0});
        limits_of_terms(terms_ + at, own[i].start, own[i].slope, here, below);
      }
      const uint64_t passing = screen_block_(format_, block, bytes(first + i), below, look_);
      found[i] = tell_bits(passing, at, hits.rows + i * hits.stride, found[i]);
    }
  }
  for (int64_t i = 0; i < count; ++i) add_up(first + i, limits[i], found[i], i, hits);
}

void CodeTableScan::load_scales() {
  read_scales(codes_, rows_, held_->scales.data(), held_->shifts.data());
  const float* const scales = held_->scales.data();
  const float* const shifts = held_->shifts.data();
  float* const inverses = held_->inverses.data();
  constexpr int64_t kLanes = 8;  // that do not wait for each other
  constexpr auto kMostShift = static_cast<float>(kLargestSquaredNorm);
  float largest_scales[kLanes] = {};
  float largest_shifts[kLanes] = {};
  int unsure[kLanes] = {};
  for (int64_t first = 0; first < rows_; first += kLanes) {
    const int64_t here = std::min(kLanes, rows_ - first);
    for (int64_t j = 0; j < here; ++j) {
      const float scale = scales[first + j];
      const float shift = std::abs(shifts[first + j]);
      inverses[first + j] = scale > 0 ? 1 / scale : NAN;
      largest_scales[j] = scale > largest_scales[j] ? scale : largest_scales[j];
      largest_shifts[j] = shift > largest_shifts[j] ? shift : largest_shifts[j];
      unsure[j] |= static_cast<int>(!(scale >= 0)) | static_cast<int>(!(shift < kMostShift));
    }
  }
  largest_scale_ = *std::max_element(largest_scales, largest_scales + kLanes);
  largest_shift_ = *std::max_element(largest_shifts, largest_shifts + kLanes);
  const bool sure = std::none_of(unsure, unsure + kLanes, [](int lane) { return lane != 0; });
  const double all = static_cast<double>(largest_scale_) * largest_scale_ * static_cast<double>(format_.cols);
  norm_error_ = sure && all < kLargestSquaredNorm ? static_cast<float>(8 * kUnitRoundoff * largest_shift_) : kInfinity;
}

// The largest value that must be reported: the limit or, if none is known, a bound that enough vectors stay below, with
// each part of a sum less than one step above its byte. Keys are not negative, so values that would be below zero are
// equal. Infinite if bytes rule out nothing.
float CodeTableScan::most_scaled(int64_t query, float limit, const ListHits& hits) {
  const Loaded& own = held_->loaded[query];
  const ByteTables& rounded = held_->rounded[own.table];
  const float error = error_of(query);
  if (!screens_ || !(rounded.step > 0) || !(error < kInfinity)) return kInfinity;
  if (limit + error < kInfinity) return limit + error;
  if (hits.enough <= 0 || rows_ < 2 * hits.enough) return kInfinity;
  sum_codes(format_, codes_, rows_, bytes(query), held_->steps.data());
  const auto step = static_cast<float>(rounded.step);
  const auto start = static_cast<float>(rounded.least + rounded.step * static_cast<double>(format_.parts));
  for (int64_t i = 0; i < rows_; ++i) {
    held_->values[i] = held_->shifts[i] + held_->scales[i] * (start + step * static_cast<float>(held_->steps[i]));
  }
  const auto kth = static_cast<double>(rank_value(held_->values.data(), rows_, hits.enough));
  const double sizes = static_cast<double>(largest_shift_) +
                       static_cast<double>(largest_scale_) * (std::abs(rounded.least) + 65536.0 * rounded.step);
  const double most = std::max(kth, static_cast<double>(-own.offset)) + 2 * static_cast<double>(error) + 1e-6 * sizes;
  return static_cast<float>(most * (1 + (most > 0 ? 0x1p-20 : -0x1p-20)));
}

// scale * T + shift <= most, where T is at least `least + step * bytes`: a limit of its own for every vector's bytes.
void CodeTableScan::scan_scaled(int64_t first, int64_t count, const float* limits, ListHits& hits) {
  float most[kHitQueries];
  int64_t found[kHitQueries];
  bool any_screened = false;
  for (int64_t i = 0; i < count; ++i) {
    most[i] = most_scaled(first + i, limits[i], hits);
    const bool screens = std::abs(most[i]) < kInfinity;
    any_screened = any_screened || screens;
    found[i] = screens ? 0 : rows_;
    if (!screens) std::iota(hits.rows + i * hits.stride, hits.rows + i * hits.stride + rows_, 0u);
  }
  constexpr auto kLimitRounding = static_cast<float>(kRounding);
  alignas(64) uint8_t block[kColumnVectors * kMostByteParts];
  uint16_t below[kColumnVectors];
  float sums[kColumnVectors];
  for (int64_t at = 0; any_screened && at < rows_; at += kColumnVectors) {
    const int64_t here = std::min(kColumnVectors, rows_ - at);
    transpose_codes(format_, codes_ + at * format_.bytes(), here, rows_ - at, block);
    if (here < kColumnVectors) std::fill_n(below, kColumnVectors, uint16_t{0});
    for (int64_t i = 0; i < count; ++i) {
      if (!(std::abs(most[i]) < kInfinity)) continue;
      const float* const shifts = held_->shifts.data() + at;
      const float* const inverses = held_->inverses.data() + at;
      for (int64_t j = 0; j < here; ++j) {
        const float sum =
            (most[i] - shifts[j] + kLimitRounding * (std::abs(most[i]) + std::abs(shifts[j]))) * inverses[j];
        sums[j] = sum + kLimitRounding * std::abs(sum);
      }
      const ByteTables& rounded = held_->rounded[held_->loaded[first + i].table];
      const double start = -rounded.least / rounded.step;
      limits_of_terms(sums, static_cast<float>(start + 2 + kRounding * std::abs(start)),
                      static_cast<float>(1 / rounded.step), here, below);
      const uint64_t passing = screen_block_(format_, block, bytes(first + i), below, look_);
      found[i] = tell_bits(passing, at, hits.rows + i * hits.stride, found[i]);
    }
  }
  for (int64_t i = 0; i < count; ++i) add_up(first + i, limits[i], found[i], i, hits);
}

// The values of the first `count` rows of a query's hits, of which those within the limit stay.
void CodeTableScan::add_up(int64_t query, float limit, int64_t count, int64_t place, ListHits& hits) {
  float* const values = hits.values + place * hits.stride;
  uint32_t* const rows = hits.rows + place * hits.stride;
  const float* const sums = table(held_->loaded[query].table);
  const int64_t code_bytes = format_.bytes();
  for (int64_t i = 0; i < count; ++i) values[i] = sum_code_tables(format_, sums, codes_ + rows[i] * code_bytes);
  for (int64_t i = 0; adds_norms_ && i < count; ++i) values[i] += norm_of(rows[i]);
  if (terms_kind_ == Terms::added) {
    for (int64_t i = 0; i < count; ++i) values[i] += terms_[rows[i]];
  }
  if (terms_kind_ == Terms::scaled) {
    for (int64_t i = 0; i < count; ++i) values[i] = values[i] * held_->scales[rows[i]] + held_->shifts[rows[i]];
  }
  spread_errors_[place] = 0;
  if (terms_kind_ == Terms::divisors) {
    const Loaded& loaded = held_->loaded[query];
    float least = kInfinity;  // of the norms; zero vectors have a value of zero
    for (int64_t i = 0; i < count; ++i) {
      const float norm = terms_[rows[i]];
      values[i] = norm == 0 ? 0.0f : (values[i] + loaded.constant) / norm;
      if (norm > 0) least = std::min(least, norm);
    }
    if (least < kInfinity) spread_errors_[place] = loaded.tilt / least * 1.001f;
  }
  hits.counts[place] = keep_up_to(limit + error_of(query) + spread_errors_[place], values, rows, count);
}

}  // namespace kith
