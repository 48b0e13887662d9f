#include "ivf/scan/list_scan.hpp"

#include "kernels/codes/code_norm.hpp"
#include "kernels/codes/code_reader_cpu.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/distance/error_bound.hpp"
#include "kernels/lists/code_tables.hpp"
#include "kernels/select/smallest_values.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>

namespace kith {

namespace {

constexpr int64_t kScored = 64;        // vectors at a time
constexpr int64_t kMostTogether = 64;  // tasks
constexpr int64_t kValuesBetweenPolls = 1 << 20;  // of queries and vectors: a fraction of a millisecond

// Calls use(query, list) for each probe of a part.
template <typename Use>
void for_each_probe(const ProbeTable& table, ProbePart part, const Use& use) {
  for (int64_t q = 0; q < table.queries; ++q) {
    const int64_t begin = part == ProbePart::first ? 0 : table.firsts[q];
    const int64_t end = part == ProbePart::first ? table.firsts[q] : table.counts[q];
    for (int64_t rank = begin; rank < end; ++rank) use(q, table.list(q, rank));
  }
}

// Few probes are sorted, so that one query of a million lists does not look at each of them.
bool is_few(int64_t probes, int64_t lists) { return probes < lists / 16; }

}  // namespace

bool compares_codes(const ListedVectors& vectors, const ListProductShape& shape, int64_t kept) {
  const IvfModel& model = vectors.model();
  const CodeFormat& format = model.codec->format();
  if (shape.few_queries == 0) return false;
  // Preparing a query takes as long, per list, as comparing or decoding this many vectors. A query's tables take as
  // long as decoding this many vectors in total.
  if (shape.few_engine == ListEngine::bytes) {
    const int64_t fewest = !format.stores_values() ? 5 : format.dtype == DType::f32 ? 12 : 8;
    return vectors.screened() && kept >= fewest * model.lists();
  }
  constexpr int64_t kFewestOfList = 4;
  constexpr int64_t kFewestOfTables = 64;
  const bool tables_once = shape.few_engine == ListEngine::terms ? vectors.screened()
                           : shape.few_engine == ListEngine::tables ? !model.has_centres()
                                                                    : false;
  return tables_once && format.copies_codewords() && kept >= kFewestOfList * model.lists() + kFewestOfTables;
}

ProbeTable::ProbeTable(ArrayPlaces& places, int64_t capacity, int64_t probes)
    : width(probes),
      lists(places.take<int32_t>(capacity * probes)),
      counts(places.take<int32_t>(capacity)),
      firsts(places.take<int32_t>(capacity)) {}

Footprint invert_footprint(int64_t queries, int64_t probes, int64_t lists) {
  const int64_t all = queries * probes;
  return array_footprint<uint32_t>(all)
      .beside(is_few(all, lists) ? array_footprint<uint64_t>(all) : array_footprint<int64_t>(lists + 1))
      .beside(array_footprint<ListVisit>(std::min(all, lists), 2));
}

ListVisits invert_probes(const ProbeTable& table, ProbePart part, int64_t lists, const Resources& resources) {
  int64_t total = 0;
  for_each_probe(table, part, [&](int64_t, int32_t) { ++total; });
  ListVisits visits;
  visits.queries = HostArray<uint32_t>(total, "the lists' queries", resources);
  if (is_few(total, lists)) {
    const HostArray<uint64_t> pairs(total, "the lists' queries", resources);
    int64_t at = 0;
    for_each_probe(table, part, [&](int64_t query, int32_t list) {
      pairs[at++] = static_cast<uint64_t>(list) << 32 | static_cast<uint64_t>(query);
    });
    std::sort(pairs.begin(), pairs.end());
    visits.lists.reserve(static_cast<size_t>(total));
    for (int64_t i = 0; i < total; ++i) {
      const auto list = static_cast<int64_t>(pairs[i] >> 32);
      if (visits.lists.empty() || visits.lists.back().list != list) visits.lists.push_back({list, i, 0});
      ++visits.lists.back().count;
      visits.queries[i] = static_cast<uint32_t>(pairs[i]);
    }
    return visits;
  }
  const HostArray<int64_t> next(lists + 1, "the lists' queries", resources);
  std::fill(next.begin(), next.end(), int64_t{0});
  for_each_probe(table, part, [&](int64_t, int32_t list) { ++next[list + 1]; });
  visits.lists.reserve(static_cast<size_t>(std::min(total, lists)));
  for (int64_t list = 0; list < lists; ++list) {
    if (next[list + 1] > 0) visits.lists.push_back({list, next[list], next[list + 1]});
    next[list + 1] += next[list];
  }
  for_each_probe(table, part,
                 [&](int64_t query, int32_t list) { visits.queries[next[list]++] = static_cast<uint32_t>(query); });
  return visits;
}

ListedVectors::ListedVectors(const IvfModel& model, const std::vector<Segment>& segments,
                             ReusedVector<SharedScreen> screens)
    : model_(model), segments_(segments), screens_(std::move(screens)), bases_{0} {
  for (const Segment& segment : segments) bases_.push_back(bases_.back() + segment->size());
}

ListedVectors::Found ListedVectors::find(int64_t place) const {
  size_t segment = 0;
  while (place >= bases_[segment + 1]) ++segment;
  return {*segments_[segment], place - bases_[segment]};
}

uint32_t ListedVectors::row_of(int64_t place) const {
  const Found found = find(place);
  return found.segment.rows()[found.place];
}

const uint8_t* ListedVectors::code(int64_t place) const {
  const Found found = find(place);
  return found.segment.code(found.place);
}

void ListedVectors::prefetch(size_t segment, int64_t first, int64_t end) const {
  // Then a core's own prefetching follows. On x86, whose list scans take what they have in less time, it needs more of
  // a start: 16 lists of 15 KB are scanned in 8.8 µs with 6 KiB, in 12.4 with 2.
#if defined(__x86_64__)
  constexpr int64_t kBytes = 6144;
#else
  constexpr int64_t kBytes = 2048;
#endif
  constexpr int64_t kLine = 64;
  const ByteRows beside = screened() ? screens_[segment]->rows(first, 1) : ByteRows();
  const bool bytes = beside.bytes != nullptr;
  const uint8_t* const scanned = bytes ? beside.bytes : segments_[segment]->code(first);
  const int64_t all = (end - first) * (bytes ? beside.stride : segments_[segment]->code_bytes());
  for (int64_t at = 0; at < std::min(kBytes, all); at += kLine) __builtin_prefetch(scanned + at);
  for (const float* const of_rows : {beside.terms, beside.scales, beside.spreads}) __builtin_prefetch(of_rows);
}

// Codes are at arbitrary places: all are prefetched before the first is used.
void ListedVectors::fetch(const uint32_t* places, int64_t count) const {
  constexpr int64_t kLine = 64;
  const int64_t fetched =
      std::min<int64_t>(model_.codec->format().bytes(), 8 * kLine);  // a core's own prefetching follows
  for (int64_t i = 0; i < count; ++i) {
    const auto [segment, place] = find(places[i]);
    for (int64_t at = 0; at < fetched; at += kLine) __builtin_prefetch(segment.code(place) + at);
    __builtin_prefetch(segment.rows() + place);
  }
}

bool ListedVectors::has_stored_values() const {
  return model_.codec->format().stores_values() && !model_.residual && segments_.size() == 1;
}

MatrixView ListedVectors::stored_values() const {
  const CodeFormat& format = model_.codec->format();
  return MatrixView(segments_[0]->code(0), format.dtype, {size(), format.cols, format.cols});
}

void ListedVectors::decode(uint32_t* places, int64_t count, float* out, float* norms) const {
  const CodecView codec = model_.codec->view();
  const int64_t cols = codec.format.cols;
  const float* const centres = model_.base_of(0);  // one after the other
  fetch(places, count);
  for (int64_t i = 0; i < count; ++i) {
    const auto [segment, place] = find(places[i]);
    const float* const centre = centres == nullptr ? nullptr : centres + segment.list_of(place) * cols;
    decode_rows_cpu(codec, segment.code(place), 1, centre, out + i * cols);
    if (norms != nullptr) norms[i] = code_norm(codec, segment.code(place));
    places[i] = segment.rows()[place];
  }
}

ListScan::Memory::Memory(ArrayPlaces& places, const ListProductShape& shape, int64_t cols)
    : hit_values(places.take<float>(shape.query_group * ListHits::stride_for(shape.piece_rows))),
      hit_rows(places.take<uint32_t>(hit_values.size())),
      scored(places.take<float>(kScored * cols)) {}

ListScan::ListScan(const ListScanContext& context, const ListProductShape& shape, int slot, const Resources& resources)
    : context_(context),
      shape_(shape),
      slot_(slot),
      cols_(context.vectors.model().cols()),
      root_(context.tables.kind() == KeyKind::l2),
      by_norm_(has_norm_keys(context.vectors.model().codec->format(), context.tables.kind())),
      resources_(resources),
      memory_("candidates", resources, shape, cols_) {
  hits_.values = memory_->hit_values.data();
  hits_.rows = memory_->hit_rows.data();
  hits_.stride = ListHits::stride_for(shape.piece_rows);
  hits_.enough = context.kept == nullptr ? context.k : 0;  // rows that a filter leaves out precede nothing
}

Footprint ListScan::footprint(const IvfModel& model, const ListProductShape& shape, const Resources& resources) {
  return counted(resources, [&](const Resources& counting) {
    const ListTables tables(model, {}, {true, true}, counting);
    const HostArrays<Memory> memory("candidates", counting, shape, model.cols());
    std::unique_ptr<ListProduct> few;
    std::unique_ptr<ListProduct> many;
    if (shape.few_queries > 0) few = make_list_product(shape.few_engine, tables, shape, counting);
    if (shape.engine != shape.few_engine || shape.few_queries == 0)
      many = make_list_product(shape.engine, tables, shape, counting);
  });
}

ListProduct& ListScan::product_for(const ListTask& task) {
  const ListEngine engine = shape_.engine_for(task.queries.count);
  std::unique_ptr<ListProduct>& product = engine == shape_.engine ? many_ : few_;
  if (product == nullptr) product = make_list_product(engine, context_.tables, shape_, resources_);
  return *product;
}

int64_t ListScan::together(const ListProductShape& shape, const ListTask* tasks, int64_t count) {
  if (shape.engine_for(tasks[0].queries.count) != ListEngine::tables) return 1;
  int64_t queries = 0;
  int64_t end = 0;
  for (; end < std::min(count, kMostTogether); ++end) {
    if (shape.engine_for(tasks[end].queries.count) != ListEngine::tables) break;
    if (end > 0 && tasks[end].queries == tasks[end - 1].queries) continue;  // another part of the same list
    if (end > 0 && queries + tasks[end].queries.count > kTablesTogether) break;
    queries += tasks[end].queries.count;
  }
  return end;
}

void ListScan::run(const ListTask* tasks, int64_t count) {
  lists_.clear();
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || tasks[i].queries != tasks[i - 1].queries) lists_.push_back(tasks[i].queries);
  }
  product_ = &product_for(tasks[0]);
  product_->load_queries(context_.queries, context_.inverse_norms, lists_.data(), static_cast<int64_t>(lists_.size()));
  size_t list = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (tasks[i].queries != lists_[list]) product_->use_list(static_cast<int64_t>(++list));
    scan(tasks[i]);
  }
}

