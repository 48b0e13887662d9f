#include "interop/faiss_flat.hpp"

#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "interop/faiss_additive.hpp"
#include "interop/faiss_codes.hpp"
#include "interop/faiss_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace kith {
namespace {

// A single list without a centre, in the order of rows.
void set_single_list(FaissSource& source, IndexParts& parts, CodecParts codec, HostArray<uint8_t> codes) {
  ListParts& lists = parts.lists.emplace();
  HostArray<int64_t> offsets(2, "the list", source.resources());
  HostArray<uint32_t> rows(parts.rows, "the rows of the list", source.resources());
  offsets[0] = 0;
  offsets[1] = parts.rows;
  std::iota(rows.begin(), rows.end(), 0U);
  lists.codec = std::move(codec);
  lists.offsets = std::move(offsets);
  lists.rows = std::move(rows);
  lists.codes = std::move(codes);
  parts.factory = code_name(lists.codec);
}

}  // namespace

IndexParts read_faiss_flat(FaissSource& source) {
  const FaissHeader header = read_faiss_header(source);
  IndexParts parts = begun_parts(source, header);
  parts.flat.emplace_back(read_faiss_rows(source, header));
  parts.factory = "Flat";
  return parts;
}

IndexParts read_faiss_product(FaissSource& source) {
  const FaissHeader header = read_faiss_header(source);
  IndexParts parts = begun_parts(source, header);
  CodecParts codec = read_product_quantizer(source, header.cols);
  const int64_t bytes = codec.format.bytes();
  HostArray<uint8_t> codes = source.array<uint8_t>(saturating_multiply(header.rows, bytes), "codes");
  source.skip(sizeof(int32_t), "how the index is searched");
  if (source.flag("whether codes are of signs")) source.unsupported("codes of signs, which Kith lacks");
  source.skip(sizeof(int32_t), "how the index is searched");
  set_single_list(source, parts, std::move(codec), std::move(codes));
  return parts;
}

FastScanLayout fast_scan_layout(FaissSource& source, int64_t parts, int32_t block_rows) {
  constexpr int32_t kGroup = 32;
  constexpr int32_t kMostBlockRows = 1 << 16;
  if (block_rows < kGroup || block_rows > kMostBlockRows || block_rows % kGroup != 0) {
    source.corrupt(fmt::format("blocks of {} vectors", block_rows));
  }
  return {parts, block_rows};
}

void require_fast_bits(FaissSource& source, const CodeFormat& format) {
  if (format.bits != 4) source.corrupt(fmt::format("fast-scan codes of {} bits", format.bits));
}

IndexParts read_faiss_fast_product(FaissSource& source) {
  const FaissHeader header = read_faiss_header(source);
  IndexParts parts = begun_parts(source, header);
  CodecParts codec = read_product_quantizer(source, header.cols);
  require_fast_bits(source, codec.format);
  source.skip(sizeof(int32_t), "how the index is searched");
  const auto block_rows = source.number<int32_t>("the vectors of a block");
  const FastScanLayout layout = fast_scan_layout(source, codec.format.parts, block_rows);
  source.skip(sizeof(int32_t), "how the index is searched");
  const auto padded = static_cast<uint64_t>(round_up(header.rows, block_rows));
  source.bounded(padded, padded, "the vectors with padding");
  source.skip(sizeof(uint64_t), "the parts with padding");
  const int64_t bytes = divide_up(header.rows, block_rows) * layout.block_bytes();
  const HostArray<uint8_t> blocks = source.array<uint8_t>(bytes, "codes");
  HostArray<uint8_t> codes(header.rows * codec.format.bytes(), "the codes", source.resources());
  unpack_fast_scan(layout, blocks.data(), header.rows, codes.data());
  set_single_list(source, parts, std::move(codec), std::move(codes));
  return parts;
}

void undo_offset(const HostArray<uint8_t>& codes) {
  for (uint8_t& code : codes) code ^= 0x80;
}

IndexParts read_faiss_scalar(FaissSource& source) {
  const FaissHeader header = read_faiss_header(source);
  IndexParts parts = begun_parts(source, header);
  FaissScalarCodec scalar = read_scalar_quantizer(source, header.cols);
  const CodeFormat& format = scalar.codec.format;
  HostArray<uint8_t> codes = source.array<uint8_t>(saturating_multiply(header.rows, format.bytes()), "codes");
  if (scalar.offset_bytes) undo_offset(codes);
  if (format.stores_values() && size_of(format.dtype) == 1) {  // bytes as they are: flat rows
    MatrixBuffer rows(format.dtype, header.rows, header.cols, "the vectors", source.resources());
    std::copy(codes.begin(), codes.end(), static_cast<uint8_t*>(rows.mutable_view().data()));
    parts.dtype = format.dtype;
    parts.flat.emplace_back(std::move(rows));
    parts.factory = "Flat";
    return parts;
  }
  set_single_list(source, parts, std::move(scalar.codec), std::move(codes));
  return parts;
}

IndexParts read_faiss_additive(FaissSource& source, const CodeEncoder* code) {
  const FaissHeader header = read_faiss_header(source);
  IndexParts parts = begun_parts(source, header);
  FaissAdditive additive = read_additive_quantizer(source, header.cols, code);
  const auto bytes = static_cast<uint64_t>(additive.code_bytes);
  source.bounded(bytes, bytes, "the bytes of a code");
  const HostArray<uint8_t> codes =
      source.array<uint8_t>(saturating_multiply(header.rows, additive.code_bytes), "codes");
  HostArray<uint8_t> kept = known_codes(additive, codes, header.rows, source.resources());
  set_single_list(source, parts, std::move(additive.codec), std::move(kept));
  return parts;
}

}  // namespace kith
