#include "quantize/additive/encode_packed.hpp"

#include "core/host_array.hpp"
#include "cuda/resolve_device.hpp"
#include "quantize/additive/additive_encoding_cuda.hpp"
#include "quantize/additive/packed_codes.hpp"
#include "quantize/unused_bits.hpp"

#include <fmt/format.h>

namespace kith {
namespace {

Device resolve_encoding_device(const Codebooks& books, const LocalSearchPlan& search, const MatrixView& rows,
                               MemorySpace codes, const Resources& resources) {
  DeviceRequest request;
  request.job = "local search";
  request.spaces = {rows.space(), codes};
  request.work.bytes = static_cast<double>(rows.rows() * rows.cols() * size_of(rows.dtype()));
  request.work.flops = 2.0 * static_cast<double>(rows.rows() * rows.cols()) *
                       static_cast<double>(books.all_words()) * static_cast<double>(search.rounds * search.sweeps + 1);
  request.work.gpu_flops = 2e13;
  request.fits = [](Device) { return true; };
  request.description = [&] { return fmt::format("codes of {} x {} vectors", rows.rows(), rows.cols()); };
  return resolve_device(request, resources);
}

// Through codes of a byte for each book, in host memory.
template <typename Find>
void encode_through(const Codebooks& books, const AdditiveEncoding& encoding, const MutableMatrixView& codes,
                    const Resources& resources, const Find& find) {
  const HostArray<uint8_t> whole(codes.rows() * books.books, "codes", resources);
  if (encoding.start == CodeStart::given) {
    CodeFormat format;
    format.kind = CodeKind::additive;
    format.parts = books.books;
    format.bits = books.bits;
    refuse_unused_bits(codes, format, resources);
    unpack_codes(codes, books, whole.data());
  }
  find(whole.data());
  pack_codes(whole.data(), books, codes);
}

void encode_on_gpu(const Codebooks& books, const AdditiveEncoding& encoding, const MatrixView& rows,
                   const MutableMatrixView& codes, int device, const Resources& resources) {
  const auto find = [&](uint8_t* whole) {
    encode_additive_cuda(books, encoding, rows, whole, nullptr, device, resources);
  };
  if (books.bits == 8 && codes.row_stride() == books.books) return find(static_cast<uint8_t*>(codes.data()));
  if (codes.space().host_readable()) return encode_through(books, encoding, codes, resources, find);
  const HostArray<uint8_t> packed(codes.rows() * codes.cols(), "codes", resources);
  const MutableMatrixView here(packed.data(), codes.rows(), codes.cols());
  if (encoding.start == CodeStart::given) copy_codes_cuda(codes, here, device, resources);
  encode_through(books, encoding, here, resources, find);
  copy_codes_cuda(here, codes, device, resources);
}

}  // namespace

void encode_packed(const Codebooks& books, const AdditiveEncoding& encoding, const MatrixView& rows,
                   const MutableMatrixView& codes, const Resources& resources) {
  if (rows.rows() == 0) return;
  dispatch(
      resolve_encoding_device(books, encoding.search, rows, codes.space(), resources),
      [&] {
        encode_through(books, encoding, codes, resources, [&](uint8_t* whole) {
          encode_additive(books, encoding, rows, whole, nullptr, resources);
        });
      },
      [&](int device) { encode_on_gpu(books, encoding, rows, codes, device, resources); });
}

}  // namespace kith
