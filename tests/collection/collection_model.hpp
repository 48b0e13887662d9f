// What a collection must hold, as plain maps, and random calls that change both alike.
#pragma once

#include <kith/collection.hpp>
#include <kith/error.hpp>


#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kith::testing {

constexpr int64_t kModelDimension = 4;

struct ModelItem {
  int64_t row = 0;  // the order of add
  std::vector<float> vector;
  ColumnValue year;
  ColumnValue genre;
  std::string payload;

  bool operator==(const ModelItem&) const = default;
};

class CollectionModel {
 public:
  std::map<int64_t, ModelItem> items;
  int64_t next_row = 0;
  int64_t next_id = 0;

  void put(int64_t id, ModelItem item) {
    item.row = next_row++;
    next_id = std::max(next_id, id + 1);
    items[id] = std::move(item);
  }
  // The same without the numbers of rows, which a failed call may have used.
  bool same_items(const CollectionModel& other) const {
    if (items.size() != other.items.size()) return false;
    for (auto a = items.begin(), b = other.items.begin(); a != items.end(); ++a, ++b) {
      if (a->first != b->first || a->second.vector != b->second.vector || a->second.year != b->second.year ||
          a->second.genre != b->second.genre || a->second.payload != b->second.payload) {
        return false;
      }
    }
    return true;
  }
  std::vector<int64_t> ids_in_order() const {
    std::vector<std::pair<int64_t, int64_t>> rows;
    for (const auto& [id, item] : items) rows.emplace_back(item.row, id);
    std::sort(rows.begin(), rows.end());
    std::vector<int64_t> ids;
    for (const auto& [row, id] : rows) ids.push_back(id);
    return ids;
  }
};

inline CollectionParams model_params() {
  CollectionParams params;
  params.dimension = kModelDimension;
  params.metric = Metric::sqeuclidean;
  params.columns = {{"year", ColumnType::integer, false}, {"genre", ColumnType::text, false}};
  return params;
}

// Numbers one after the other from a seed.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int64_t below(int64_t end) { return static_cast<int64_t>(random_.at(static_cast<uint64_t>(next_++)) % static_cast<uint64_t>(end)); }
  bool one_in(int64_t n) { return below(n) == 0; }

 private:
  struct Numbers {
    explicit Numbers(uint64_t seed) : state(seed) {}
    uint64_t at(uint64_t i) const {
      uint64_t z = state + (i + 1) * 0x9E3779B97F4A7C15ULL;
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
      return z ^ (z >> 31);
    }
    uint64_t state;
  };
  Numbers random_;
  int64_t next_ = 0;
};

// Items and the memory that they refer to.
struct ModelBatch {
  std::vector<float> vectors;
  std::vector<int64_t> ids;
  Items items;
};

inline ModelBatch model_batch(const std::vector<std::pair<int64_t, ModelItem>>& from) {
  ModelBatch batch;
  ColumnValues years{"year", {}};
  ColumnValues genres{"genre", {}};
  for (const auto& [id, item] : from) {
    batch.ids.push_back(id);
    batch.vectors.insert(batch.vectors.end(), item.vector.begin(), item.vector.end());
    years.values.push_back(item.year);
    genres.values.push_back(item.genre);
    batch.items.payloads.push_back(item.payload);
  }
  batch.items.ids = ItemIds(batch.ids);
  batch.items.columns = {std::move(years), std::move(genres)};
  return batch;
}

// The view is set last, when the batch has its place.
inline const Items& with_vectors(ModelBatch& batch) {
  batch.items.vectors = MatrixView(batch.vectors.data(), static_cast<int64_t>(batch.ids.size()), kModelDimension);
  return batch.items;
}

inline ModelItem random_item(Draw& draw) {
  ModelItem item;
  for (int64_t i = 0; i < kModelDimension; ++i) item.vector.push_back(static_cast<float>(draw.below(8)));
  if (!draw.one_in(5)) item.year = 2000 + draw.below(20);
  if (!draw.one_in(5)) item.genre = std::string(draw.one_in(2) ? "jazz" : "folk");
  item.payload = std::string(static_cast<size_t>(draw.below(30)), static_cast<char>('a' + draw.below(26)));
  return item;
}

// All that the collection holds, read back.
inline CollectionModel model_of(const CollectionView& view) {
  CollectionModel model;
  const ItemIds ids = view.ids();
  const ItemTable table = view.get(ids);
  for (int64_t i = 0; i < ids.size(); ++i) {
    ModelItem item;
    const auto* const row = reinterpret_cast<const float*>(table.vectors.view().row(i));
    item.vector.assign(row, row + kModelDimension);
    item.year = table.columns[0].values[static_cast<size_t>(i)];
    item.genre = table.columns[1].values[static_cast<size_t>(i)];
    item.payload = table.payloads[static_cast<size_t>(i)];
    model.put(ids.numbers()[static_cast<size_t>(i)], std::move(item));
  }
  return model;
}

