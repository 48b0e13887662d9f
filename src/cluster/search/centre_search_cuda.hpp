// The nearest centre of every row on a GPU, exactly, as on the CPU (assign_cpu.hpp): labels and keys stay on the
// device.
//
// Products of all rows with all centres leave few candidates for each row (nearest_epilogue_cuda.hpp); their canonical
// keys decide (nearest_centre_cuda.hpp). Rows with more near centres than were kept are undecided and searched again:
// few of them directly; many by another product that marks all near centres, if there are not many centres, or by exact
// search (exact/search_backend.hpp). Few centres of few columns are compared with every row in one pass instead
// (few_centres_cuda.hpp), as are all centres if there is little work.
//
// Cost: 2 rows x centres x columns operations on the matrix units; memory as in CentreSearchLayout.
#pragma once

#include "cluster/data/data_survey.hpp"
#include "cluster/search/centre_search_plan.hpp"
#include "core/parallel_for.hpp"
#include "cuda/device_context.hpp"
#include "exact/search_backend.hpp"
#include "kernels/assign/nearest_centre_cuda.hpp"
#include "kernels/matrix/operands_cuda.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

// One call. All pointers are to device memory.
struct CentreSearchTask {
  DeviceRowsView rows;
  int64_t first = 0;           // the first row's place among the kept rows
  int64_t number = 0;          // and its number in messages
  bool operands_kept = false;  // these rows have come before, under the same numbers
  bool check_finite = false;   // where the operands are made: InvalidArgument names a row that is not finite
  int32_t* labels = nullptr;   // one for each row
  float* keys = nullptr;       // likewise; with moves, or where wanted
  bool wants_keys = true;
  const double* squared_moves = nullptr;  // of the centres, since labels and keys were those of these rows; or null
  const float* known = nullptr;           // as SettleTask has it: for products, others find all keys; or null
  int64_t probe = -1;                     // the row that plain_rows() asks; or -1
};

class CentreSearchCuda {
 public:
  // `memory` has the layout's bytes. Products are made in the sample's origin and scale, so that rows keep their
  // operands while the centres move. Work is enqueued on the context's stream.
  CentreSearchCuda(const CentreSearchShape& shape, const CentreSearchPlan& plan, DataSample sample, std::byte* memory,
                   std::shared_ptr<const DeviceContext> context, const Resources& resources);

  // f32, one after the other, in device memory, up to the shape's; they stay there, and as they are, until the next
  // call.
  void set_centres(const float* centres, int64_t count);

  void run(const CentreSearchTask& task, ProgressMeter& meter);
  // After a run with a probe: whether the rows seen need no scaling, provided that the centres need none.
  bool plain_rows() const { return plain_; }

 private:
  template <typename T>
  T* at(const Slot<T>& slot) const {
    return slot.in(memory_);
  }
  cudaStream_t stream() const { return context_->stream(); }
  // Products mark centres, and no row is searched for exactly.
  bool marks() const { return shape_.centres <= kMostMarkedCentres; }
  // Where centres have bounds of their own.
  OperandBounds* typical() const { return shape_.kind == KeyKind::inner_product ? nullptr : at(layout_.typical); }
  OperandTask operand_task(const DeviceRowsView& rows, std::byte* operands) const;
  void lower_terms(const QueryOperand* bounds, int64_t rows) const;
  int multiply(const SettleTask& task, const std::byte* operands) const;
  void settle_by_marks(const SettleTask& settle, const std::byte* operands) const;
  void compare_pairs(const CentreSearchTask& task);
  void search_exactly(const CentreSearchTask& task, int64_t count, const uint32_t* listed, ProgressMeter& meter);

  const CentreSearchShape shape_;
  const CentreSearchPlan plan_;
  const CentreSearchLayout layout_;
  std::byte* const memory_;
  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const Resources quiet_;  // exact search reports nothing of its own
  const int64_t chunks_;
  const float* centres_ = nullptr;
  int64_t centre_count_ = 0;
  bool plain_ = false;
  float largest_;
  const SearchTask search_;            // of unsettled rows
  std::unique_ptr<KnnBackend> exact_;  // does it; made when first needed
  std::vector<uint64_t> found_;
};

}  // namespace kith
