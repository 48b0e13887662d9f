// A byte representation of a host segment's vectors, with per-vector terms, for screening them against few queries.
//
//   stored floats   one rounded byte per value of x - origin (x normalized for cosine), and a scale per vector. The
//                   origin is the list's centre, or a mean if there is none
//   scalar codes    the codes themselves. Terms: for distances |s|^2, where s = step * (code - middle), plus
//                   2 (centre - origin) s for residuals, the origin being the centres' mean; for cosine 1 / |x|
//   product codes   terms only. For residuals r: |r|^2 + 2 (centre - origin) r for distances, the origin being the
//                   centres' mean; for cosine |x|, also of whole vectors
//   additive codes  terms only: |x|^2 for distances if codes store no norm, |x| for cosine
//
// Built by the first search of few queries and kept with the segment, if the memory limit has room. A search without it
// decodes lists.
//
// Memory per vector: stored floats the columns, rounded up to 16, plus 12 bytes; other codes 4; inner products nothing.
// Cost to build: a few ns per value.
#pragma once

#include "ivf/segment/segment_copies.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/lists/weighted_bytes.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

// The code in the middle of a scalar code's range.
constexpr int32_t middle_code(int bits) { return 1 << (bits - 1); }

class ListScreen final : public PreparedSegment {
 public:
  ListScreen(const IvfModel& model, const ListSegment& segment, const Resources& resources);
  // Whether lists of this kind use it.
  static bool suits(const IvfModel& model);
  static int64_t bytes_for(const IvfModel& model, int64_t size);

  int64_t bytes() const override { return rounded_.bytes() + terms_.bytes() + scales_.bytes() + spreads_.bytes(); }
  // The vector subtracted from those of a list without a centre; for codes of residuals the centres' mean.
  const std::vector<float>& origin() const { return origin_; }

  // The rows from a place of the segment on; without bytes for scalar codes, which are read in place.
  ByteRows rows(int64_t first, int64_t count) const;
  // Product codes only.
  const float* terms(int64_t first) const { return terms_.data() + first; }
  float largest_term() const { return largest_term_; }  // over all vectors
  float spread(int64_t place) const { return spreads_.size() == 0 ? inverse_or_one(place) : spreads_[place]; }
  float term(int64_t place) const { return terms_.size() == 0 ? 0.0f : terms_[place]; }

 private:
  float inverse_or_one(int64_t place) const { return scales_.size() == 0 ? 0.0f : scales_[place]; }
  // Both return the largest norm.
  double round_floats(const IvfModel& model, const ListSegment& segment, int64_t list, int64_t begin, int64_t end);
  void measure_words(const IvfModel& model, const ListSegment& segment, int64_t list, int64_t begin, int64_t end);
  double measure_codes(const IvfModel& model, const ListSegment& segment, int64_t list, int64_t begin, int64_t end);

  const KeyKind kind_;
  const bool stored_;
  const bool words_;  // codes made of codewords
  const int64_t cols_;
  const int64_t stride_;
  std::vector<float> origin_;
  HostArray<uint8_t> rounded_;
  HostArray<float> terms_;
  HostArray<float> scales_;
  HostArray<float> spreads_;
  float largest_term_ = 0;
  float longest_ = 0;  // largest norm of a vector's bytes or codes, minus the middle
};

using SharedScreen = std::shared_ptr<const ListScreen>;

// The one kept with the segment, or null.
SharedScreen find_list_screen(const SegmentCopies& segment);
// The same, built if there is none and `room` bytes suffice.
SharedScreen get_list_screen(const SegmentCopies& segment, const IvfModel& model, int64_t room,
                             const Resources& resources);

}  // namespace kith
