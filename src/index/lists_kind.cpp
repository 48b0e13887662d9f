// How an index of lists grows: an add makes a segment and merges it with the small ones before it, as a Flat index
// merges blocks, so that n single adds cost n log n copies and leave log n segments.
#include "index/lists_kind.hpp"

#include "index/block_merge.hpp"
#include "index/lists_state.hpp"
#include "ivf/renumbered_segment.hpp"

#include <cstring>

namespace kith {
namespace {

// Puts a segment of later rows behind the others, merged with the small ones before it.
void append(std::vector<Segment>& segments, Segment last, const Resources& resources) {
  const size_t stay = blocks_that_stay(segments.size(), last->size(), [&](size_t b) { return segments[b]->size(); });
  std::vector<Segment> joined(segments.begin() + static_cast<std::ptrdiff_t>(stay), segments.end());
  joined.push_back(std::move(last));
  segments.resize(stay);
  segments.push_back(joined.size() == 1 ? joined[0] : merge_segments(joined, resources));
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
    const RowsInfo info = rows.info();
    IvfSpec spec;
    spec.lists = spec_.has_lists ? spec_.lists : kOneList;
    spec.expected_rows = params_.expected_rows;
    spec.code = spec_.code.value_or(CodeSpec{.dtype = info.dtype});
    ListsState::Model model = train_ivf(spec, params_.metric, rows, params_.seed, resources);
    return std::make_shared<ListsState>(content(*model, 0), params_, std::move(model), std::vector<Segment>(), 0);
  }

  std::shared_ptr<const IndexState> added(const IndexState* before, const MatrixView& rows, Ownership,
                                          const Resources& resources) const override {
    const ListsState& state = lists(*before);
    const int64_t first_row = state.content().rows;
    std::vector<Segment> segments = state.segments();
    append(segments, build_segment(*state.model(), rows, first_row, resources), resources);
    return std::make_shared<ListsState>(state.content().with_rows(first_row + rows.rows()), params_, state.model(),
                                        std::move(segments), state.probes());
  }

  std::shared_ptr<const IndexState> removed(const IndexState& before, const KeptRows& kept,
                                            const Resources& resources) const override {
    const ListsState& state = lists(before);
    std::vector<Segment> segments;
    for (const Segment& segment : state.segments()) {
      Segment left = without(*segment, kept, resources);
      if (left->size() > 0) segments.push_back(std::move(left));
    }
    return std::make_shared<ListsState>(state.content().with_rows(kept.count()), params_, state.model(),
                                        std::move(segments), state.probes());
  }

  std::shared_ptr<const IndexState> merged(const IndexState* before, const IndexState& other,
                                           const Resources& resources) const override {
    const ListsState& state = lists(*before);
    const auto* const more = dynamic_cast<const ListsState*>(&other);
    if (more == nullptr) throw_not_alike("the other index has no lists of codes");
    refuse_other_model(*state.model(), *more->model());
    std::vector<Segment> segments = state.segments();
    int64_t rows = state.content().rows;
    for (const Segment& segment : more->segments()) {
      append(segments, renumbered(*segment, rows, resources), resources);
    }
    rows += more->content().rows;
    return std::make_shared<ListsState>(state.content().with_rows(rows), params_, state.model(), std::move(segments),
                                        state.probes());
  }

  std::shared_ptr<const IndexState> restored(IndexParts& parts, const Resources& resources) const override {
    ListParts& own = *parts.lists;
    auto model = std::make_shared<IvfModel>();
    model->metric = params_.metric;
    if (own.centres.rows() > 0) model->centres = std::move(own.centres).take("the lists' centres", resources);
    model->residual = own.residual;
    model->codec = Codec::from_parts(own.codec.format, std::move(own.codec.values), resources);
    model->validate();
    std::vector<Segment> segments;
    const int64_t rows = own.rows.size();
    if (rows > 0) {
      constexpr std::string_view kPurpose = "the index's lists";
      segments.push_back(std::make_shared<ListSegment>(
          std::move(own.offsets).take(kPurpose, resources), std::move(own.codes).take(kPurpose, resources),
          std::move(own.rows).take(kPurpose, resources), model->codec->format().bytes()));
    }
    return std::make_shared<ListsState>(content(*model, rows), params_, model, std::move(segments), parts.probes);
  }

 private:
  // Stored codes hold one dtype, unless the factory string names it; others are made from any.
  IndexContent content(const IvfModel& model, int64_t rows) const {
    const CodeFormat& format = model.codec->format();
    return {rows, format.cols, format.dtype, {}, spec_.code.has_value() || format.dtype == DType::f32};
  }

  const ListsSpec spec_;
  const IndexParams params_;
};

}  // namespace

std::shared_ptr<const IndexKind> make_lists_kind(const ListsSpec& spec, const IndexParams& params) {
  check_ivf_metric(params.metric);
  return std::make_shared<ListsKind>(spec, params);
}

}  // namespace kith
