// A blocked matrix product of bytes, exact in 32-bit integers, that never writes its result: each value is compared
// with a limit for its query, and only those at or below it are handed out.
//
//   value(q, x) = term(x) - scale * q' x'     scale 2 with term |x|^2 for L2, scale 1 for the inner product
//
// A canonical sum of bytes is an integer below 2^31, exact in any order; it is rounded once. So the key that is
// reported follows from the value alone, and there is no error to bound and nothing to compute again.
//
// x86's VNNI multiplies unsigned by signed bytes. Where a panel_shape has signed_bytes, u8 rows are stored less 128 and
// i8 queries with 128 added, and byte_query_offset() and byte_row_term() account for it.
//
// Cost: 2 operations for each query, row and column, at 4 (VNNI, DOTPROD) to 16 (AMX) times the rate of f32; at 1.4
// times where an x86 processor has none of these.
#pragma once

#include "kernels/panels/byte_panels.hpp"

#include <cstdint>

namespace kith {

// One vector of bytes as stored for the set in use, filled up with zeros to `padded` bytes.
void encode_byte_row(PanelFormat format, const PanelShape& shape, const uint8_t* row, int64_t cols, int64_t padded,
                     uint8_t* out);
void encode_byte_query(PanelFormat format, const PanelShape& shape, const float* query, int64_t cols, int64_t padded,
                       uint8_t* out);

// The sums of a vector's bytes.
struct ByteSums {
  int32_t sum = 0;
  int32_t squares = 0;
};
ByteSums byte_sums(PanelFormat format, const uint8_t* row, int64_t cols);
int32_t byte_row_term(PanelFormat format, const PanelShape& shape, KeyKind kind, const ByteSums& row);
// The exact sum of a pair (of squared differences, or the negative product) is value + offset.
int32_t byte_query_offset(PanelFormat format, const PanelShape& shape, KeyKind kind, const ByteSums& query);

// Whether vectors of so many bytes are multiplied with these extensions. Without them x86 takes fewer columns, widened
// to words.
inline constexpr int64_t kMostWordColumns = 1024;
bool has_byte_product(int64_t cols, const CpuExtensions& cpu);

void scan_byte_panels(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                      BytePanelHits& hits);

// The families: each exists where its instructions can be compiled.
void scan_bytes_dotprod(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                        BytePanelHits& hits);
void scan_bytes_vnni(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                     BytePanelHits& hits);
PanelShape word_panel_shape();
void scan_bytes_words(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                      BytePanelHits& hits);
void scan_bytes_amx(const BytePanelQueries& queries, const BytePanelBase& base, int64_t first, int64_t count,
                    BytePanelHits& hits);

}  // namespace kith
