// The queries and rows of an exact search on a GPU: brought there in pieces, or read where they lie (a prepared base, a
// matrix in device memory), as a filter leaves them, looked at and made into operands. k-NN and range search go over
// them in the same way.
//
// A filter's list: the rows are read by their numbers, and everything after sees a base of the kept rows alone. A mask:
// the terms of the rows left out are beyond all others, so that products never choose them; what products leave to the
// direct engine goes by the list.
#pragma once

#include "cuda/device_buffer.hpp"
#include "cuda/row_upload.hpp"
#include "cuda/rows_ahead.hpp"
#include "exact/few_queries_cuda.hpp"
#include "exact/product_base_cuda.hpp"
#include "exact/search_backend.hpp"
#include "exact/search_workspace_cuda.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace kith {

// Rows whose keys are computed together, with their numbers.
struct DirectTile {
  DeviceRowsView rows;
  int64_t first_row = 0;
  const uint32_t* numbers = nullptr;  // null: first_row, first_row + 1, ...
  const float* centre = nullptr;      // as a piece has it
};

// What errors call the two sides.
struct RowNames {
  std::string_view query = "query";
  std::string_view base = "base";
};

class SearchRows {
 public:
  // Takes the workspace. What is referred to must outlive it.
  SearchRows(const SearchTask& task, const KnnCudaPlan& plan, const KeptRows* kept, const SearchWorkspace& layout,
             const Resources& resources, RowNames names = {});

  const SearchTask& task() const { return task_; }
  const KnnCudaPlan& plan() const { return plan_; }
  const SearchWorkspace& layout() const { return layout_; }
  const DeviceContext& context() const { return *context_; }
  std::shared_ptr<const DeviceContext> shared_context() const { return context_; }
  cudaStream_t stream() const { return context_->stream(); }
  template <typename T>
  T* at(const Slot<T>& slot) const {
    return slot.in(workspace_.data());
  }
  SearchStatus* status() const { return at(layout_.status); }
  void reset_status() const { context_->fill(status(), 0xFF, 1); }

  // A batch of queries; resets the status and looks at them, but for those of a search that has a page, which may do
  // without (look_at_queries() does it for them).
  DeviceRowsView load_queries(const MatrixView& queries, int64_t first_query);
  // Enqueues the check for non-finite queries and the computation of their norms, and copies queries to the device that
  // were to travel as launch arguments.
  void look_at_queries(DeviceRowsView& queries);
  // Queries that travel as launch arguments, in a search that has a page.
  const InlineQueries& inline_queries() const { return few_->with_launch(); }
  // Where the first row that is not finite is noted by who looks at rows before distances are computed; or null.
  const uint32_t* bad_row_before() const { return looks_at_rows() ? &status()->bad_row : nullptr; }
  // The page for queries and results that a search has whose plan takes_few() or takes_screen(); else null.
  PinnedPage* page() { return few_ ? &few_->page() : nullptr; }

  // Where products put the first row that is not finite; null where that does not matter.
  uint32_t* bad_row() const { return checks_base() ? &status()->bad_row : nullptr; }
  // Where the first row of a piece that is not finite is to be noted, by whoever computes its distances; null where the
  // rows are looked at before, or not at all.
  uint32_t* unchecked_rows() const { return checks_base() && leaves_checks() ? &status()->bad_row : nullptr; }

  // The rows of a run of the base, piece by piece; `with_operands` where there will be products, else make_ready()
  // makes a piece's.
  void for_each_piece(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter,
                      const std::function<void(const ProductBase&)>& use, bool with_operands = true);
  void make_ready(bool prepared, ProductBase& piece, bool parts_far_rows = true) const;
  // For whoever makes no operands, with which rows and queries are looked at: read_status() tells.
  void check_finite(const DeviceRowsView& queries, const ProductBase& piece) const;
  // The kept rows of a piece in tiles of at most row_tile.
  void for_each_tile(const ProductBase& piece, const std::function<void(const DirectTile&)>& use) const;

  // Waits, and refuses what is not finite, or below zero where that matters. `piece` is the last one, or none.
  SearchStatus read_status(const ProductBase* piece) const;
  // Refuses what the status says.
  void check_status(const SearchStatus& read, const ProductBase* piece) const;

 private:
  double* norms_at(const Slot<double>& slot) const { return task_.shape.metric == Metric::cosine ? at(slot) : nullptr; }
  bool products() const { return plan_.product.has_value(); }
  bool checks_base() const;
  bool leaves_checks() const;
  bool looks_at_rows() const { return checks_base() && !leaves_checks(); }
  // The numbers of `count` kept rows, from a place among all of them on.
  const uint32_t* bring_numbers(int64_t place, int64_t count) const;
  int64_t number_of(const ProductBase* piece, uint32_t row) const;

  // Kept rows first_place + first and those after it, or rows `first` and those after it, of a run of the base.
  struct Run {
    const MatrixView& base;
    int64_t first_row;
    int64_t first_place;
    int64_t rows;
  };
  int64_t piece_size(const Run& run, int64_t first) const;
  MatrixView rows_of(const Run& run, int64_t first) const;
  RowPicks picks_of(const Run& run, int64_t first) const;
  DeviceRowsView arrive(const Run& run, int64_t first, const uint32_t* list, ProgressMeter& meter);
  void take_prepared(const PreparedBase& ready, int64_t first, ProductBase& piece) const;
  // What rows of the base are still to be looked at for.
  RowFindings checks(bool finite) const;
  void inspect(DeviceRowsView& rows) const;

  const SearchTask& task_;
  const KnnCudaPlan& plan_;
  const KeptRows* kept_;
  const SearchWorkspace& layout_;
  const Resources resources_;
  const RowNames names_;
  std::shared_ptr<const DeviceContext> context_;
  DeviceBuffer workspace_;
  RowUpload upload_;
  std::unique_ptr<RowsAhead> ahead_;
  std::optional<FewQueries> few_;  // of a search that has a page
  int64_t first_query_ = 0;
};

}  // namespace kith
