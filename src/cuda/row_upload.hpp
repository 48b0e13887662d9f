// Copies rows from any memory to packed rows on a device.
//
// Large matrices in pageable host memory go through pinned memory (pinned_stage.hpp).
#pragma once

#include <kith/host_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "cuda/device_context.hpp"
#include "cuda/pinned_stage.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace kith {

// The largest n from `least` to `most` with bytes_of(n) within `room`; `least` if none fits.
template <typename BytesOf>
int64_t most_rows(int64_t least, int64_t most, int64_t room, const BytesOf& bytes_of) {
  if (most <= least || bytes_of(most) <= room) return std::max(least, most);
  int64_t rows = least;
  for (int64_t too_many = most; too_many - rows > 1;) {
    const int64_t middle = rows + (too_many - rows) / 2;
    (bytes_of(middle) <= room ? rows : too_many) = middle;
  }
  return rows;
}

// How many rows, at most `most`, are copied to a device at a time, if n of them take bytes_of(n): as many as fit in
// most_bytes and in half of the available memory. At least one, which is the result if memory is only counted.
template <typename BytesOf>
int64_t rows_at_a_time(int64_t most, int64_t most_bytes, const BytesOf& bytes_of, const Resources& resources) {
  if (counts_only(resources)) return 1;
  return most_rows(1, most, std::min(most_bytes, resources.device_memory()->available() / 2), bytes_of);
}

// A selection of a matrix's rows: all, or those with numbers list[i] - first_listed.
struct RowPicks {
  const uint32_t* list = nullptr;
  int64_t first_listed = 0;
  int64_t count = 0;
};

class RowUpload {
 public:
  // Uses kPinnedBytes of pinned memory, or none; then picked rows need gather_bytes of pageable memory, at least one
  // row. Throws OutOfMemory if the limit has no room.
  RowUpload(bool pinned, const Resources& resources, int64_t gather_bytes = 0);
  RowUpload(const RowUpload&) = delete;
  RowUpload& operator=(const RowUpload&) = delete;

  // Enqueues; `rows` have been read when it returns, unless they are on the device or are pinned.
  void copy(const MatrixView& rows, std::byte* target, cudaStream_t stream, ProgressMeter& meter);
  // The rows picked of a matrix in host memory.
  void copy(const MatrixView& rows, const RowPicks& picks, std::byte* target, cudaStream_t stream,
            ProgressMeter& meter);

 private:
  void copy_staged(const MatrixView& rows, const RowPicks& picks, std::byte* target, cudaStream_t stream,
                   ProgressMeter& meter);
  void fill(const MatrixView& rows, const RowPicks& picks, std::byte* target, ProgressMeter& meter) const;

  const Resources resources_;
  HostBuffer gathered_;
  std::optional<PinnedStage> stage_;
  int turn_ = 0;                    // the half to be filled next
};

}  // namespace kith
