// How a Flat index grows.
//
// The rows lie in blocks. An add makes a block and merges it with the small ones before it, so that n single adds cost
// n log n copies and leave log n blocks. Blocks are immutable and shared between versions. All lie on the host, or all
// in the memory of one device: where the first rows did. Rows on a device are checked when they are prepared.
#include "index/flat.hpp"

#include "index/block_merge.hpp"
#include "index/flat_state.hpp"

namespace kith {
namespace {

// The device that rows are prepared for when they are added: where they lie. Where it could be a GPU `automatic` waits
// for the first search.
Device device_at_add(Device asked, const MemorySpace& space) {
  if (!space.host_readable()) return Device::cuda(space.device);
  return asked.kind == DeviceKind::automatic && !built_with_cuda() ? Device::cpu() : asked;
}

// For blocks_that_stay().
auto rows_in(const FlatState::Blocks& blocks) {
  return [&blocks](size_t b) { return blocks[b]->owns() ? blocks[b]->view().rows() : int64_t{-1}; };
}

// A block of the new rows and of the owned blocks that are merged with them; those leave the list.
std::shared_ptr<const FlatBlock> merge(const MatrixView& rows, FlatState::Blocks& blocks, const Resources& resources) {
  const size_t kept = blocks_that_stay(blocks.size(), rows.rows(), rows_in(blocks));
  std::vector<MatrixView> parts;
  for (size_t b = kept; b < blocks.size(); ++b) parts.push_back(blocks[b]->view());
  parts.push_back(rows);
  std::shared_ptr<const FlatBlock> merged = FlatBlock::join(parts, resources);
  blocks.resize(kept);
  return merged;
}

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
    const auto* const before = static_cast<const FlatState*>(state);
    FlatState::Blocks blocks = before == nullptr ? FlatState::Blocks() : before->blocks();
    const std::shared_ptr<const FlatBlock> block =
        ownership == Ownership::borrow ? std::make_shared<FlatBlock>(rows) : merge(rows, blocks, resources);
    const IndexContent content = content_after(before, rows);
    const bool checked = prepare(*block, content.rows - block->view().rows(), resources);
    blocks.push_back(block);
    return std::make_shared<FlatState>(content, params_, std::move(blocks),
                                       checked && (before == nullptr || before->checked()));
  }

  // Layouts are left out where there is no room for them.
  int64_t added_bytes(const IndexState* state, const RowsInfo& rows, const Resources&) const override {
    const auto* const before = static_cast<const FlatState*>(state);
    const FlatState::Blocks none;
    const FlatState::Blocks& blocks = before == nullptr ? none : before->blocks();
    int64_t joined = rows.rows;
    for (size_t b = blocks_that_stay(blocks.size(), rows.rows, rows_in(blocks)); b < blocks.size(); ++b) {
      joined += blocks[b]->view().rows();
    }
    return joined * rows.row_bytes();
  }

  std::shared_ptr<const IndexState> removed(const IndexState& state, const KeptRows& kept,
                                            const Resources& resources) const override {
    const auto& before = static_cast<const FlatState&>(state);
    FlatState::Blocks blocks;
    bool checked = before.checked();
    int64_t first_row = 0;
    int64_t left = 0;
    for (const auto& block : before.blocks()) {
      const std::vector<MatrixView> runs = kept_runs(block->view(), first_row, kept.bits());
      first_row += block->view().rows();
      if (runs.empty()) continue;
      const bool whole = runs.size() == 1 && runs[0].rows() == block->view().rows();
      blocks.push_back(whole ? block : FlatBlock::join(runs, resources));
      if (!whole) checked = prepare(*blocks.back(), left, resources) && checked;
      left += blocks.back()->view().rows();
    }
    return std::make_shared<FlatState>(before.content().with_rows(kept.count()), params_, std::move(blocks), checked);
  }

  // Blocks are shared with the other index. Small ones are merged as those of an add are.
  std::shared_ptr<const IndexState> merged(const IndexState* state, const IndexState& other,
                                           const Resources& resources) const override {
    const auto* const before = static_cast<const FlatState*>(state);
    const auto* const more = dynamic_cast<const FlatState*>(&other);
    if (more == nullptr) throw_not_alike("the other index keeps something else than the vectors as they are");
    FlatState::Blocks blocks = before == nullptr ? FlatState::Blocks() : before->blocks();
    bool checked = more->checked() && (before == nullptr || before->checked());
    int64_t rows = before == nullptr ? 0 : before->content().rows;
    for (const auto& block : more->blocks()) {
      rows += block->view().rows();
      const std::shared_ptr<const FlatBlock> small = blocks.empty() || !block->owns() ? nullptr : blocks.back();
      if (small == nullptr || !small->owns() || small->view().rows() > 2 * block->view().rows()) {
        blocks.push_back(block);
        continue;
      }
      blocks.push_back(merge(block->view(), blocks, resources));
      checked = prepare(*blocks.back(), rows - blocks.back()->view().rows(), resources) && checked;
    }
    return std::make_shared<FlatState>(before == nullptr ? other.content() : before->content().with_rows(rows), params_,
                                       std::move(blocks), checked);
  }

  std::shared_ptr<const IndexState> restored(IndexParts& parts, const Resources& resources) const override {
    FlatState::Blocks blocks;
    IndexContent content{0, parts.stored_cols(), parts.transforms.empty() ? parts.dtype : DType::f32, {}};
    bool checked = true;
    for (PartMatrix& rows : parts.flat) {
      if (rows.rows() == 0) continue;
      blocks.push_back(std::make_shared<FlatBlock>(std::move(rows).take("the index's rows", resources)));
      checked = prepare(*blocks.back(), content.rows, resources) && checked;
      content.rows += blocks.back()->view().rows();
    }
    return std::make_shared<FlatState>(content, params_, std::move(blocks), checked);
  }

 private:
  // Returns whether its values have been looked at.
  bool prepare(const FlatBlock& block, int64_t first_row, const Resources& resources) const {
    const MemorySpace& space = block.view().space();
    const bool wanted = params_.check_finite || params_.metric == Metric::chi_square;
    const bool checked = !wanted || space.host_readable();
    const Device device = device_at_add(resources.device(), space);
    if (!params_.prepare || device.kind == DeviceKind::automatic) return checked;
    PrepareOptions options = flat_prepare_options(params_, block.view().dtype());
    options.check_finite = !checked && params_.check_finite;
    options.first_row = first_row;
    return block.prepare(device, options, resources) != nullptr || checked;
  }

  const IndexParams params_;
};

}  // namespace

std::shared_ptr<const IndexKind> make_flat(const IndexParams& params) { return std::make_shared<FlatKind>(params); }

}  // namespace kith
