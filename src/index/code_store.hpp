// Codes of an index's rows in the order of rows, in immutable blocks that versions share; merged like those of a Flat
// index, so that n single adds cost n log n copies. A GPU's copy of a block is made by the first search there and shared
// by all versions too.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "index/refine_gpu.hpp"
#include "ivf/model/device_cache.hpp"
#include "quantize/codec.hpp"
#include "rows/kept_rows.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kith {

class CodeStore {
 public:
  explicit CodeStore(std::shared_ptr<const Codec> codec)
      : codec_(std::move(codec)), codec_there_(std::make_shared<DeviceCache<CodecOnDevice>>()) {}
  // Takes codes of so many rows.
  CodeStore(std::shared_ptr<const Codec> codec, HostArray<uint8_t> codes);

  const Codec& codec() const { return *codec_; }
  int64_t rows() const { return rows_; }
  int64_t bytes() const { return rows_ * codec_->format().bytes(); }
  int64_t device_bytes() const;  // of copies on GPUs

  // With rows of any dtype, in host memory, behind the others.
  CodeStore added(const MatrixView& rows, const Resources& resources) const;
  int64_t added_bytes(const RowsInfo& rows, const Resources& resources) const;  // what that takes
  // With the codes of another, of the same codec, behind the others.
  CodeStore joined(const CodeStore& other, const Resources& resources) const;
  // Less the rows that are not kept.
  CodeStore kept(const KeptRows& kept, const Resources& resources) const;

  const uint8_t* code(int64_t row) const;
  // Of all rows, one after the other.
  HostArray<uint8_t> copy(const Resources& resources) const;

  // What that GPU lacks comes to it. OutOfMemory where there is no room.
  GpuCodes on_gpu(int device, const Resources& resources) const;

 private:
  struct Block {
    HostArray<uint8_t> codes;
    int64_t first_row = 0;
    DeviceCache<CodesOnDevice> there;
  };

  // With `count` more codes, which write(to) puts behind the others.
  template <typename Write>
  CodeStore grown(int64_t count, const Resources& resources, const Write& write) const;
  void copy_to(uint8_t* to) const;

  std::shared_ptr<const Codec> codec_;
  std::shared_ptr<const DeviceCache<CodecOnDevice>> codec_there_;
  std::vector<std::shared_ptr<const Block>> blocks_;
  int64_t rows_ = 0;
};

}  // namespace kith