void ListScan::scan(const ListTask& task) {
  const ListSegment& segment = *context_.vectors.segments()[task.segment];
  task_ = task;
  const auto [numbers, query_count, list] = task.queries;
  float limits[kHitQueries];
  for (int64_t first = task.first; first < task.end; first += shape_.piece_rows) {
    product_->load_rows({segment.code(first), std::min(shape_.piece_rows, task.end - first), first,
                         context_.vectors.screen(task.segment)});
    for (int64_t group = 0; group < query_count; group += kHitQueries) {
      const int64_t count = std::min(kHitQueries, query_count - group);
      for (int64_t i = 0; i < count; ++i) {
        hits_.counts[i] = 0;
        limits[i] = limit_of(group + i, context_.thresholds[numbers[group + i]].load(std::memory_order_relaxed));
      }
      product_->scan(group, count, limits, hits_);
      for (int64_t i = 0; i < count; ++i) {
        if (hits_.counts[i] > 0) take_hits(group + i, i, context_.vectors.base(task.segment) + first);
      }
    }
    // A search of few queries is over before anyone would be told of it: a clock for every list is a few percent of it.
    unpolled_ += query_count * (std::min(first + shape_.piece_rows, task.end) - first) * cols_;
    if (unpolled_ < kValuesBetweenPolls) continue;
    unpolled_ = 0;
    context_.meter.checkpoint();
  }
}

