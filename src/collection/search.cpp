#include "collection/search.hpp"

#include <kith/error.hpp>
#include <kith/knn.hpp>

#include "io/dtype_conversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace kith {
namespace {

// Few kept rows of a segment are searched exactly, though it has an index.
constexpr int64_t kFewKept = 16384;
constexpr int64_t kFewShare = 64;
constexpr int64_t kListShare = 32;  // below this share a list of rows is shorter to go through than bits

constexpr int64_t kNoOne = -1;

int64_t packed(size_t part, int64_t place) { return static_cast<int64_t>(part) << 32 | place; }
size_t part_in(int64_t packed_place) { return static_cast<size_t>(packed_place >> 32); }
int64_t place_in(int64_t packed_place) { return packed_place & 0xffffffff; }

// Queries as all parts take them: f64 narrowed, values checked.
class Queries {
 public:
  Queries(const MatrixView& given, const CollectionState& state, const Resources& resources) : view_(given) {
    if (given.cols() != state.params->dimension) {
      throw InvalidArgument(fmt::format("queries have {} columns, and the collection's vectors {}", given.cols(),
                                        state.params->dimension));
    }
    if (!given.space().host_readable()) return;
    if (given.dtype() == DType::f64) {
      narrowed_ = MatrixBuffer(DType::f32, given.rows(), given.cols(), "queries as f32", resources);
      const std::string name = "the queries";
      for (int64_t i = 0; i < given.rows(); ++i) {
        convert_values(given.row(i), DType::f64, narrowed_.mutable_view().row(i), DType::f32, given.cols(),
                       {name, i * given.cols(), given.cols()});
      }
      view_ = narrowed_.view();
    }
    check_finite_rows(view_, "query");
  }
  const MatrixView& view() const { return view_; }

 private:
  MatrixView view_;
  MatrixBuffer narrowed_;
};

// The filter of one part, and what it refers to.
class PartFilter {
 public:
  PartFilter(const StatePart& part, const PlaceBits* kept, const Resources& resources) : rows_(part.rows->size()) {
    count_ = kept != nullptr ? kept->count() : part.living();
    if (count_ == rows_ || count_ == 0) return;
    if (kept != nullptr) {
      bits_ = kept->bits();
    } else {
      inverted_ = HostBuffer((rows_ + 7) / 8, "living rows", resources);
      for (int64_t i = 0; i < inverted_.bytes(); ++i) {
        inverted_.as<uint8_t>()[i] = static_cast<uint8_t>(~part.dead->bits()[i]);
      }
      bits_ = inverted_.as<uint8_t>();
    }
    if (count_ <= rows_ / kListShare) {
      list_.reserve(static_cast<size_t>(count_));
      for (int64_t i = 0; i < rows_; ++i) {
        if ((bits_[i / 8] >> (i % 8) & 1) != 0) list_.push_back(i);
      }
    }
  }

  int64_t count() const { return count_; }
  int64_t rows() const { return rows_; }
  bool few() const { return count_ <= kFewKept || count_ <= rows_ / kFewShare; }
  RowFilter filter() const {
    if (bits_ == nullptr) return {};
    if (!list_.empty()) return RowFilter::rows(list_.data(), static_cast<int64_t>(list_.size()));
    return RowFilter::bits(bits_, rows_);
  }

