// How an index of lists grows: an add makes a segment and merges it with the small ones before it, as a Flat index
// merges blocks, so that n single adds cost n log n copies and leave log n segments.
#include "index/lists_kind.hpp"

#include <kith/error.hpp>

#include "index/lists_state.hpp"
#include "ivf/model/norm_training.hpp"

#include <algorithm>
#include <cstring>

namespace kith {
namespace {

using Lists = Segments<SegmentCopies>;

// Where all segments lie; the host's memory where that is not one place.
MemorySpace place_of(const Lists& lists) {
  const auto same = [&](const SharedSegment& segment) { return segment->space() == lists.all().front()->space(); };
  return !lists.empty() && std::all_of(lists.begin(), lists.end(), same) ? lists.all().front()->space() : MemorySpace();
}

// The segments with one more, which takes the small ones before it with it. A GPU merges at the speed of its memory, far
// faster than it codes, and searches few segments sooner: there few are left.
Lists grown(const Lists& before, SharedSegment added, const Resources& resources) {
  constexpr int64_t kTimesOnHost = 2;
  constexpr int64_t kTimesOnGpu = 64;
  const bool here = added->space().host_readable();
  const size_t stay = before.staying(added->size(), here ? kTimesOnHost : kTimesOnGpu);
  std::vector<SharedSegment> joined(before.begin() + static_cast<std::ptrdiff_t>(stay), before.end());
  joined.push_back(added);
  try {
    return before.with(stay, merge_copies(joined, resources));
  } catch (const OutOfMemory&) {
    if (here) throw;
    return before.with(before.count(), std::move(added));  // no room for both: it stays by itself
  }
}

void refuse_other_model(const IvfModel& a, const IvfModel& b) {
  if (&a == &b) return;
  const MatrixView x = a.centres.view();
  const MatrixView y = b.centres.view();
  const auto bytes = static_cast<size_t>(x.rows() * x.cols()) * sizeof(float);
  const bool same_centres = x.rows() == y.rows() && (bytes == 0 || std::memcmp(x.data(), y.data(), bytes) == 0);
  if (!same_centres) throw_not_alike("the centres of their lists differ");
  if (a.residual != b.residual) throw_not_alike("the codes of one are of vectors less their centres");
  if (!same_code(*a.codec, *b.codec)) throw_not_alike("their codes differ");
}

const ListsState& lists(const IndexState& state) { return static_cast<const ListsState&>(state); }

class ListsKind final : public IndexKind {
 public:
  ListsKind(const ListsSpec& spec, const IndexParams& params) : spec_(spec), params_(params) {}

  bool needs_training() const override { return true; }

  std::shared_ptr<const IndexState> trained(RowSource& rows, const Resources& resources) const override {
    ListsState::Model model = train_ivf(training_for(rows.info()), params_.metric, rows, params_.seed, resources);
    return std::make_shared<ListsState>(content(*model, 0), params_, std::move(model), Lists(), 0);
  }

  int64_t trained_bytes(const RowsInfo& rows, const Resources& resources) const override {
    return train_ivf_bytes(training_for(rows), params_.metric, rows, resources);
  }

  std::shared_ptr<const IndexState> added(const IndexState* before, const MatrixView& rows, Ownership,
                                          const Resources& resources) const override {
    const ListsState& state = lists(*before);
    const int64_t first_row = state.content().rows;
    const Lists segments =
        grown(state.segments(), make_segment(*state.model(), rows, first_row, resources), resources);
    IndexContent content = state.content().with_rows(first_row + rows.rows());
    content.space = place_of(segments);
    return std::make_shared<ListsState>(content, params_, state.model(), segments, state.probes());
  }