float ListScan::limit_of(int64_t query, float threshold) const {
  return (root_ ? square_above(threshold) : threshold) - product_->offset(query);
}

int64_t ListScan::keep_hits(float* values, uint32_t* rows, int64_t count, int64_t first_place) const {
  int64_t stay = 0;
  for (int64_t i = 0; i < count; ++i) {
    values[stay] = values[i];
    rows[stay] = rows[i];
    stay += keeps(context_.kept, context_.vectors.row_of(first_place + rows[i]));
  }
  return stay;
}

void ListScan::take_hits(int64_t query, int64_t place_in_group, int64_t first_place) {
  float* const values = hits_.values + place_in_group * hits_.stride;
  uint32_t* const rows = hits_.rows + place_in_group * hits_.stride;
  int64_t count = hits_.counts[place_in_group];
  if (context_.kept != nullptr && run_ == nullptr) count = keep_hits(values, rows, count, first_place);
  const float offset = product_->offset(query);
  const float error = product_->error(query);
  float shown = std::numeric_limits<float>::infinity();  // a key that k of these vectors do not exceed
  if (context_.k > 0 && count >= context_.k && error < shown) {
    const float upper = rank_value(values, count, context_.k) + offset + error;
    shown = root_ ? root_above(upper) : not_below_zero(upper);
  }

  const int64_t of_batch = task_.queries.numbers[query];
  CandidateList& candidates = context_.lists[of_batch];
  const std::lock_guard hold(context_.locks[of_batch]);
  candidates.share_threshold(shown);
  float limit = limit_of(query, candidates.limit()) + error;
  if (shown < std::numeric_limits<float>::infinity()) count = keep_up_to(limit, values, rows, count);
  for (int64_t i = 0; i < count; ++i) {
    if (values[i] > limit) continue;  // a NaN stays
    if (!candidates.has_room()) {
      context_.user.make_room(&candidates, of_batch, 0, slot_, scorer(of_batch));
      limit = limit_of(query, candidates.limit()) + error;
      if (values[i] > limit) continue;
    }
    const float key = values[i] + offset;
    const float lower = key - error;
    const float upper = key + error;
    candidates.push(root_ ? root_below(lower) : lower, root_ ? root_above(upper) : not_below_zero(upper),
                    run_ == nullptr ? static_cast<uint32_t>(first_place + rows[i]) : run_[rows[i]]);
  }
  context_.thresholds[of_batch].store(candidates.limit(), std::memory_order_relaxed);
}

