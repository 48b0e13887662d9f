#include "ivf/search/kept_vectors.hpp"

#include <kith/knn.hpp>

#include "kernels/codes/code_norm.hpp"
#include "kernels/distance/canonical.hpp"
#include "rows/kept_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace kith {

bool keeps_few(const ListedVectors& vectors, const IvfSearch& task, int64_t kept) {
  constexpr int64_t kFew = 8;
  return task.kept != nullptr && task.probes == vectors.model().lists() && kept * kFew <= vectors.size();
}

HostArray<uint32_t> find_kept(const ListedVectors& vectors, const uint64_t* bits, int64_t kept,
                              const Resources& resources) {
  constexpr int64_t kTogether = 8;  // rows that are asked for before one branch: nearly always none is kept
  HostArray<uint32_t> places(kept, "the kept vectors", resources);
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
      for (; some != 0; some &= some - 1) {
        places[found++] = base + static_cast<uint32_t>(i + std::countr_zero(some));
      }
    }
    for (; i < segment.size(); ++i) {
      if (keeps(bits, rows[i])) places[found++] = base + static_cast<uint32_t>(i);
    }
  }
  return places;
}

bool search_kept(const ListedVectors& vectors, const MatrixView& queries, const IvfSearch& task, int64_t kept,
                 const NeighborsView& out, const Resources& resources) {
  const IvfModel& model = vectors.model();
  constexpr int64_t kRoom = 8 << 20;  // for the search of them
  const int64_t bytes = kept * (array_bytes<float>(model.cols()) + 16);
  if (!keeps_few(vectors, task, kept) || kept < task.k ||
      has_norm_keys(model.codec->format(), key_kind(model.metric)) ||
      2 * (bytes + kRoom) > resources.host_memory()->available()) {
    return false;
  }
  const HostArray<uint32_t> places = find_kept(vectors, task.kept, kept, resources);
  const HostArray<uint64_t> sorted(kept, "the kept vectors", resources);
  for (int64_t i = 0; i < kept; ++i) sorted[i] = static_cast<uint64_t>(vectors.row_of(places[i])) << 32 | places[i];
  std::sort(sorted.begin(), sorted.end());
  for (int64_t i = 0; i < kept; ++i) places[i] = static_cast<uint32_t>(sorted[i]);
  const HostArray<float> decoded(kept * model.cols(), "the kept vectors", resources);
  vectors.decode(places.data(), kept, decoded.data());  // which leaves their rows there
  const KnnParams params{.k = task.k, .metric = model.metric, .check_finite = false};
  knn(queries, MatrixView(decoded.data(), kept, model.cols()), out, params, resources);
  for (int64_t i = 0; i < out.queries * out.k; ++i) {
    if (out.ids[i] >= 0) out.ids[i] = places[out.ids[i]];
  }
  return true;
}

}  // namespace kith
