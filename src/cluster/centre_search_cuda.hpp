// The nearest centre of every row on a GPU, exactly, as nearest_centre.hpp has it.
//
// Products of all rows with all centres leave few candidates for each row (nearest_epilogue_cuda.hpp); their canonical
// keys decide (nearest_centre_cuda.hpp). Rows with more centres about as near than were kept are searched for by
// themselves: few of them directly, many by exact search (exact/knn_backend.hpp). All memory is k-means' workspace.
#pragma once

#include "cluster/data_sample.hpp"
#include "cluster/kmeans_workspace_cuda.hpp"
#include "cluster/nearest_centre_cuda.hpp"
#include "core/parallel_for.hpp"
#include "cuda/device_context.hpp"
#include "exact/knn_backend.hpp"
#include "kernels/matrix/operands_cuda.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class CentreSearchCuda {
 public:
  // What is referred to must outlive this. Products are made in the sample's origin and scale, so that rows keep their
  // operands while the centres move.
  CentreSearchCuda(const KMeansProblem& problem, const KMeansPlan& plan, const KMeansWorkspace& layout,
                   std::byte* workspace, std::shared_ptr<const DeviceContext> context, DataSample sample,
                   const Resources& resources);

  // The centres in the workspace have changed.
  void take_centres() const;

  // Fills the workspace's labels of these rows, from `first` on, and where wanted their keys. With guesses labels and
  // keys are those of before the centres' last move.
  struct Wanted {
    bool guesses = false;
    bool keys = true;
  };
  void assign(const DeviceRowsView& rows, int64_t first, const Wanted& wanted, ProgressMeter& meter);

  // The same rows come in the next pass.
  void keep_operands() { operands_kept_ = plan_.cuda.operands_stay; }

 private:
  template <typename T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(workspace_ + offset);
  }
  cudaStream_t stream() const { return context_->stream(); }
  OperandTask operand_task(const DeviceRowsView& rows, std::byte* operands) const;
  int multiply(const DeviceRowsView& rows, int64_t first, bool guesses, const std::byte* operands,
               const QueryFacts* facts) const;
  void search_rest(const DeviceRowsView& rows, int64_t first, int64_t count, const uint32_t* listed,
                   ProgressMeter& meter);

  const KMeansProblem& problem_;
  const KMeansPlan& plan_;
  const KMeansWorkspace& layout_;
  std::byte* workspace_;
  std::shared_ptr<const DeviceContext> context_;
  const Resources resources_;
  const Resources quiet_;  // the search for what is left reports nothing of its own
  const KeyKind kind_;
  const int64_t chunks_;
  float largest_;
  bool operands_kept_ = false;
  const SearchTask rest_search_;
  std::unique_ptr<KnnBackend> rest_;
  std::vector<uint64_t> found_;
};

}  // namespace kith