// The search that the model makes: by (distance, order of add).
inline std::vector<int64_t> model_search(const CollectionModel& model, const std::vector<float>& query, int64_t k,
                                         const std::function<bool(const ModelItem&)>& keep) {
  std::vector<std::tuple<float, int64_t, int64_t>> found;
  for (const auto& [id, item] : model.items) {
    if (!keep(item)) continue;
    float distance = 0;
    for (int64_t i = 0; i < kModelDimension; ++i) {
      const float apart = query[static_cast<size_t>(i)] - item.vector[static_cast<size_t>(i)];
      distance += apart * apart;
    }
    found.emplace_back(distance, item.row, id);
  }
  std::sort(found.begin(), found.end());
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < k; ++i) {
    ids.push_back(i < static_cast<int64_t>(found.size()) ? std::get<2>(found[static_cast<size_t>(i)]) : -1);
  }
  return ids;
}

// Contents, order and searches of a version are the model's.
inline void expect_is(const CollectionView& view, const CollectionModel& model, Draw& draw) {
  ASSERT_EQ(view.size(), static_cast<int64_t>(model.items.size()));
  ASSERT_EQ(view.ids().numbers(), model.ids_in_order());
  ASSERT_TRUE(model_of(view).same_items(model));
  std::vector<float> query;
  for (int64_t i = 0; i < kModelDimension; ++i) query.push_back(static_cast<float>(draw.below(8)));
  const MatrixView queries(query.data(), 1, kModelDimension);
  CollectionSearchParams params;
  params.search.k = 1 + draw.below(6);
  const auto ids_of = [&] {
    const CollectionNeighbors found = view.search(queries, params);
    return std::vector<int64_t>(found.neighbors.ids(), found.neighbors.ids() + params.search.k);
  };
  ASSERT_EQ(ids_of(), model_search(model, query, params.search.k, [](const ModelItem&) { return true; }));
  params.filter.where = "year > ? and genre = ?";
  params.filter.params = {int64_t{2005}, std::string("jazz")};
  const auto keep = [](const ModelItem& item) {
    const auto* const year = std::get_if<int64_t>(&item.year);
    const auto* const genre = std::get_if<std::string>(&item.genre);
    return year != nullptr && genre != nullptr && *year > 2005 && *genre == "jazz";
  };
  ASSERT_EQ(ids_of(), model_search(model, query, params.search.k, keep));
}

// One random call on both; `of_items`: one that a batch may hold. The model changes once the call has returned.
inline void random_call(Collection& collection, CollectionModel& model, Draw& draw, CollectionModel* attempted = nullptr,
                        bool of_items = false) {
  CollectionModel next = model;
  const auto tell = [&] {
    if (attempted != nullptr) *attempted = next;
  };
  const int64_t kind = draw.below(of_items ? 9 : 10);
  if (kind < 6) {
    const bool replaces = kind >= 3;
    const int64_t count = 1 + draw.below(draw.one_in(6) ? 40 : 4);
    std::vector<std::pair<int64_t, ModelItem>> items;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t id = replaces ? draw.below(40) : next.next_id + i;
      items.emplace_back(id, random_item(draw));
    }
    // The last item counts where an id is there twice.
    for (size_t i = 0; i < items.size(); ++i) {
      bool later = false;
      for (size_t k = i + 1; k < items.size(); ++k) later = later || items[k].first == items[i].first;
      if (!later) next.put(items[i].first, items[i].second);
    }
    tell();
    ModelBatch batch = model_batch(items);
    if (replaces) {
      collection.upsert(with_vectors(batch));
    } else {
      collection.add(with_vectors(batch));
    }
  } else if (kind < 8) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i <= draw.below(5); ++i) ids.push_back(draw.below(next.next_id + 1));
    for (const int64_t id : ids) next.items.erase(id);
    tell();
    collection.remove(ItemIds(ids));
  } else if (kind == 8) {
    const int64_t year = 2000 + draw.below(20);
    std::erase_if(next.items, [&](const auto& item) { return item.second.year == ColumnValue(year); });
    tell();
    ItemFilter filter;
    filter.where = "year = ?";
    filter.params = {year};
    collection.remove(filter);
  } else if (draw.one_in(3)) {
    tell();
    collection.compact();
  } else {
    tell();
    collection.fold();
  }
  model = next;
}

}  // namespace kith::testing
