// What a backend does for range search; the loop around it (range_loop) is the same for all.
//
//   begin(queries)                 a batch of queries; nothing is found for them
//   scan(base, first_row, ready)   rows first_row, first_row + 1, ... of the base, in ascending order of calls
//   finish()                       what was found, each query's rows sorted; the store is empty
//
// Where the memory limit has no room for what is found, it is only counted from then on.
#pragma once

#include <kith/range_search.hpp>

#include "exact/exact_search.hpp"
#include "kernels/select/range_hits.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// Where results that stay on a device go: offsets of all queries, and room for what was counted.
struct RangeOnDevice {
  int64_t* offsets = nullptr;
  int64_t* ids = nullptr;
  float* distances = nullptr;
};

class RangeBackend {
 public:
  virtual ~RangeBackend() = default;
  virtual void begin(const MatrixView& queries, int64_t first_query) = 0;
  virtual void scan(const MatrixView& base, int64_t first_row, const PreparedBase* ready, ProgressMeter& meter) = 0;
  virtual CollectedHits finish(ProgressMeter& meter) = 0;

  // Instead of finish(): fills the offsets of the batch's queries and calls use(query, its neighbours, sorted, how
  // many) for each that has some, on several threads at once. False where the backend does not, or has no memory to.
  virtual bool hand_out(int64_t*, const SortedUse&, ProgressMeter&) { return false; }

  // The same into a device's memory, where that was wished for: all queries' at once. False where there is no memory to
  // put them together. The device may begin to while a caller's memory is made for them.
  virtual void begin_finish_on_device() {}
  virtual bool finish_on_device(const RangeOnDevice& out);

  // Whether some rows were only counted.
  virtual bool overflowed() const = 0;
  // How many came since the store was emptied.
  virtual int64_t counted() const = 0;
  virtual void clear() = 0;
  // Counts from now on.
  virtual void only_count() = 0;
};

// Rows with keys up to `most` are in range. They are kept in memory of `results`, which the plan does not count.
std::unique_ptr<RangeBackend> make_range_cpu(const SettledSearch& search, float most, const Resources& results);
std::unique_ptr<RangeBackend> make_range_cuda(const SettledSearch& search, float most, const Resources& results);

// A result from the host to a device's memory; waits.
void write_range_cuda(const RangeView& found, const RangeOnDevice& out, int device, const Resources& resources);

}  // namespace kith
