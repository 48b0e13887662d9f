#include "quantize/codec_cpu.hpp"

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/typed_row.hpp"
#include "io/dtype_conversion.hpp"
#include "kernels/lists/decode_rows_cpu.hpp"
#include "quantize/additive/additive_encoding.hpp"
#include "quantize/additive/beam_search.hpp"
#include "quantize/additive/code_norms.hpp"
#include "quantize/additive/packed_codes.hpp"
#include "quantize/scalar_codes_cpu.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <string>

namespace kith {
namespace {

constexpr int64_t kTaskRows = 512;

int64_t scratch_floats(const CodeFormat& format, DType dtype, int64_t rows) {
  const int64_t widened = dtype == DType::f32 || format.kind == CodeKind::stored ? 0 : rows * format.cols;
  return widened + (format.kind == CodeKind::product ? NearestCodeword::scratch_floats(format.part_cols()) : 0);
}

// Up to kTaskRows rows. `bytes`: one for each sub-code of these.
void encode_rows(const CodecTables& codec, const MatrixView& rows, uint8_t* codes, float* floats, uint8_t* bytes) {
  const CodeFormat& format = codec.format;
  const auto* from = static_cast<const float*>(rows.data());
  int64_t stride = rows.row_stride();
  if (rows.dtype() != DType::f32) {
    for (int64_t i = 0; i < rows.rows(); ++i) widen_row(rows, i, floats + i * format.cols);
    from = floats;
    stride = format.cols;
    floats += rows.rows() * format.cols;
  }
  if (format.kind == CodeKind::scalar) {
    return encode_scalar_cpu(format, codec.leasts(), codec.spans(), from, stride, rows.rows(), codes, bytes);
  }
  const bool whole_bytes = format.bits == 8;
  uint8_t* const labels = whole_bytes ? codes : bytes;
  for (int64_t p = 0; p < format.parts; ++p) {
    codec.nearest[static_cast<size_t>(p)].nearest(from + p * format.part_cols(), stride, rows.rows(), labels + p,
                                                  format.parts, floats);
  }
  for (int64_t i = 0; !whole_bytes && i < rows.rows(); ++i) {
    pack_sub_codes(bytes + i * format.parts, format.parts, format.bits, codes + i * format.bytes());
  }
}

void decode_rows(const CodecTables& codec, const uint8_t* codes, const MutableMatrixView& out, uint8_t* bytes) {
  const CodeFormat& format = codec.format;
  auto* const to = static_cast<float*>(out.data());
  if (format.kind == CodeKind::stored) {
    const MatrixView stored(codes, format.dtype, {out.rows(), format.cols, format.cols});
    for (int64_t i = 0; i < out.rows(); ++i) widen_row(stored, i, to + i * out.row_stride());
  } else if (format.kind == CodeKind::scalar) {
    decode_scalar_cpu(codec.view(), codes, out.rows(), to, out.row_stride(), bytes);
  } else if (format.kind == CodeKind::additive) {
    const CodecView view = codec.view();
    for (int64_t i = 0; i < out.rows(); ++i) {
      decode_rows_cpu(view, codes + i * format.bytes(), 1, nullptr, to + i * out.row_stride());
    }
  } else {
    const int64_t cols = format.part_cols();
    for (int64_t i = 0; i < out.rows(); ++i) {
      const uint8_t* const code = codes + i * format.bytes();
      float* row = to + i * out.row_stride();
      const float* words = codec.values.data();
      for (int64_t p = 0; p < format.parts; ++p, row += cols, words += format.codewords() * cols) {
        std::copy_n(words + sub_code(code, p, format.bits) * cols, cols, row);
      }
    }
  }
}

void encode_additive_rows(const CodecTables& codec, const MatrixView& rows, const MutableMatrixView& codes,
                          const Resources& resources) {
  const CodeFormat& format = codec.format;
  const Codebooks books{codec.values.data(), format.parts, format.bits, format.cols};
  const HostArray<uint8_t> whole(rows.rows() * books.books, "codes", resources);
  if (format.search == AdditiveSearch::beam) {
    encode_beam(books, format.effort, rows, whole.data(), resources);
  } else {
    encode_additive(books, codec_encoding(format), rows, whole.data(), nullptr, resources);
  }
  pack_codes(whole.data(), books, codes);
  if (!format.has_norm()) return;
  const CodecView view = codec.view();
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("norms", rows.rows(), quiet);
  parallel_for(divide_up(rows.rows(), kTaskRows), meter, quiet, [&](int64_t task, int) {
    const int64_t first = task * kTaskRows;
    const int64_t end = std::min(first + kTaskRows, rows.rows());
    for (int64_t i = first; i < end; ++i) {
      auto* const code = typed_row<uint8_t>(codes, i);
      // The bytes behind the books'.
      std::fill(code + additive_code_bytes(format.parts, format.bits), code + format.bytes(), uint8_t{0});
      write_code_norms(view, code, 1, nullptr);
    }
  });
}

}  // namespace

void encode_cpu(const CodecTables& codec, const MatrixView& rows, const MutableMatrixView& codes,
                const Resources& resources) {
  const CodeFormat& format = codec.format;
  if (format.kind == CodeKind::additive) return encode_additive_rows(codec, rows, codes, resources);
  auto* const bytes_out = static_cast<uint8_t*>(codes.data());
  const int64_t floats = scratch_floats(format, rows.dtype(), std::min(kTaskRows, rows.rows()));
  const int64_t bytes = std::min(kTaskRows, rows.rows()) * std::max(format.parts, format.cols);
  const HostArray<float> float_scratch(resources.threads() * floats, "a block of rows", resources);
  const HostArray<uint8_t> byte_scratch(format.bits == 8 ? 0 : resources.threads() * bytes, "a block of codes",
                                        resources);
  ProgressMeter meter("encode", rows.rows(), resources);
  parallel_for(divide_up(rows.rows(), kTaskRows), meter, resources, [&](int64_t task, int slot) {
    const int64_t first = task * kTaskRows;
    const MatrixView some = rows.slice(first, std::min(kTaskRows, rows.rows() - first));
    uint8_t* const to = bytes_out + first * format.bytes();
    if (format.kind == CodeKind::stored) {
      const std::string name = "rows";
      for (int64_t i = 0; i < some.rows(); ++i) {
        convert_values(some.row(i), some.dtype(), to + i * format.bytes(), format.dtype, format.cols,
                       {name, (first + i) * format.cols, format.cols});
      }
    } else {
      encode_rows(codec, some, to, float_scratch.data() + slot * floats, byte_scratch.data() + slot * bytes);
    }
    meter.add(some.rows());
  });
  meter.finish();
}

int64_t encode_cpu_bytes(const CodeFormat& format, int64_t rows, DType dtype, int threads) {
  if (format.kind == CodeKind::additive) {
    const Codebooks books{nullptr, format.parts, format.bits, format.cols};
    const int64_t whole = rows * books.books;
    if (format.search == AdditiveSearch::local) {
      return whole + additive_encoding_bytes(books, SearchForm::products, 1, threads);
    }
    const int64_t batch = std::min(BeamSearch::batch_rows(books, format.effort), rows);
    constexpr int64_t kProductScratch = 1 << 19;  // of a thread
    constexpr int64_t kProductParts = 2 << 20;    // sums that several tasks make
    return whole + BeamSearch::bytes_for(books, format.effort) + threads * kProductScratch + kProductParts +
           batch * array_bytes<float>(books.cols) + batch * format.effort * books.books;
  }
  const int64_t together = std::min(kTaskRows, rows);
  const int64_t bytes = format.bits == 8 ? 0 : together * std::max(format.parts, format.cols);
  return threads * (array_bytes<float>(scratch_floats(format, dtype, together)) + bytes);
}

void decode_cpu(const CodecTables& codec, const MatrixView& codes, const MutableMatrixView& out,
                const Resources& resources) {
  const CodeFormat& format = codec.format;
  const int64_t count = codes.rows();
  const auto* const from = static_cast<const uint8_t*>(codes.data());
  const HostArray<uint8_t> scratch(decode_cpu_bytes(format, resources.threads()), "a code", resources);
  ProgressMeter meter("decode", count, resources);
  parallel_for(divide_up(count, kTaskRows), meter, resources, [&](int64_t task, int slot) {
    const int64_t first = task * kTaskRows;
    const int64_t some = std::min(kTaskRows, count - first);
    uint8_t* const bytes = scratch.data() + slot * format.cols;
    if (codes.row_stride() == format.bytes()) {
      decode_rows(codec, from + first * format.bytes(), out.slice(first, some), bytes);
    } else {
      for (int64_t i = first; i < first + some; ++i) {
        decode_rows(codec, from + i * codes.row_stride(), out.slice(i, 1), bytes);
      }
    }
    meter.add(some);
  });
  meter.finish();
}

int64_t decode_cpu_bytes(const CodeFormat& format, int threads) { return format.bits == 8 ? 0 : threads * format.cols; }

}  // namespace kith