  int64_t added_bytes(const IndexState* before, const RowsInfo& rows, const Resources& resources) const override {
    const ListsState& state = lists(*before);
    const IvfModel& model = *state.model();
    const Lists& segments = state.segments();
    const int64_t joined = segments.rows() - segments.first_row(segments.staying(rows.rows)) + rows.rows;
    const auto segment = [&](int64_t size) {
      return ListSegment::bytes_for(model.lists(), size, model.codec->format().bytes());
    };
    return std::max(build_segment_bytes(model, rows, resources), segment(rows.rows) + segment(joined));
  }

  std::shared_ptr<const IndexState> compacted(const IndexState& before, const KeptRows& kept,
                                              const Resources& resources) const override {
    const ListsState& state = lists(before);
    Lists segments;
    for (const SharedSegment& segment : state.segments()) {
      SharedSegment left = without(*segment, kept, state.content().rows, resources);
      if (left->size() > 0) segments.push_back(std::move(left));
    }
    IndexContent content = state.content().with_rows(kept.count());
    content.space = place_of(segments);
    return std::make_shared<ListsState>(content, params_, state.model(), std::move(segments), state.probes());
  }

  std::shared_ptr<const IndexState> merged(const IndexState* before, const IndexState& other,
                                           const Resources& resources) const override {
    const ListsState& state = lists(*before);
    const auto* const more = dynamic_cast<const ListsState*>(&other);
    if (more == nullptr) throw_not_alike("the other index has no lists of codes");
    refuse_other_model(*state.model(), *more->model());
    Lists segments = state.segments();
    const int64_t rows = state.content().rows;
    for (const SharedSegment& segment : more->segments()) {
      auto numbered = std::make_shared<SegmentCopies>(renumbered(*segment->on(Device::cpu(), resources), rows, resources));
      segments = grown(segments, std::move(numbered), resources);
    }
    IndexContent content = state.content().with_rows(rows + more->content().rows);
    content.space = place_of(segments);
    return std::make_shared<ListsState>(content, params_, state.model(), std::move(segments), state.probes());
  }

  std::shared_ptr<const IndexState> restored(IndexParts& parts, const Resources& resources) const override {
    ListParts& own = *parts.lists;
    auto model = std::make_shared<IvfModel>();
    model->metric = params_.metric;
    if (own.centres.rows() > 0) model->centres = std::move(own.centres).take("the lists' centres", resources);
    model->residual = own.residual;
    model->codec = Codec::from_parts(own.codec.recipe(), own.codec.format.cols, std::move(own.codec.values), resources);
    model->validate();
    Lists segments;
    const int64_t rows = own.rows.size();
    if (rows > 0) {
      constexpr std::string_view kPurpose = "the index's lists";
      segments.push_back(std::make_shared<SegmentCopies>(std::make_shared<ListSegment>(
          std::move(own.offsets).take(kPurpose, resources), std::move(own.codes).take(kPurpose, resources),
          std::move(own.rows).take(kPurpose, resources), model->codec->format().bytes(), resources)));
    }
    return std::make_shared<ListsState>(content(*model, rows), params_, model, std::move(segments), parts.probes);
  }

 private:
  IvfSpec training_for(const RowsInfo& rows) const {
    IvfSpec spec;
    spec.lists = spec_.has_lists ? spec_.lists : kOneList;
    spec.expected_rows = params_.expected_rows;
    spec.code = spec_.code.value_or(CodeRecipe{.dtype = rows.dtype});
    return spec;
  }

  // Stored codes hold one dtype, unless the factory string names it; others are made from any.
  IndexContent content(const IvfModel& model, int64_t rows) const {
    const CodeFormat& format = model.codec->format();
    return {rows, format.cols, format.dtype, {}, spec_.code.has_value() || format.dtype == DType::f32, true};
  }

  const ListsSpec spec_;
  const IndexParams params_;
};

}  // namespace

std::shared_ptr<const IndexKind> make_lists_kind(const ListsSpec& spec, const IndexParams& params) {
  check_ivf_metric(params.metric);
  if (spec.code) check_norm_metric(spec.code->norm, params.metric);
  return std::make_shared<ListsKind>(spec, params);
}

}  // namespace kith