// No key made from a norm is.
float ListScan::not_below_zero(float upper) const { return by_norm_ && upper < 0 ? 0.0f : upper; }

void ListScan::score_by_norm(int64_t query, uint32_t* places, int64_t count, float* keys) {
  float norms[kScored];
  double products[kScored];
  const float* const values = context_.queries + query * cols_;
  context_.vectors.decode(places, count, memory_->scored.data(), norms);
  canonical_products_cpu(values, memory_->scored.data(), count, cols_, products);
  const double squared = canonical_squared_norm_cpu(values, cols_);
  for (int64_t i = 0; i < count; ++i) keys[i] = norm_key(context_.tables.kind(), squared, products[i], norms[i]);
}

RowScorer ListScan::scorer(int64_t query) {
  return [this, query](uint32_t* places, int64_t count, float* keys) {
    uint32_t numbers[kScored];
    std::iota(numbers, numbers + kScored, 0u);
    const CanonicalQuery canonical{context_.queries + query * cols_, context_.inverse_norms[query]};
    for (int64_t first = 0; first < count; first += kScored) {
      const int64_t here = std::min(kScored, count - first);
      if (by_norm_) {
        score_by_norm(query, places + first, here, keys + first);
        continue;
      }
      if (context_.vectors.has_stored_values()) {  // compared in place
        context_.vectors.fetch(places + first, here);
        canonical_keys_cpu(context_.tables.kind(), canonical, context_.vectors.stored_values(), places + first, here,
                           keys + first);
        for (int64_t i = first; i < first + here; ++i) places[i] = context_.vectors.row_of(places[i]);
        continue;
      }
      context_.vectors.decode(places + first, here, memory_->scored.data());
      canonical_keys_cpu(context_.tables.kind(), canonical, MatrixView(memory_->scored.data(), here, cols_), numbers, here,
                         keys + first);
    }
  };
}

