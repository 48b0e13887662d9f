// Re-ranks candidates (refine.hpp) in the memory of a GPU: for indexes that are searched there, whose vectors
// find room beside the lists. The first search leaves its candidates on the device, and only what was asked for leaves
// it. The same bytes as on the host.
//
// No CUDA types; without CUDA every function but suits_gpu_refine() is Unsupported. Memory on the device: 12 bytes a
// candidate of the queries that are searched together, and these queries as f32.
#pragma once

#include <kith/device.hpp>
#include <kith/memory_space.hpp>
#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "index/refine.hpp"
#include "quantize/codec.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kith {

// A codec's tables on a GPU.
class CodecOnDevice {
 public:
  virtual ~CodecOnDevice() = default;
  virtual int64_t bytes() const = 0;
};
std::shared_ptr<const CodecOnDevice> codec_on_gpu(int device, const Codec& codec, const Resources& resources);

// Codes of neighbouring rows, on the host or on a GPU.
class RowCodes {
 public:
  RowCodes(HostArray<uint8_t> codes, int64_t rows) : rows_(rows), bytes_(codes.bytes()), data_(codes.data()) {
    keeper_ = std::make_shared<const HostArray<uint8_t>>(std::move(codes));
  }
  // In memory that `keeper` holds: of a GPU, or of a mapped file.
  RowCodes(const uint8_t* data, int64_t rows, int64_t bytes, const MemorySpace& space,
           std::shared_ptr<const void> keeper)
      : rows_(rows), bytes_(bytes), data_(data), space_(space), keeper_(std::move(keeper)) {}

  int64_t size() const { return rows_; }
  MemorySpace space() const { return space_; }
  int64_t bytes() const { return bytes_; }
  const uint8_t* data() const { return data_; }

  // Copies codes on the host to a GPU.
  std::shared_ptr<const RowCodes> copied_to(Device device, const Resources& resources) const;

 private:
  int64_t rows_;
  int64_t bytes_;
  const uint8_t* data_;
  MemorySpace space_;
  std::shared_ptr<const void> keeper_;
};

// All codes of an index there, in the order of rows.
struct GpuCodes {
  struct Block {
    std::shared_ptr<const RowCodes> codes;
    int64_t first_row = 0;
  };

  int device = 0;
  CodeFormat format;
  std::shared_ptr<const CodecOnDevice> codec;
  std::vector<Block> blocks;
};

// Whether such candidates are compared on a GPU: a block sorts a query's in shared memory.
bool suits_gpu_refine(const CodeFormat& format, Metric metric, int64_t candidates);

// As search_and_refine(). Queries of any dtype and `out` are on the host or on the codes' device. The first search is
// given f32 queries and room for candidates on that device.
void search_and_refine_on_gpu(const RefineTask& task, const GpuCodes& codes, const MatrixView& queries,
                              const NeighborsView& out, const Resources& resources);

// Selects from candidates, rows padded with -1, the first out.k by (distance, row). All on the codes' device, queries
// f32. Returns when it is done.
void refine_on_gpu(const GpuCodes& codes, Metric metric, const MatrixView& queries, const NeighborsView& candidates,
                   const NeighborsView& out, const Resources& resources);

}  // namespace kith
