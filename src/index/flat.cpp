// "Flat": every vector as it is, searched exactly.
//
// The rows lie in blocks. An add makes a block and merges it with the small ones before it, so that n single adds cost
// n log n copies and leave log n blocks. Blocks are immutable and shared between versions. All lie on the host, or all
// in the memory of one device: where the first rows did. Rows on a device are checked when they are prepared.
#include "core/cpu_target.hpp"
#include "core/dispatch.hpp"
#include "cuda/device_memory.hpp"
#include "exact/exact_search.hpp"
#include "exact/knn_checks.hpp"
#include "exact/knn_output.hpp"
#include "exact/range_loop.hpp"
#include "index/flat_block.hpp"
#include "index/index_type.hpp"
#include "kernels/distance/canonical.hpp"
#include "rows/finite_check.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <limits>
#include <string>

namespace kith {
namespace {

struct FlatVersion {
  std::vector<std::shared_ptr<const FlatBlock>> blocks;
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::f32;
  MemorySpace space;
  bool checked = true;  // whether all rows have been looked at
};

std::string place(const MemorySpace& space) {
  return space.host_readable() ? "host memory" : fmt::format("the memory of cuda:{}", space.device);
}

// The device that rows are prepared for when they are added: where they lie. Where it could be a GPU `automatic` waits
// for the first search.
Device device_at_add(Device asked, const MemorySpace& space) {
  if (!space.host_readable()) return Device::cuda(space.device);
  return asked.kind == DeviceKind::automatic && !built_with_cuda() ? Device::cpu() : asked;
}

PrepareOptions prepare_options(const IndexParams& params, DType queries) { return {params.metric, queries, false, 0}; }

// That rows in a device's memory can be added to an index on the device that was asked for.
void check_device_rows(const MatrixView& rows, Device asked) {
  if (rows.space().host_readable()) return;
  const Device there = Device::cuda(rows.space().device);
  if (asked.kind != DeviceKind::automatic && asked != there) {
    throw InvalidArgument(
        fmt::format("the added vectors lie in {} and the index searches on {}; add them from there, or from the host",
                    place(rows.space()), name_of(asked)));
  }
  if (!built_with_cuda()) throw_no_cuda();
}

// The rows of a version; before the first add none, of the kind of the queries.
BlockSource rows_of(const FlatVersion& version, const MatrixView& queries) {
  std::vector<MatrixView> blocks;
  for (const auto& block : version.blocks) blocks.push_back(block->view());
  if (blocks.empty()) blocks.push_back(queries.slice(0, 0));
  return BlockSource(std::move(blocks));
}

// The layouts that the blocks of a version have or get.
class FlatLayouts final : public BaseLayouts {
 public:
  FlatLayouts(const FlatVersion& version, const IndexParams& params)
      : version_(version), params_(params), ready_(version.blocks.size()) {}

  bool can_prepare() const override { return params_.prepare; }

  bool prepare(const SearchTask& task, Device device, const Resources& resources) override {
    // A search of few queries uses what there is on the CPU, but would not make up for packing.
    const bool few = device == Device::cpu() && cpu_engine(task, cpu_extensions()) == CpuEngine::direct;
    const bool make = params_.prepare && !few;
    bool all = true;
    for (size_t i = 0; i < ready_.size(); ++i) {
      const FlatBlock& block = *version_.blocks[i];
      const DType queries = task.shape.query_dtype;
      ready_[i] = make ? block.prepare(device, prepare_options(params_, queries), resources)
                       : block.prepared(device, queries);
      all &= ready_[i] != nullptr;
    }
    return all;
  }

  const PreparedBase* of(int64_t row) const override {
    size_t block = 0;
    for (; row >= version_.blocks[block]->view().rows(); ++block) row -= version_.blocks[block]->view().rows();
    return ready_[block].get();
  }

 private:
  const FlatVersion& version_;
  const IndexParams& params_;
  std::vector<std::shared_ptr<PreparedBase>> ready_;
};

class Flat final : public IndexType {
 public:
  explicit Flat(const IndexParams& params) : params_(params), version_(std::make_shared<FlatVersion>()) {}

  // Without a lock, since sinks that are called on the way may use the index themselves: where another add was faster,
  // this one begins again from its version.
  void add(const MatrixView& rows, Ownership ownership, const Resources& resources) override {
    std::shared_ptr<const FlatVersion> current = version();
    check_device_rows(rows, resources.device());
    check_rows(*current, rows);
    if (rows.rows() == 0) return;
    if (rows.space().host_readable()) {
      if (params_.check_finite) refuse_not_finite("added", rows, {0}, resources);
      if (params_.metric == Metric::chi_square) refuse_negative("added", rows, {0}, resources);
    } else if (ownership == Ownership::borrow) {
      wait_for_stream(rows.space().device, resources);  // searches read them on streams of their own
    }
    while (!publish(current, extend(*current, rows, ownership, resources))) {
      current = version();
      check_rows(*current, rows);
    }
  }

