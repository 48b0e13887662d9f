// What few queries of a segment on the host are compared with: bytes of its vectors, and numbers that go with them.
//
//   stored floats   a byte for each value of x - origin (x of length 1 for cosine), rounded, with a scale for each
//                   vector. The origin is the list's centre, or a mean where there is none
//   scalar codes    the codes themselves; for distances |s|^2 of each vector, s being step * (code - middle), and of
//                   residuals 2 (centre - origin) s more, the origin being the centres' mean; for cosine 1 / |x|
//   product codes   of residuals r: |r|^2 + 2 (centre - origin) r for distances, the origin being the centres' mean;
//                   for cosine |x|, of whole vectors too
//   additive codes  |x|^2 for distances where they hold no norm, |x| for cosine
//
// Made by the first search of few queries and kept with the segment, where the memory limit has room. A search without
// it decodes lists.
//
// Memory: stored floats the columns, filled up to 16, and 12 bytes a vector, other codes 4, for inner products nothing.
// Cost of making it: a few ns a value.
#pragma once

#include "ivf/segment/segment_copies.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/lists/weighted_bytes.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

// The code that stands for the middle of a scalar code's column.
constexpr int32_t middle_code(int bits) { return 1 << (bits - 1); }

class ListScreen final : public PreparedSegment {
 public:
  ListScreen(const IvfModel& model, const ListSegment& segment, const Resources& resources);
  // Whether such lists are searched by it.
  static bool suits(const IvfModel& model);
  static int64_t bytes_for(const IvfModel& model, int64_t size);

  int64_t bytes() const override { return rounded_.bytes() + terms_.bytes() + scales_.bytes() + spreads_.bytes(); }
  // What vectors of a list without a centre are taken from; codes of residuals have the centres' mean.
  const std::vector<float>& origin() const { return origin_; }

  // The rows from a place of the segment on; without bytes for scalar codes, which are used in place.
  ByteRows rows(int64_t first, int64_t count) const;
  // Product codes alone have it.
  const float* terms(int64_t first) const { return terms_.data() + first; }
  float largest_term() const { return largest_term_; }  // of all
  float spread(int64_t place) const { return spreads_.size() == 0 ? inverse_or_one(place) : spreads_[place]; }
  float term(int64_t place) const { return terms_.size() == 0 ? 0.0f : terms_[place]; }

 private:
  float inverse_or_one(int64_t place) const { return scales_.size() == 0 ? 0.0f : scales_[place]; }
  // Both return the length of the longest.
  double round_floats(const IvfModel& model, const ListSegment& segment, int64_t list, int64_t begin, int64_t end);
  void measure_words(const IvfModel& model, const ListSegment& segment, int64_t list, int64_t begin, int64_t end);
  double measure_codes(const IvfModel& model, const ListSegment& segment, int64_t list, int64_t begin, int64_t end);

  const KeyKind kind_;
  const bool stored_;
  const bool words_;  // codes of codewords
  const int64_t cols_;
  const int64_t stride_;
  std::vector<float> origin_;
  HostArray<uint8_t> rounded_;
  HostArray<float> terms_;
  HostArray<float> scales_;
  HostArray<float> spreads_;
  float largest_term_ = 0;
  float longest_ = 0;  // of all vectors' bytes, or codes, less the middle
};

using SharedScreen = std::shared_ptr<const ListScreen>;

// The one that is kept with the segment; null where there is none.
SharedScreen find_list_screen(const SegmentCopies& segment);
// The same, made where there is none and `room` bytes suffice.
SharedScreen get_list_screen(const SegmentCopies& segment, const IvfModel& model, int64_t room,
                             const Resources& resources);

}  // namespace kith
