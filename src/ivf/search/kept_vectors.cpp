#include "ivf/search/kept_vectors.hpp"

#include <kith/knn.hpp>

#include "core/cpu_target.hpp"
#include "ivf/search/kept_scan.hpp"
#include "kernels/codes/code_norm.hpp"
#include "kernels/distance/canonical.hpp"
#include "rows/kept_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace kith {

bool keeps_few(const ListedVectors& vectors, const IvfSearch& task, int64_t kept) {
  constexpr int64_t kFew = 8;
  return task.kept != nullptr && task.probes >= vectors.model().lists() && kept * kFew <= vectors.size();
}

namespace {

// Calls use(row) for each row from `first` to `end` that is kept.
template <typename Use>
void for_each_kept(const uint64_t* bits, int64_t first, int64_t end, const Use& use) {
  const auto use_bits = [&](int64_t word, uint64_t some) {
    for (; some != 0; some &= some - 1) use(word * 64 + std::countr_zero(some));
  };
  const int64_t last = (end - 1) / 64;
  int64_t word = first / 64;
  if (first >= end) return;
  const uint64_t from_first = ~uint64_t{0} << (first % 64);
  const uint64_t to_end = ~uint64_t{0} >> (63 - (end - 1) % 64);
  if (word == last) return use_bits(word, bits[word] & from_first & to_end);
  use_bits(word, bits[word] & from_first);
  for (++word; word < last; ++word) use_bits(word, bits[word]);
  use_bits(last, bits[last] & to_end);
}

// Ascending: marked in a bitmap of all places and read from it, unless they are so few that sorting takes less time.
void find_by_tables(const ListedVectors& vectors, const PlaceTables& tables, const uint64_t* bits,
                    const HostArray<uint32_t>& places, const Resources& resources) {
  constexpr int64_t kWordsPerSorted = 16;
  const int64_t words = KeptRows::words_for(vectors.size());
  const bool sorts = places.size() * kWordsPerSorted < words;
  const HostArray<uint64_t> marks(sorts ? 0 : words, "the kept vectors", resources);
  std::fill(marks.begin(), marks.end(), uint64_t{0});
  int64_t found = 0;
  for (size_t s = 0; s < tables.size(); ++s) {
    const PlaceTable& table = *tables[s];
    const int64_t base = vectors.base(s);
    const auto for_each_place = [&](const auto& use) {
      for_each_kept(bits, table.first_row(), table.end_row(), [&](int64_t row) {
        const int64_t at = table.find(row);
        if (at != PlaceTable::kNowhere) use(base + at);
      });
    };
    if (sorts) {
      for_each_place([&](int64_t place) { places[found++] = static_cast<uint32_t>(place); });
    } else {
      uint64_t* const words_of = marks.data();
      for_each_place([&](int64_t place) { words_of[place / 64] |= uint64_t{1} << (place % 64); });
    }
  }
  if (sorts) return std::sort(places.begin(), places.begin() + found);
  for_each_kept(marks.data(), 0, vectors.size(), [&](int64_t place) { places[found++] = static_cast<uint32_t>(place); });
}

void find_by_pass(const ListedVectors& vectors, const uint64_t* bits, const HostArray<uint32_t>& places) {
  constexpr int64_t kTogether = 8;  // rows tested per branch: usually none of them is kept
  int64_t found = 0;
  for (size_t s = 0; s < vectors.segments().size(); ++s) {
    const ListSegment& segment = *vectors.segments()[s];
    segment.check_lists();
    const uint32_t* const rows = segment.rows();
    const auto base = static_cast<uint32_t>(vectors.base(s));
    int64_t i = 0;
    for (; i + kTogether <= segment.size(); i += kTogether) {
      uint32_t some = 0;
#pragma GCC unroll 8
      for (int64_t j = 0; j < kTogether; ++j) some |= static_cast<uint32_t>(keeps(bits, rows[i + j])) << j;
      if (found + std::popcount(some) > places.size()) segment.rows_repeat();
      for (; some != 0; some &= some - 1) {
        places[found++] = base + static_cast<uint32_t>(i + std::countr_zero(some));
      }
    }
    for (; i < segment.size(); ++i) {
      if (!keeps(bits, rows[i])) continue;
      if (found == places.size()) segment.rows_repeat();
      places[found++] = base + static_cast<uint32_t>(i);
    }
  }
  if (found != places.size()) vectors.segments().front()->rows_repeat();
}

}  // namespace

HostArray<uint32_t> find_kept(const ListedVectors& vectors, const PlaceTables& tables, const uint64_t* bits,
                              int64_t kept, const Resources& resources) {
  HostArray<uint32_t> places(kept, "the kept vectors", resources);
  if (tables.empty()) {
    find_by_pass(vectors, bits, places);
  } else {
    find_by_tables(vectors, tables, bits, places, resources);
  }
  return places;
}

bool search_kept(const ListedVectors& vectors, const PlaceTables& tables, const MatrixView& queries,
                 const IvfSearch& task, int64_t kept, const NeighborsView& out, const Resources& resources) {
  const IvfModel& model = vectors.model();
  if (!keeps_few(vectors, task, kept) || has_norm_keys(model.codec->format(), key_kind(model.metric))) return false;
  const auto shape = ListProductShape::choose(model, queries.rows(), cpu_extensions(), vectors.screened());
  constexpr int64_t kMostCompared = 24;  // with more queries, decoding the kept vectors is faster than comparing codes
  if (queries.rows() <= kMostCompared && compares_codes(vectors, shape, kept)) return false;
  const int64_t available = resources.host_memory()->available();
  if (queries.rows() <= kMostKeptScanQueries &&
      2 * (kept_scan_bytes(model, kept, queries.rows(), resources) + kept * 16) <= available) {
    const HostArray<uint32_t> places = find_kept(vectors, tables, task.kept, kept, resources);
    scan_kept(vectors, {places.data(), static_cast<size_t>(kept)}, queries, out, resources);
    return true;
  }
  constexpr int64_t kRoom = 8 << 20;  // for searching them
  const int64_t bytes = kept * (array_bytes<float>(model.cols()) + 16);
  if (kept < task.k || 2 * (bytes + kRoom) > available) return false;
  const HostArray<uint32_t> places = find_kept(vectors, tables, task.kept, kept, resources);
  const HostArray<uint64_t> sorted(kept, "the kept vectors", resources);
  for (int64_t i = 0; i < kept; ++i) sorted[i] = static_cast<uint64_t>(vectors.row_of(places[i])) << 32 | places[i];
  std::sort(sorted.begin(), sorted.end());
  for (int64_t i = 0; i < kept; ++i) places[i] = static_cast<uint32_t>(sorted[i]);
  const HostArray<float> decoded(kept * model.cols(), "the kept vectors", resources);
  vectors.decode(places.data(), kept, decoded.data());  // replaces places by rows
  const KnnParams params{.k = task.k, .metric = model.metric, .check_finite = false};
  knn(queries, MatrixView(decoded.data(), kept, model.cols()), out, params, resources);
  for (int64_t i = 0; i < out.queries * out.k; ++i) {
    if (out.ids[i] >= 0) out.ids[i] = places[out.ids[i]];
  }
  return true;
}

}  // namespace kith
