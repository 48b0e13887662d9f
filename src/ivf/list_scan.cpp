#include "ivf/list_scan.hpp"

#include "core/divide.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "kernels/lists/decode_rows_cpu.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>

namespace kith {
namespace {

static_assert(kMostRowsPerPanel <= CandidateList::kLargestGroup);
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kGathered = 64;  // vectors scored, or queries packed, at a time
static_assert(kGathered >= kMostQueriesPerPanel);

}  // namespace

ListedVectors::ListedVectors(const IvfModel& model, const std::vector<Segment>& segments)
    : model_(model), segments_(segments), bases_{0} {
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

void ListedVectors::decode(uint32_t* places, int64_t count, float* out) const {
  const CodecView codec = model_.codec->view();
  for (int64_t i = 0; i < count; ++i) {
    const auto [segment, place] = find(places[i]);
    const float* const centre = model_.residual ? model_.centre(segment.list_of(place)) : nullptr;
    decode_rows_cpu(codec, segment.code(place), 1, centre, out + i * codec.format.cols);
    places[i] = segment.rows()[place];
  }
}

ListScanShape ListScanShape::choose(PanelFormat format, int64_t cols) {
  constexpr int64_t kQueryBytes = 1 << 18;
  constexpr int64_t kPieceBytes = 1 << 17;
  const int64_t bytes = array_bytes<float>(cols);
  return {format, std::clamp<int64_t>(round_up(kQueryBytes / bytes, kMostQueriesPerPanel), kMostQueriesPerPanel, 512),
          std::clamp<int64_t>(round_up(kPieceBytes / bytes, kMostRowsPerPanel), kMostRowsPerPanel, 1024)};
}

ListScan::ListScan(const ListScanContext& context, const ListScanShape& shape, int slot, const Resources& resources)
    : context_(context),
      shape_(shape),
      slot_(slot),
      cols_(context.vectors.model().cols()),
      rows_(context.kind, shape.format, shape.piece_rows, cols_, resources),
      queries_(context.kind, shape.format, shape.query_block, cols_, resources),
      packing_(PackedQueries::scratch_bytes(shape.format, cols_), "packing", resources),
      gathered_(kGathered * cols_, "gathered vectors", resources),
      limits_(shape.query_block + kMostQueriesPerPanel, "the queries' limits", resources),
      origin_(static_cast<size_t>(cols_), 0.0f) {}

int64_t ListScan::bytes_for(const ListScanShape& shape, int64_t cols) {
  return ListPanels::bytes_for(shape.format, shape.piece_rows, cols) +
         PackedQueries::bytes_for(shape.format, shape.query_block, cols) +
         PackedQueries::scratch_bytes(shape.format, cols) +
         array_bytes<float>(kGathered * cols + shape.query_block + kMostQueriesPerPanel);
}

void ListScan::pack_queries(const ListTask& task) {
  const int64_t width = queries_.panel_width();
  for (int64_t first = 0; first < task.query_count; first += width) {
    const int64_t count = std::min(width, task.query_count - first);
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(context_.queries + task.queries[first + i] * cols_, cols_, gathered_.data() + i * cols_);
    }
    queries_.pack_panel(first / width, gathered_.data(), count, origin_, packing_.data());
  }
  std::fill(limits_.begin(), limits_.end(), -kInfinity);  // of those that only fill up a panel
  panels_ = queries_.panels(0, task.query_count, limits_.data());
}

void ListScan::run(const ListTask& task) {
  const IvfModel& model = context_.vectors.model();
  const ListSegment& segment = *context_.vectors.segments()[task.segment];
  task_ = task;
  if (has_differences(context_.kind)) {
    const float* const origin = model.has_centres() ? model.centre(task.list) : context_.origin.data();
    std::copy_n(origin, cols_, origin_.data());
  }
  pack_queries(task);
  for (int64_t first = task.first; first < task.end; first += shape_.piece_rows) {
    const int64_t count = std::min(shape_.piece_rows, task.end - first);
    first_place_ = context_.vectors.base(task.segment) + first;
    for (int64_t q = 0; q < task.query_count; ++q) {
      const std::lock_guard hold(context_.locks[task.queries[q]]);
      set_limit(q);
    }
    rows_.pack(model.codec->view(), segment.code(first), count, model.base_of(task.list), origin_);
    scan_panels(panels_, rows_.panels(), 0, rows_.panel_count(), *this);
    context_.meter.checkpoint();
  }
}

void ListScan::on_hit(int64_t query, int64_t panel, const float* values) {
  const int64_t of_batch = task_.queries[query];
  const float bound = panels_.bound(query).at(rows_.panels().norms[panel]);
  const int64_t first = panel * rows_.rows_per_panel();
  const int64_t count = std::min(rows_.rows_per_panel(), rows_.count() - first);
  CandidateList& candidates = context_.lists[of_batch];
  const std::lock_guard hold(context_.locks[of_batch]);
  const int64_t before = candidates.size();
  candidates.push_group(values, count, limits_[query] + bound,
                        {queries_.offset(query), bound, 0.0f, context_.kind == KeyKind::l2},
                        static_cast<uint32_t>(first_place_ + first));
  if (context_.kept != nullptr) {
    candidates.keep_since(before,
                          [&](uint32_t place) { return keeps(context_.kept, context_.vectors.row_of(place)); });
  }
  if (candidates.has_room()) return;
  context_.user.make_room(&candidates, of_batch, 0, slot_, scorer(of_batch));
  set_limit(query);
}

void ListScan::set_limit(int64_t query) {
  const float key = context_.lists[task_.queries[query]].limit();
  limits_[query] = (context_.kind == KeyKind::l2 ? square_above(key) : key) - queries_.offset(query);
}

RowScorer ListScan::scorer(int64_t query) {
  return [this, query](uint32_t* places, int64_t count, float* keys) {
    uint32_t numbers[kGathered];
    std::iota(numbers, numbers + kGathered, 0u);
    const CanonicalQuery canonical{context_.queries + query * cols_, context_.inverse_norms[query]};
    for (int64_t first = 0; first < count; first += kGathered) {
      const int64_t here = std::min(kGathered, count - first);
      context_.vectors.decode(places + first, here, gathered_.data());
      canonical_keys_cpu(context_.kind, canonical, MatrixView(gathered_.data(), here, cols_), numbers, here,
                         keys + first);
    }
  };
}

void ListScan::finish(int64_t query) {
  context_.user.finish(&context_.lists[query], query, 0, slot_, scorer(query));
}

}  // namespace kith
