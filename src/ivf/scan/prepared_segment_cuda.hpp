// A segment on a GPU, prepared for searches: its lists with the model's centres and codec, and data computed once for
// them (prepare_lists_cuda.hpp). Kept with the segment, so that all versions of an index share it. The terms that
// lookup tables need besides the lists (scan_cut.hpp) are made by the first search that uses them, if there is room. If
// most vectors have very many equal predecessors, the others are stored again (distinct_lists_cuda.hpp), for searches
// that can never return the former.
#pragma once

#include "cuda/device_array.hpp"
#include "ivf/model/gpu_model_cuda.hpp"
#include "ivf/scan/prepare_lists_cuda.hpp"
#include "ivf/segment/segment_copies.hpp"

#include <memory>
#include <mutex>

namespace kith {

// The lists of a model on a GPU: their centres and codec, without vectors.
DeviceListsView unprepared_lists(const IvfModel& model, const GpuModelCuda& there);

class PreparedSegmentCuda final : public PreparedSegment {
 public:
  // Waits until it is done.
  PreparedSegmentCuda(Segment segment, const IvfModel& model, std::shared_ptr<const GpuModelCuda> there,
                      const Resources& resources);

  int64_t bytes() const override;
  const DeviceListsView& lists() const { return view_; }
  const PreparedLists& prepared() const { return prepared_; }
  const uint16_t* repeats() const { return repeats_.data(); }  // null: none
  int64_t longest() const { return shape_.longest; }           // list

  // The lists that a search for k neighbours scans: all, or those without vectors that it never finds. A filter may
  // keep the later ones of equal vectors alone.
  struct Scanned {
    DeviceListsView lists;
    PreparedLists prepared;
    const uint16_t* repeats = nullptr;
    int64_t longest = 0;  // list; 0: unknown
  };
  Scanned scanned(int64_t k, bool filtered) const;

  // The kind of terms that lookups of product codes use: those already kept, else those that fit in memory. Pure.
  ScanTerm scan_term(const Resources& resources) const;
  // The terms, computed if they are not kept yet; returns when complete. Codes are of a kind that suits_tables()
  // accepts.
  ScanTerms scan_terms(const Resources& resources) const;

 private:
  struct KeptTerms {
    DeviceBuffer memory;
    ScanTerms terms;
  };
  std::shared_ptr<const KeptTerms> kept_terms() const;

  struct Distinct {
    DeviceBuffer lists_memory;
    DeviceBuffer memory;
    DeviceListsView view;
    PreparedLists prepared;
    const uint16_t* repeats = nullptr;
    SegmentShape shape{};
  };
  // Null if they are most vectors, or without room. `taken`: bytes already used of that room. Returns when complete.
  std::unique_ptr<const Distinct> make_distinct(int64_t taken, const std::shared_ptr<const DeviceContext>& memory,
                                                const DeviceContext& work, const Resources& resources) const;

  const Segment segment_;
  const std::shared_ptr<const GpuModelCuda> model_;
  DeviceListsView view_;
  PreparedLists prepared_;
  DeviceBuffer memory_;
  DeviceArray<uint16_t> repeats_;
  SegmentShape shape_{};
  DeviceArray<float> row_terms_;  // if needed, and there is room
  std::unique_ptr<const Distinct> distinct_;
  mutable std::mutex mutex_;  // held to look up or store, never while computing
  mutable std::shared_ptr<const KeptTerms> terms_;
};

// The one kept with the segment for that device, built by the first call.
std::shared_ptr<const PreparedSegmentCuda> prepared_segment(int device, const SegmentCopies& segment,
                                                            const IvfModel& model,
                                                            const std::shared_ptr<const GpuModelCuda>& there,
                                                            const Resources& resources);

}  // namespace kith
