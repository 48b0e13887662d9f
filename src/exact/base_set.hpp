// The rows that a search looks through, wherever they lie: in memory, in the blocks of an index, or in a file.
#pragma once

#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include "exact/knn_backend.hpp"
#include "exact/knn_plan.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace kith {

class BaseSet {
 public:
  // A run of rows, the first of which is row number first_row. `ready` is its layout for the plan's device, or none.
  using Step = std::function<void(const MatrixView& rows, int64_t first_row, const PreparedBase* ready)>;

  virtual ~BaseSet() = default;

  // Whether rows of this set can have layouts for a device; prepare() makes, or finds, them, and returns false where
  // some rows have none.
  virtual bool can_prepare() const { return false; }
  virtual bool prepare(const KnnProblem&, Device, const Resources&) { return false; }
  // Calls step for all rows in ascending order, at most `chunk` at a time where they are not prepared.
  virtual void walk(int64_t chunk, const Resources& resources, const Step& step) = 0;
  // Copies the listed rows, which ascend.
  virtual void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out,
                      const Resources& resources) = 0;
};

// Rows in host memory, in one or more blocks that are numbered through.
class BlocksBase : public BaseSet {
 public:
  struct Block {
    MatrixView rows;
    std::shared_ptr<const PreparedBase> ready;
  };

  explicit BlocksBase(const MatrixView& rows) : blocks_{{rows, nullptr}} {}
  explicit BlocksBase(std::vector<Block> blocks) : blocks_(std::move(blocks)) {}

  void walk(int64_t chunk, const Resources& resources, const Step& step) override;
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) override;

 protected:
  std::vector<Block> blocks_;
};

// Rows in a file, read into memory of its own.
class FileBase final : public BaseSet {
 public:
  explicit FileBase(const VectorFile& file) : file_(file) {}
  void walk(int64_t chunk, const Resources& resources, const Step& step) override;
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) override;

 private:
  const VectorFile& file_;
};

// Walks over the listed rows, copied together piece by piece and numbered by their place in the list.
void walk_gathered(BaseSet& base, const uint32_t* list, const KnnProblem& problem, int64_t chunk,
                   const Resources& resources, const BaseSet::Step& step);

}  // namespace kith
