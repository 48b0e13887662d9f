// How a Flat index grows: an add makes a segment (rows/segments.hpp). All lie on the host, or all in the memory of one
// device: where the first rows did. Rows on a device are checked when they are prepared.
#include "index/flat.hpp"

#include "index/flat_state.hpp"

namespace kith {
namespace {

// The device that rows are prepared for when they are added: where they lie. Where it could be a GPU `automatic` waits
// for the first search.
Device device_at_add(Device asked, const MemorySpace& space) {
  if (!space.host_readable()) return Device::cuda(space.device);
  return asked.kind == DeviceKind::automatic && !built_with_cuda() ? Device::cpu() : asked;
}

using Vectors = FlatState::Vectors;

// Borrowed rows stay where they are.
size_t staying(const Vectors& vectors, int64_t added) {
  return vectors.staying(added, 2, [](const VectorSegment& segment) { return segment.made().owns(); });
}

// A segment of the new rows and of those behind the first `stay`.
std::shared_ptr<const VectorSegment> joined(const Vectors& vectors, size_t stay, const MatrixView& rows,
                                            const Resources& resources) {
  std::vector<MatrixView> parts;
  for (size_t i = stay; i < vectors.count(); ++i) parts.push_back(vectors.all()[i]->made().view());
  parts.push_back(rows);
  return std::make_shared<VectorSegment>(VectorRows::join(parts, resources));
}

const FlatState* flat(const IndexState* state) { return static_cast<const FlatState*>(state); }
Vectors vectors_of(const FlatState* state) { return state == nullptr ? Vectors() : state->vectors(); }

// The rows of a block that are kept, the first of which is number first_row, in runs.
std::vector<MatrixView> kept_runs(const MatrixView& block, int64_t first_row, const uint64_t* bits) {
  std::vector<MatrixView> runs;
  int64_t start = 0;  // of the run that row i would end
  for (int64_t i = 0; i <= block.rows(); ++i) {
    if (i < block.rows() && keeps(bits, first_row + i)) continue;
    if (i > start) runs.push_back(block.slice(start, i - start));
    start = i + 1;
  }
  return runs;
}

class FlatKind final : public IndexKind {
 public:
  explicit FlatKind(const IndexParams& params) : params_(params) {}

  std::shared_ptr<const IndexState> added(const IndexState* state, const MatrixView& rows, Ownership ownership,
                                          const Resources& resources) const override {
    const FlatState* const before = flat(state);
    const Vectors old = vectors_of(before);
    const bool borrow = ownership == Ownership::borrow;
    const size_t stay = borrow ? old.count() : staying(old, rows.rows());
    const auto segment = borrow ? std::make_shared<const VectorSegment>(std::make_shared<const VectorRows>(rows))
                                : joined(old, stay, rows, resources);
    const bool checked = prepare(*segment, old.first_row(stay), resources);
    return std::make_shared<FlatState>(content_after(before, rows), params_, old.with(stay, segment),
                                       checked && (before == nullptr || before->checked()));
  }

  // Layouts are left out where there is no room for them.
  int64_t added_bytes(const IndexState* state, const RowsInfo& rows, const Resources&) const override {
    const Vectors old = vectors_of(flat(state));
    return (old.rows() - old.first_row(staying(old, rows.rows)) + rows.rows) * rows.row_bytes();
  }

  std::shared_ptr<const IndexState> compacted(const IndexState& state, const KeptRows& kept,
                                              const Resources& resources) const override {
    const auto& before = static_cast<const FlatState&>(state);
    Vectors left;
    bool checked = before.checked();
    for (size_t i = 0; i < before.vectors().count(); ++i) {
      const auto& segment = before.vectors().all()[i];
      const MatrixView& rows = segment->made().view();
      const std::vector<MatrixView> runs = kept_runs(rows, before.vectors().first_row(i), kept.bits());
      if (runs.empty()) continue;
      const bool whole = runs.size() == 1 && runs[0].rows() == rows.rows();
      const int64_t first_row = left.rows();
      left.push_back(whole ? segment : std::make_shared<VectorSegment>(VectorRows::join(runs, resources)));
      if (!whole) checked = prepare(*left.all().back(), first_row, resources) && checked;
    }
    return std::make_shared<FlatState>(before.content().with_rows(kept.count()), params_, std::move(left), checked);
  }

  // Segments are shared with the other index. Small ones are merged as those of an add are.
  std::shared_ptr<const IndexState> merged(const IndexState* state, const IndexState& other,
                                           const Resources& resources) const override {
    const FlatState* const before = flat(state);
    const auto* const more = dynamic_cast<const FlatState*>(&other);
    if (more == nullptr) throw_not_alike("the other index keeps something else than the vectors as they are");
    Vectors vectors = vectors_of(before);
    bool checked = more->checked() && (before == nullptr || before->checked());
    for (const auto& segment : more->vectors()) {
      const VectorRows& rows = segment->made();
      const size_t stay = rows.owns() ? staying(vectors, rows.size()) : vectors.count();
      const bool shared = stay == vectors.count();
      vectors = vectors.with(stay, shared ? segment : joined(vectors, stay, rows.view(), resources));
      if (!shared) checked = prepare(*vectors.all().back(), vectors.first_row(stay), resources) && checked;
    }
    const IndexContent content = before == nullptr ? other.content() : before->content().with_rows(vectors.rows());
    return std::make_shared<FlatState>(content, params_, std::move(vectors), checked);
  }

  std::shared_ptr<const IndexState> restored(IndexParts& parts, const Resources& resources) const override {
    Vectors vectors;
    bool checked = true;
    for (PartMatrix& rows : parts.flat) {
      if (rows.rows() == 0) continue;
      const int64_t first_row = vectors.rows();
      vectors.push_back(std::make_shared<VectorSegment>(
          std::make_shared<const VectorRows>(std::move(rows).take("the index's rows", resources))));
      checked = prepare(*vectors.all().back(), first_row, resources) && checked;
    }
    const DType dtype = parts.transforms.empty() ? parts.dtype : DType::f32;
    return std::make_shared<FlatState>(IndexContent{vectors.rows(), parts.stored_cols(), dtype, {}}, params_,
                                       std::move(vectors), checked);
  }

 private:
  // Returns whether its values have been looked at.
  bool prepare(const VectorSegment& segment, int64_t first_row, const Resources& resources) const {
    const MemorySpace space = segment.space();
    const bool wanted = params_.check_finite || params_.metric == Metric::chi_square;
    const bool checked = !wanted || space.host_readable();
    const Device device = device_at_add(resources.device(), space);
    if (!params_.prepare || device.kind == DeviceKind::automatic) return checked;
    PrepareOptions options = flat_prepare_options(params_, segment.made().view().dtype());
    options.check_finite = !checked && params_.check_finite;
    options.first_row = first_row;
    return get_layout(segment, device, options, resources) != nullptr || checked;
  }

  const IndexParams params_;
};

}  // namespace

std::shared_ptr<const IndexKind> make_flat(const IndexParams& params) { return std::make_shared<FlatKind>(params); }

}  // namespace kith
