// A search of codes with norms by its definition, for tests.
#pragma once

#include "core/ordered_key.hpp"
#include "index/index_access.hpp"
#include "index/index_check.hpp"
#include "kernels/codes/code_norm.hpp"
#include "quantize/additive/code_norms.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith {

// The norms that an index holds, by row.
inline std::vector<float> held_norms(const Index& index) {
  const IndexParts parts = IndexAccess::parts(index, on_cpu());
  const ListParts& lists = *parts.lists;
  const CodeFormat& format = lists.codec.format;
  const std::vector<float> levels = norm_levels(format, lists.codec.values);
  CodecView codec;
  codec.format = format;
  codec.levels = levels.data();
  std::vector<float> norms(static_cast<size_t>(parts.rows));
  for (int64_t i = 0; i < parts.rows; ++i) {
    norms[lists.rows[i]] = code_norm(codec, lists.codes.data() + i * format.bytes());
  }
  return norms;
}

// By the definition, one pair at a time: keys and rows, sorted.
inline std::vector<uint64_t> plain_search(const Index& index, const MatrixView& queries, int64_t query) {
  const std::vector<float> vectors = reconstructed(index, numbers(index.size()));
  const std::vector<float> norms = held_norms(index);
  const KeyKind kind = key_kind(index.params().metric);
  const int64_t cols = index.dimension();
  const auto* const q = reinterpret_cast<const float*>(queries.row(query));
  std::vector<uint64_t> found;
  for (int64_t row = 0; row < index.size(); ++row) {
    double lanes[kCanonicalLanes] = {};
    for (int64_t c = 0; c < cols; ++c) {
      double& lane = lanes[c % kCanonicalLanes];
      lane =
          std::fma(static_cast<double>(q[c]), static_cast<double>(vectors[static_cast<size_t>(row * cols + c)]), lane);
    }
    const float key =
        norm_key(kind, canonical_squared_norm(q, cols), canonical_tree(lanes), norms[static_cast<size_t>(row)]);
    found.push_back(pack_neighbor(ordered_key(key), static_cast<uint32_t>(row)));
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace kith