 private:
  int64_t rows_;
  int64_t count_ = 0;
  const uint8_t* bits_ = nullptr;
  HostBuffer inverted_;
  std::vector<int64_t> list_;
};

// One part searched exactly: from memory, or read where a limit leaves no mapping.
Neighbors exact_part(const CollectionState& state, const StatePart& part, const MatrixView& queries, int64_t k,
                     const RowFilter& filter, const Resources& resources) {
  const CollectionParams& params = *state.params;
  const bool limited = resources.options().host_memory_limit != kNoLimit;
  const MatrixView view = part.rows->view();
  if (part.segment && !limited && !view.empty()) {
    SearchParams search;
    search.k = k;
    search.filter = filter;
    return part.segment->flat(resources)->search(queries, search, resources);
  }
  KnnParams knn_params;
  knn_params.k = k;
  knn_params.metric = params.metric;
  knn_params.check_finite = false;
  knn_params.filter = filter;
  if (!part.segment) return knn(queries, view, knn_params, resources);
  Neighbors out(queries.rows(), k, resources);
  const NeighborsView to = out.view();
  const VectorFile asked = matrix_as_file(queries, "the queries");
  const VectorFile base = rows_as_file(part.rows, params.dtype, params.dimension, part.segment->file()->path());
  knn(asked, base, [&](int64_t first, const NeighborsView& some) {
    std::copy_n(some.ids, some.queries * k, to.ids + first * k);
    std::copy_n(some.distances, some.queries * k, to.distances + first * k);
  }, knn_params, resources);
  return out;
}

MatrixBuffer gathered(const MatrixView& rows, const std::vector<int64_t>& which, const Resources& resources) {
  MatrixBuffer out(rows.dtype(), static_cast<int64_t>(which.size()), rows.cols(), "some of the queries", resources);
  const auto row_bytes = static_cast<size_t>(rows.cols() * size_of(rows.dtype()));
  for (size_t i = 0; i < which.size(); ++i) {
    std::memcpy(out.mutable_view().row(static_cast<int64_t>(i)), rows.row(which[i]), row_bytes);
  }
  return out;
}

// By its index if it has one, and exactly where that found fewer than there are.
Neighbors search_part(const CollectionState& state, const StatePart& part, const MatrixView& queries, int64_t k,
                      const PartFilter& filter, const SearchParams& wished, const Resources& resources) {
  const std::shared_ptr<const Index> index =
      part.segment && !filter.few() ? part.segment->index(resources) : nullptr;
  if (index == nullptr) return exact_part(state, part, queries, k, filter.filter(), resources);
  SearchParams params = wished;
  params.k = k;
  params.filter = filter.filter();
  try {
    Neighbors found = index->search(queries, params, resources);
    std::vector<int64_t> short_ones;
    for (int64_t q = 0; q < queries.rows(); ++q) {
      if (found.ids(q)[k - 1] < 0) short_ones.push_back(q);
    }
    if (short_ones.empty()) return found;
    if (!queries.space().host_readable()) return exact_part(state, part, queries, k, filter.filter(), resources);
    const MatrixBuffer again = gathered(queries, short_ones, resources);
    const Neighbors exact = exact_part(state, part, again.view(), k, filter.filter(), resources);
    const NeighborsView to = found.view();
    for (size_t i = 0; i < short_ones.size(); ++i) {
      std::copy_n(exact.ids(static_cast<int64_t>(i)), k, to.ids + short_ones[i] * k);
      std::copy_n(exact.distances(static_cast<int64_t>(i)), k, to.distances + short_ones[i] * k);
    }
    return found;
  } catch (const CorruptFile& error) {
    part.segment->distrust_index(error.what(), resources);
    return exact_part(state, part, queries, k, filter.filter(), resources);
  }
}

// The order of results: nearer first, then the item that was added first.
class Order {
 public:
  explicit Order(const CollectionState& state)
      : state_(state), larger_(larger_is_nearer(state.params->metric)) {}
  bool operator()(float a, int64_t place_a, float b, int64_t place_b) const {
    if (a != b) return larger_ ? a > b : a < b;
    return row(place_a) < row(place_b);
  }
  float nothing() const {
    return larger_ ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  }
  int64_t row(int64_t place) const { return state_.parts[part_in(place)].rows->row(place_in(place)); }

