// What builders of graphs do, said slowly: lists as sorted vectors, every pair by its canonical key.
#pragma once

#include "core/ordered_key.hpp"
#include "graph/build/cells/cell_partition.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/build/nn_descent/join_rules.hpp"
#include "graph/lists/working_lists.hpp"
#include "reference/brute_force.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kith::reference {

using Lists = std::vector<std::vector<uint64_t>>;  // packed neighbours, old ones with their flag

inline uint64_t neighbor_of(const Matrix<float>& x, Metric metric, int64_t row, int64_t other) {
  return pack_neighbor(ordered_key(canonical(metric, x.row(row), x.row(other), x.cols)), static_cast<uint32_t>(other));
}

// The first row in which lists differ, or none.
inline std::string difference(const Lists& a, const Lists& b) {
  if (a.size() != b.size()) return "other rows";
  for (size_t row = 0; row < a.size(); ++row) {
    if (a[row] == b[row]) continue;
    std::string text = "row " + std::to_string(row) + ":";
    for (const auto* list : {&a[row], &b[row]}) {
      for (const uint64_t neighbor : *list) {
        text += " " + std::to_string(row_of(without_flag(neighbor))) + (is_old(neighbor) ? "" : "*") + "@" +
                std::to_string(key_of_ordered(ordered_of(neighbor)));
      }
      text += " |";
    }
    return text;
  }
  return "";
}

// The first `length` of each row among the rows of its probed cells and those whose probed cells hold it.
inline Lists cells_graph(const Matrix<float>& x, Metric metric, const CellPartition& cells, int64_t probes,
                         int64_t length) {
  const auto probed = [&](int64_t row, int64_t other) {
    const uint32_t* const ranks = cells.ranks(row, 0);
    return std::find(ranks, ranks + probes, cells.ranks(other, 0)[0]) != ranks + probes;
  };
  Lists lists(static_cast<size_t>(x.rows));
  for (int64_t i = 0; i < x.rows; ++i) {
    auto& list = lists[static_cast<size_t>(i)];
    for (int64_t j = 0; j < x.rows; ++j) {
      if (j != i && (probed(i, j) || probed(j, i))) list.push_back(neighbor_of(x, metric, i, j));
    }
    std::sort(list.begin(), list.end());
    list.resize(std::min(list.size(), static_cast<size_t>(length)));
  }
  return lists;
}

inline Lists lists_of(const WorkingLists& lists) {
  Lists all(static_cast<size_t>(lists.rows()));
  for (int64_t row = 0; row < lists.rows(); ++row) {
    for (int64_t j = 0; j < lists.length() && lists.list(row)[j] != kPadding; ++j) {
      all[static_cast<size_t>(row)].push_back(lists.list(row)[j]);
    }
  }
  return all;
}

// k ids for each row: those that follow it in its set, -1 behind all of them.
inline std::vector<int64_t> own_set_ids(int64_t rows, int64_t boundary, int64_t k) {
  std::vector<int64_t> ids;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = row < boundary ? 0 : boundary;
    const int64_t count = row < boundary ? boundary : rows - boundary;
    for (int64_t j = 1; j <= k; ++j) ids.push_back(j < count ? first + (row - first + j) % count : -1);
  }
  return ids;
}

// One round of NN-Descent.
inline void descend(const Matrix<float>& x, Metric metric, const DescentRules& rules, int64_t round, int64_t length,
                    Lists& lists) {
  const uint64_t salt = round_salt(rules.seed, round);
  const auto p = static_cast<size_t>(rules.samples);
  const size_t rows = lists.size();
  std::vector<std::set<uint32_t>> samples[2] = {std::vector<std::set<uint32_t>>(rows),
                                                std::vector<std::set<uint32_t>>(rows)};
  std::vector<std::map<int64_t, std::pair<uint32_t, uint32_t>>> buckets[2];
  for (auto& kind : buckets) kind.resize(rows);
  for (size_t u = 0; u < rows; ++u) {
    size_t drawn[2] = {0, 0};
    for (uint64_t& neighbor : lists[u]) {
      const size_t kind = is_old(neighbor) ? 1 : 0;
      const uint32_t v = row_of(without_flag(neighbor));
      const bool same_set = rules.boundary == 0 || (v < rules.boundary) == (static_cast<int64_t>(u) < rules.boundary);
      if ((kind == 1 && !same_set) || drawn[kind]++ >= p) continue;
      neighbor |= kOldFlag;
      samples[kind][u].insert(v);
      const uint32_t hash = pair_hash(salt, static_cast<uint32_t>(u), v);
      const auto mine = std::pair(hash, static_cast<uint32_t>(u));
      const auto [at, fresh] = buckets[kind][v].emplace(place_of(hash, rules.samples), mine);
      if (!fresh) at->second = std::min(at->second, mine);
    }
  }
  for (size_t kind = 0; kind < 2; ++kind) {
    for (size_t v = 0; v < rows; ++v) {
      for (const auto& [place, from] : buckets[kind][v]) samples[kind][v].insert(from.second);
    }
  }
  std::vector<std::map<int64_t, uint64_t>> inbox(rows);
  const auto offer = [&](uint32_t u, uint64_t neighbor) {
    const auto& list = lists[u];
    const auto same = [&](uint64_t there) { return without_flag(there) == neighbor; };
    if (std::any_of(list.begin(), list.end(), same)) return;
    if (list.size() == static_cast<size_t>(length) && neighbor > without_flag(list.back())) return;
    const auto [at, fresh] = inbox[u].emplace(inbox_slot(salt, row_of(neighbor), rules.inbox_slots), neighbor);
    if (!fresh) at->second = std::min(at->second, neighbor);
  };
  const auto offer_from = [&](uint32_t u, const std::set<uint32_t>& others) {
    uint64_t nearest = kPadding;
    for (const uint32_t v : others) {
      if (v == u) continue;
      const uint64_t neighbor = neighbor_of(x, metric, u, v);
      if (rules.all_pairs) offer(u, neighbor);
      nearest = std::min(nearest, neighbor);
    }
    if (nearest != kPadding) offer(u, nearest);
  };
  for (size_t w = 0; w < rows; ++w) {
    const std::set<uint32_t>& fresh = samples[0][w];
    std::set<uint32_t> old;
    for (const uint32_t v : samples[1][w]) {
      if (!fresh.contains(v)) old.insert(v);
    }
    for (const uint32_t u : fresh) {
      if (rules.boundary == 0) offer_from(u, fresh);
      offer_from(u, old);
    }
    for (const uint32_t v : old) offer_from(v, fresh);
  }
  for (size_t u = 0; u < rows; ++u) {
    for (const auto& [slot, neighbor] : inbox[u]) lists[u].push_back(neighbor);
    std::sort(lists[u].begin(), lists[u].end(),
              [](uint64_t a, uint64_t b) { return without_flag(a) < without_flag(b); });
    lists[u].resize(std::min(lists[u].size(), static_cast<size_t>(length)));
  }
}

}  // namespace kith::reference
