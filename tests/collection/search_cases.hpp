// A collection of several segments and newest rows, with removed ones, for tests of searches.
#pragma once

#include <kith/collection.hpp>

#include "collection/collection_access.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace kith::testing {

constexpr int64_t kCaseDimension = 8;

inline std::vector<float> case_rows(int64_t rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int> values(0, 15);  // many distances are equal
  std::vector<float> out;
  for (int64_t i = 0; i < rows * kCaseDimension; ++i) out.push_back(static_cast<float>(values(random)));
  return out;
}

inline MatrixView case_view(const std::vector<float>& rows) {
  return {rows.data(), static_cast<int64_t>(rows.size()) / kCaseDimension, kCaseDimension};
}

// Items 0 .. 3 * part - 1 with tenant = id % tenants; each tenth removed. Two segments, and newest rows; `index` is that
// of the first segment.
inline Collection case_collection(const std::string& path, int64_t part, int64_t tenants, const std::string& index = "Flat",
                                  IdType ids = IdType::integer) {
  CollectionParams params;
  params.dimension = kCaseDimension;
  params.metric = Metric::sqeuclidean;
  params.columns = {{"tenant", ColumnType::integer, true}};
  params.ids = ids;
  params.index = index;
  CollectionEnvironment environment;
  environment.index_rows = part;
  environment.rewrite_bytes = 0;  // segments stay as they are
  environment.close_fold_bytes = int64_t{1} << 40;
  Collection c = CollectionAccess::create(path, params, {}, environment);
  for (int64_t at = 0; at < 3; ++at) {
    const std::vector<float> rows = case_rows(part, static_cast<uint64_t>(at) + 1);
    Items items;
    items.vectors = case_view(rows);
    items.columns = {{"tenant", {}}};
    std::vector<std::string> names;
    for (int64_t i = at * part; i < (at + 1) * part; ++i) {
      items.columns[0].values.emplace_back(i % tenants);
      names.push_back("item " + std::to_string(i));
    }
    if (ids == IdType::text) items.ids = names;
    c.add(items);
    if (at < 2) c.fold();
    if (at == 0) c.reindex(index);
  }
  ItemFilter tenth;
  tenth.where = "abs(tenant) % 10 = 3";
  c.remove(tenth);
  return c;
}

}  // namespace kith::testing