 private:
  const CollectionState& state_;
  bool larger_;
};

// The first k of both, in `best`, whose ids are packed places.
void merge_part(const Order& order, NeighborsView best, const Neighbors& found, size_t part) {
  const auto k = static_cast<size_t>(best.k);
  std::vector<int64_t> ids(k);
  std::vector<float> distances(k);
  for (int64_t q = 0; q < best.queries; ++q) {
    int64_t* const best_ids = best.ids + q * best.k;
    float* const best_distances = best.distances + q * best.k;
    int64_t a = 0;
    int64_t b = 0;
    for (size_t i = 0; i < k; ++i) {
      const bool has_a = a < best.k && best_ids[a] != kNoOne;
      const bool has_b = b < found.k() && found.ids(q)[b] >= 0;
      if (!has_a && !has_b) {
        ids[i] = kNoOne;
        distances[i] = order.nothing();
        continue;
      }
      const int64_t place_b = has_b ? packed(part, found.ids(q)[b]) : kNoOne;
      if (!has_b || (has_a && order(best_distances[a], best_ids[a], found.distances(q)[b], place_b))) {
        ids[i] = best_ids[a];
        distances[i] = best_distances[a++];
      } else {
        ids[i] = place_b;
        distances[i] = found.distances(q)[b++];
      }
    }
    std::copy(ids.begin(), ids.end(), best_ids);
    std::copy(distances.begin(), distances.end(), best_distances);
  }
}

// Searches of all parts, with packed places in the place of ids.
void search_places(const CollectionState& state, const MatrixView& queries, const KeptItems* kept,
                   const SearchParams& wished, NeighborsView out, const Resources& resources) {
  const Order order(state);
  std::fill_n(out.ids, out.queries * out.k, kNoOne);
  std::fill_n(out.distances, out.queries * out.k, order.nothing());
  for (size_t p = 0; p < state.parts.size(); ++p) {
    const StatePart& part = state.parts[p];
    const PartFilter filter(part, kept == nullptr ? nullptr : &kept->parts[p], resources);
    if (filter.count() == 0 || queries.rows() == 0) continue;
    resources.check_cancelled();
    const int64_t k = std::min(out.k, filter.count());
    merge_part(order, out, search_part(state, part, queries, k, filter, wished, resources), p);
  }
}

// Queries with the same parameters, in the order of the first of them.
std::vector<std::vector<int64_t>> same_params(const std::vector<std::vector<ColumnValue>>& params) {
  std::vector<std::vector<int64_t>> groups;
  std::map<std::vector<ColumnValue>, size_t> known;
  for (size_t q = 0; q < params.size(); ++q) {
    const auto [at, fresh] = known.emplace(params[q], groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(static_cast<int64_t>(q));
  }
  return groups;
}

void check_params_of_queries(const ItemFilter& filter, const MatrixView& queries) {
  if (filter.params_of_queries.empty()) return;
  if (!filter.params.empty()) throw InvalidArgument("give params or params_of_queries, not both");
  if (static_cast<int64_t>(filter.params_of_queries.size()) != queries.rows()) {
    throw InvalidArgument(fmt::format("params_of_queries has {} lists for {} queries", filter.params_of_queries.size(),
                                      queries.rows()));
  }
  if (!queries.space().host_readable()) {
    throw InvalidArgument("queries with parameters of their own must be in host memory");
  }
}

// Parameters that the collection's kind of index does not have are refused, as Index refuses them.
void check_search(const CollectionState& state, const SearchParams& params) {
  if (params.k < 1) throw InvalidArgument(fmt::format("k must be at least 1; it is {}", params.k));
  if (params.filter.form() != RowFilter::Form::none || params.refine_from != nullptr) {
    throw InvalidArgument("a collection is filtered by where, ids and a mask of its own, and refines by its vectors; "
                          "leave filter and refine_from of SearchParams out");
  }
  const std::string& factory = state.params->index;
  const auto has = [&](const char* part) { return factory.find(part) != std::string::npos; };
  const auto refuse = [&](const char* name) {
    throw InvalidArgument(fmt::format("the collection's index is '{}', which knows no {}", factory, name));
  };
  if (params.probes != 0 && !has("IVF")) refuse("probes");
  if ((params.beam != 0 || params.width != 0) && !has("Graph")) refuse("beam or width");
  if (params.refine != 0 && !has("Graph") && !has("RFlat") && !has("Refine")) refuse("refine");
  if (params.recall != 0 && factory == "Flat") refuse("recall: it is exact");
}

// The id of what lies at a packed place: a number, or the row of an item whose id is a text.
int64_t id_at(const CollectionState& state, int64_t place) {
  if (place == kNoOne) return kNoOne;
  const StoredRows& rows = *state.parts[part_in(place)].rows;
  return state.params->ids == IdType::integer ? rows.number_id(place_in(place)) : rows.row(place_in(place));
}

std::string text_at(const CollectionState& state, int64_t place) {
  return place == kNoOne ? std::string() : state.parts[part_in(place)].rows->text_id(place_in(place));
}

// Packed places become ids, and texts where ids are texts.
std::vector<std::string> name_places(const CollectionState& state, int64_t* places, int64_t count) {
  std::vector<std::string> texts;
  if (state.params->ids == IdType::text) {
    texts.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) texts.push_back(text_at(state, places[i]));
  }
  for (int64_t i = 0; i < count; ++i) places[i] = id_at(state, places[i]);
  return texts;
}

// What range searches of the parts found for one query.
struct Found {
  float distance;
  int64_t place;
};
using FoundLists = std::vector<std::vector<Found>>;

void range_part(const CollectionState& state, size_t p, const MatrixView& queries, const CollectionRangeParams& wished,
                const PartFilter& filter, const std::vector<int64_t>& queries_of, FoundLists& found,
                const Resources& resources) {
  const StatePart& part = state.parts[p];
  const auto take = [&](int64_t first, const RangeView& view) {
    for (int64_t q = 0; q < view.queries; ++q) {
      std::vector<Found>& list = found[static_cast<size_t>(queries_of[static_cast<size_t>(first + q)])];
      for (int64_t i = view.offsets[q]; i < view.offsets[q + 1]; ++i) {
        list.push_back({view.distances[i], packed(p, view.ids[i])});
      }
    }
  };
  const bool limited = resources.options().host_memory_limit != kNoLimit;
  const MatrixView view = part.rows->view();
  if (part.segment && !limited && !view.empty()) {
    RangeSearchParams params;
    params.radius = wished.radius;
    params.filter = filter.filter();
    std::shared_ptr<const Index> index = filter.few() ? nullptr : part.segment->index(resources);
    if (index != nullptr) params.probes = wished.probes;
    if (index == nullptr) index = part.segment->flat(resources);
    take(0, index->range_search(queries, params, resources).view());
    return;
  }
  RangeParams params;
  params.radius = wished.radius;
  params.metric = state.params->metric;
  params.check_finite = false;
  params.filter = filter.filter();
  if (!part.segment) {
    take(0, range_search(queries, view, params, resources).view());
    return;
  }
  if (std::shared_ptr<const Index> index = filter.few() ? nullptr : part.segment->index(resources)) {
    RangeSearchParams by_index;
    by_index.radius = wished.radius;
    by_index.filter = filter.filter();
    by_index.probes = wished.probes;
    take(0, index->range_search(queries, by_index, resources).view());
    return;
  }
  const VectorFile asked = matrix_as_file(queries, "the queries");
  const VectorFile base =
      rows_as_file(part.rows, state.params->dtype, state.params->dimension, part.segment->file()->path());
  range_search(asked, base, take, params, resources);
}

// Calls use(queries, numbers, kept) for queries that share a filter.
template <typename Use>
void for_filters(const CollectionState& state, const MatrixView& queries, const ItemFilter& filter,
                 const Resources& resources, const Use& use) {
  check_params_of_queries(filter, queries);
  if (filter.params_of_queries.empty()) {
    std::vector<int64_t> all(static_cast<size_t>(queries.rows()));
    std::iota(all.begin(), all.end(), 0);
    const std::shared_ptr<const KeptItems> kept = state.keep(filter, filter.params, resources);
    use(queries, all, kept.get());
    return;
  }
  for (const std::vector<int64_t>& group : same_params(filter.params_of_queries)) {
    resources.check_cancelled();
    const std::shared_ptr<const KeptItems> kept =
        state.keep(filter, filter.params_of_queries[static_cast<size_t>(group.front())], resources);
    const MatrixBuffer some = gathered(queries, group, resources);
    use(some.view(), group, kept.get());
  }
}

}  // namespace

