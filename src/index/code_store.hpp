// Codes of an index's rows in the order of rows, in segments that versions share (rows/segments.hpp).
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "core/host_array.hpp"
#include "core/placed.hpp"
#include "index/refine_gpu.hpp"
#include "quantize/codec.hpp"
#include "rows/kept_rows.hpp"
#include "rows/segments.hpp"

#include <cstdint>
#include <memory>
#include <utility>

namespace kith {

class CodeStore {
 public:
  explicit CodeStore(std::shared_ptr<const Codec> codec)
      : codec_(std::move(codec)), codec_there_(std::make_shared<Placed<CodecOnDevice>>()) {}
  // Takes codes of so many rows.
  CodeStore(std::shared_ptr<const Codec> codec, HostArray<uint8_t> codes);

  const Codec& codec() const { return *codec_; }
  int64_t rows() const { return codes_.rows(); }
  int64_t bytes() const { return rows() * codec_->format().bytes(); }
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
  using Codes = PlacedSegment<RowCodes>;

  // With `count` more codes, which write(to) puts behind the others.
  template <typename Write>
  CodeStore grown(int64_t count, const Resources& resources, const Write& write) const;
  uint8_t* copy_from(size_t segment, uint8_t* to) const;  // of all from that one on; returns their end

  std::shared_ptr<const Codec> codec_;
  std::shared_ptr<const Placed<CodecOnDevice>> codec_there_;
  Segments<Codes> codes_;
};

}  // namespace kith
