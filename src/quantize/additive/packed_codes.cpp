#include "quantize/additive/packed_codes.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "kernels/lists/decode_rows_cpu.hpp"
#include "quantize/scalar_codes_cpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int64_t kTaskRows = 512;

}  // namespace

void check_additive_rows(const MatrixView& rows, int64_t cols) {
  if (rows.cols() != cols) {
    throw InvalidArgument(fmt::format("the rows have {} columns; the code is of {}", rows.cols(), cols));
  }
  if (!rows.space().host_readable()) {
    throw Unsupported("additive codes of rows in GPU memory; copy the rows to host memory first");
  }
}

void check_additive_codes(const MatrixView& codes, int64_t rows, const Codebooks& books) {
  const int64_t bytes = additive_code_bytes(books.books, books.bits);
  if (codes.dtype() != DType::u8 || codes.rows() != rows || codes.cols() != bytes) {
    throw InvalidArgument(fmt::format("the codes are {} x {} {}; {} codebooks of {} bits make {} x {} u8", codes.rows(),
                                      codes.cols(), name_of(codes.dtype()), books.books, books.bits, rows, bytes));
  }
  if (!codes.space().host_readable()) {
    throw Unsupported("additive codes in GPU memory; copy them to host memory first");
  }
}

int64_t columns_of_codebooks(int64_t books, int bits, const VectorView<const float>& values) {
  const int64_t words = books << bits;
  if (values.size == 0 || values.size % words != 0) {
    throw InvalidArgument(fmt::format("{} values of codebooks; {} codebooks of {} codewords have a multiple of {}",
                                      values.size, books, int64_t{1} << bits, words));
  }
  const float* const end = values.data + values.size;
  const float* const bad = std::find_if_not(values.data, end, [](float value) { return std::isfinite(value); });
  if (bad != end) {
    throw InvalidArgument(fmt::format("value {} of the codebooks is {}; it must be finite", bad - values.data, *bad));
  }
  return values.size / words;
}

void pack_codes(const uint8_t* whole, const Codebooks& books, const MutableMatrixView& codes) {
  for (int64_t i = 0; i < codes.rows(); ++i) {
    pack_sub_codes(whole + i * books.books, books.books, books.bits, reinterpret_cast<uint8_t*>(codes.row(i)));
  }
}

void unpack_codes(const MatrixView& codes, const Codebooks& books, uint8_t* whole) {
  const int64_t used = books.books * books.bits % 8;
  for (int64_t i = 0; i < codes.rows(); ++i) {
    const auto* const code = reinterpret_cast<const uint8_t*>(codes.row(i));
    if (used != 0 && code[codes.cols() - 1] >> used != 0) {
      throw InvalidArgument(fmt::format("code {} is no code of {} books of {} bits: bits behind the last are set", i,
                                        books.books, books.bits));
    }
    unpack_sub_codes(code, books.books, books.bits, whole + i * books.books);
  }
}

void decode_additive(const Codebooks& books, const MatrixView& codes, const MutableMatrixView& out,
                     const Resources& resources) {
  check_additive_codes(codes, codes.rows(), books);
  if (out.dtype() != DType::f32 || out.rows() != codes.rows() || out.cols() != books.cols) {
    throw InvalidArgument(fmt::format("the output is {} x {} {}; it must be {} x {} f32", out.rows(), out.cols(),
                                      name_of(out.dtype()), codes.rows(), books.cols));
  }
  if (!out.space().host_readable()) throw Unsupported("additive codes decoded to GPU memory; decode to host memory");
  CodecView codec;
  codec.format.kind = CodeKind::additive;
  codec.format.cols = books.cols;
  codec.format.bits = books.bits;
  codec.format.parts = books.books;
  codec.codewords = books.values;
  ProgressMeter meter("decode", codes.rows(), resources);
  parallel_for(divide_up(codes.rows(), kTaskRows), meter, resources, [&](int64_t task, int) {
    const int64_t first = task * kTaskRows;
    const int64_t end = std::min(first + kTaskRows, codes.rows());
    for (int64_t i = first; i < end; ++i) {
      decode_rows_cpu(codec, reinterpret_cast<const uint8_t*>(codes.row(i)), 1, nullptr,
                      reinterpret_cast<float*>(out.row(i)));
    }
    meter.add(end - first);
  });
  meter.finish();
}

}  // namespace kith