void check_finite_rows(const MatrixView& rows, const char* what) {
  const auto bad = [&](int64_t row) {
    const auto find = [&](const auto* values, auto is_bad) {
      for (int64_t i = 0; i < rows.cols(); ++i) {
        if (is_bad(values[i])) return true;
      }
      return false;
    };
    switch (rows.dtype()) {
      case DType::f32:
        return find(reinterpret_cast<const uint32_t*>(rows.row(row)), [](uint32_t v) { return (~v & 0x7f800000U) == 0; });
      case DType::f16:
        return find(reinterpret_cast<const uint16_t*>(rows.row(row)), [](uint16_t v) { return (~v & 0x7c00U) == 0; });
      case DType::bf16:
        return find(reinterpret_cast<const uint16_t*>(rows.row(row)), [](uint16_t v) { return (~v & 0x7f80U) == 0; });
      default: return false;
    }
  };
  for (int64_t row = 0; row < rows.rows(); ++row) {
    if (bad(row)) throw InvalidArgument(fmt::format("{} {} has a NaN or an infinity; leave it out", what, row));
  }
}

CollectionNeighbors search_state(const CollectionState& state, const MatrixView& given,
                                 const CollectionSearchParams& params, const Resources& resources) {
  check_search(state, params.search);
  const Queries queries(given, state, resources);
  const int64_t k = params.search.k;
  CollectionNeighbors result;
  result.neighbors = Neighbors(given.rows(), k, resources);
  const NeighborsView out = result.neighbors.view();
  for_filters(state, queries.view(), params.filter, resources,
              [&](const MatrixView& some, const std::vector<int64_t>& numbers, const KeptItems* kept) {
                if (static_cast<int64_t>(numbers.size()) == given.rows() && params.filter.params_of_queries.empty()) {
                  search_places(state, some, kept, params.search, out, resources);
                  return;
                }
                Neighbors found(some.rows(), k, resources);
                search_places(state, some, kept, params.search, found.view(), resources);
                for (size_t i = 0; i < numbers.size(); ++i) {
                  std::copy_n(found.ids(static_cast<int64_t>(i)), k, out.ids + numbers[i] * k);
                  std::copy_n(found.distances(static_cast<int64_t>(i)), k, out.distances + numbers[i] * k);
                }
              });
  result.texts = name_places(state, out.ids, out.queries * k);
  return result;
}