  void search(const MatrixView& queries, const NeighborsView& out, const RowFilter& filter,
              const Resources& resources) const override {
    const std::shared_ptr<const FlatVersion> current = version();
    BlockSource base = rows_of(*current, queries);
    SearchShape shape = check_knn(RowsInfo(queries), base.info(), {out.k, params_.metric});
    shape.base_checked = current->checked;
    check_output(out, queries.rows(), out.k);
    ViewSource query_rows(queries);
    FlatLayouts layouts(*current, params_);
    ArrayOutput output(out);
    search_knn(shape, {.k = out.k, .check_finite = params_.check_finite, .result_space = out.space},
               {query_rows, {base, &layouts}, filter}, output, resources);
  }

  RangeNeighbors range_search(const MatrixView& queries, float radius, const RowFilter& filter,
                              const Resources& resources) const override {
    const std::shared_ptr<const FlatVersion> current = version();
    const RangeParams params{radius, params_.metric, params_.check_finite, filter};
    BlockSource base = rows_of(*current, queries);
    SearchShape shape = check_range(RowsInfo(queries), base.info(), params);
    shape.base_checked = current->checked;
    ViewSource query_rows(queries);
    FlatLayouts layouts(*current, params_);
    return search_range(shape, params, {query_rows, {base, &layouts}, filter}, resources);
  }

  int64_t size() const override { return version()->rows; }
  int64_t dimension() const override { return version()->cols; }

 private:
  std::shared_ptr<const FlatVersion> version() const {
    const std::lock_guard lock(version_mutex_);
    return version_;
  }
  // False, with nothing changed, where `current` is no longer the version.
  bool publish(const std::shared_ptr<const FlatVersion>& current, std::shared_ptr<const FlatVersion> next) {
    const std::lock_guard lock(version_mutex_);
    if (version_ != current) return false;
    version_ = std::move(next);
    return true;
  }

  std::shared_ptr<const FlatVersion> extend(const FlatVersion& current, const MatrixView& rows, Ownership ownership,
                                            const Resources& resources) const {
    auto next = std::make_shared<FlatVersion>(current);
    next->cols = rows.cols();
    next->dtype = rows.dtype();
    next->space = rows.space();
    next->rows += rows.rows();
    auto block =
        ownership == Ownership::borrow ? std::make_shared<FlatBlock>(rows) : merge(rows, next.get(), resources);
    const Device device = device_at_add(resources.device(), rows.space());
    const bool looked_at = params_.check_finite || params_.metric == Metric::chi_square;
    const bool unchecked = looked_at && !rows.space().host_readable();
    bool ready = false;
    if (params_.prepare && device.kind != DeviceKind::automatic) {
      PrepareOptions options = prepare_options(params_, rows.dtype());
      options.check_finite = unchecked && params_.check_finite;
      options.first_row = next->rows - block->view().rows();
      ready = block->prepare(device, options, resources) != nullptr;
    }
    if (unchecked && !ready) next->checked = false;
    next->blocks.push_back(std::move(block));
    return next;
  }

  void check_rows(const FlatVersion& current, const MatrixView& rows) const {
    check_rows_dtype("added vectors", rows.dtype(), params_.metric);
    check_knn({0, rows.cols(), rows.dtype()}, {rows.rows(), rows.cols(), rows.dtype()}, {1, params_.metric});
    if (current.rows == 0) return;
    if (rows.cols() != current.cols || rows.dtype() != current.dtype) {
      throw InvalidArgument(fmt::format("the index holds {} vectors of {} columns; {} of {} columns were added",
                                        name_of(current.dtype), current.cols, name_of(rows.dtype()), rows.cols()));
    }
    if (rows.space().host_readable() != current.space.host_readable() ||
        (!rows.space().host_readable() && rows.space() != current.space)) {
      throw InvalidArgument(fmt::format("the index holds vectors in {}; those added lie in {}: an index keeps to one",
                                        place(current.space), place(rows.space())));
    }
    if (current.rows > std::numeric_limits<int32_t>::max() - rows.rows()) {
      throw Unsupported(fmt::format("an index of {} + {} rows; one index takes up to {}", current.rows, rows.rows(),
                                    std::numeric_limits<int32_t>::max()));
    }
  }

  // A block of the new rows and of the owned blocks before them that are at most twice as large; those leave the
  // version.
  static std::shared_ptr<FlatBlock> merge(const MatrixView& rows, FlatVersion* version, const Resources& resources) {
    int64_t total = rows.rows();
    size_t kept = version->blocks.size();
    while (kept > 0 && version->blocks[kept - 1]->owns() && version->blocks[kept - 1]->view().rows() <= 2 * total) {
      total += version->blocks[--kept]->view().rows();
    }
    std::vector<MatrixView> parts;
    for (size_t b = kept; b < version->blocks.size(); ++b) parts.push_back(version->blocks[b]->view());
    parts.push_back(rows);
    std::shared_ptr<FlatBlock> merged = FlatBlock::join(parts, resources);
    version->blocks.resize(kept);
    return merged;
  }

  const IndexParams params_;
  mutable std::mutex version_mutex_;
  std::shared_ptr<const FlatVersion> version_;
};

}  // namespace

std::unique_ptr<IndexType> make_flat(const IndexParams& params) { return std::make_unique<Flat>(params); }

}  // namespace kith