// A list's kept vectors are compared by their bytes, or looked up, as a list is.
void ListScan::compare_codes(int64_t query, const uint32_t* places, int64_t count) {
  const auto number = static_cast<uint32_t>(query);
  float limits[1];
  size_t s = 0;
  for (int64_t at = 0, here = 0; at < count; at += here) {
    while (places[at] >= context_.vectors.base(s) + context_.vectors.segments()[s]->size()) ++s;
    const ListSegment& segment = *context_.vectors.segments()[s];
    const int64_t base = context_.vectors.base(s);
    const int64_t list = segment.list_of(places[at] - base);
    const int64_t end = base + segment.offsets()[list + 1];
    for (here = 1; at + here < count && here < shape_.piece_rows && places[at + here] < end;) ++here;
    task_ = {s, 0, here, {&number, 1, list}};
    run_ = places + at;
    product_ = &product_for(task_);
    product_->load_queries(context_.queries, context_.inverse_norms, &task_.queries, 1);
    product_->load_rows({segment.code(0), here, 0, context_.vectors.screen(s), run_, base});
    hits_.counts[0] = 0;
    limits[0] = limit_of(0, context_.thresholds[query].load(std::memory_order_relaxed));
    product_->scan(0, 1, limits, hits_);
    if (hits_.counts[0] > 0) take_hits(0, 0, 0);
  }
  run_ = nullptr;
  context_.meter.checkpoint();
}

void ListScan::compare(int64_t query, const uint32_t* places, int64_t count) {
  if (compares_codes(context_.vectors, shape_, count)) return compare_codes(query, places, count);
  CandidateList& candidates = context_.lists[query];
  const RowScorer score = scorer(query);
  uint32_t rows[kScored];
  float keys[kScored];
  for (int64_t first = 0; first < count; first += kScored) {
    const int64_t here = std::min(kScored, count - first);
    std::copy_n(places + first, here, rows);
    score(rows, here, keys);
    for (int64_t i = 0; i < here; ++i) {
      if (keys[i] > candidates.limit()) continue;  // a NaN stays
      if (!candidates.has_room()) context_.user.make_room(&candidates, query, 0, slot_, score);
      candidates.push_exact(keys[i], rows[i]);
    }
    context_.meter.checkpoint();
  }
}

void ListScan::finish(int64_t query) { context_.user.finish(&context_.lists[query], query, 0, slot_, scorer(query)); }

}  // namespace kith