CollectionRange range_search_state(const CollectionState& state, const MatrixView& given,
                                   const CollectionRangeParams& params, const Resources& resources) {
  if (params.probes != 0 && state.params->index.find("IVF") == std::string::npos) {
    throw InvalidArgument(fmt::format("the collection's index is '{}', which knows no probes", state.params->index));
  }
  const Queries queries(given, state, resources);
  FoundLists found(static_cast<size_t>(given.rows()));
  for_filters(state, queries.view(), params.filter, resources,
              [&](const MatrixView& some, const std::vector<int64_t>& numbers, const KeptItems* kept) {
                for (size_t p = 0; p < state.parts.size(); ++p) {
                  const PartFilter filter(state.parts[p], kept == nullptr ? nullptr : &kept->parts[p], resources);
                  if (filter.count() == 0 || some.rows() == 0) continue;
                  resources.check_cancelled();
                  range_part(state, p, some, params, filter, numbers, found, resources);
                }
              });
  const Order order(state);
  int64_t total = 0;
  for (std::vector<Found>& list : found) {
    std::sort(list.begin(), list.end(), [&](const Found& a, const Found& b) {
      return order(a.distance, a.place, b.distance, b.place);
    });
    total += static_cast<int64_t>(list.size());
  }
  CollectionRange result;
  result.neighbors = RangeNeighbors(given.rows(), total, resources);
  int64_t at = 0;
  result.neighbors.offsets()[0] = 0;
  for (size_t q = 0; q < found.size(); ++q) {
    for (const Found& one : found[q]) {
      result.neighbors.ids()[at] = one.place;
      result.neighbors.distances()[at++] = one.distance;
    }
    result.neighbors.offsets()[q + 1] = at;
  }
  result.texts = name_places(state, result.neighbors.ids(), total);
  return result;
}

}  // namespace kith
