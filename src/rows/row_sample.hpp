// Distinct rows drawn at random, each set as likely, and rows gathered from wherever they lie.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>

#include "core/divide.hpp"
#include "core/footprint.hpp"
#include "core/random.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kith {

// `count` of `rows` row numbers, ascending (Floyd's algorithm). A bit for each row.
// Where memory is only counted (core/footprint.hpp) the numbers mean nothing, and nothing is gathered.
std::vector<uint32_t> sample_rows(const CounterRng& rng, int64_t rows, int64_t count, const Resources& resources);
// `most` of them, or all where there are no more.
std::vector<uint32_t> drawn_rows(const CounterRng& rng, int64_t rows, int64_t most, const Resources& resources);
// first, first + 1, ...
std::vector<uint32_t> row_numbers(int64_t first, int64_t count);
inline Footprint sample_footprint(int64_t rows) { return array_footprint<uint64_t>(divide_up(rows, 64)); }

// The rows listed, in their order, widened to f32 or as they are. Ascending numbers read a file from front to back.
// `out` is in host memory, the source anywhere.
void gather_as_floats(RowSource& source, const std::vector<uint32_t>& rows, float* out, const Resources& resources);
void gather(RowSource& source, const std::vector<uint32_t>& rows, const MutableMatrixView& out,
            const Resources& resources);

// Where the source is a matrix in the memory of a GPU, all of it.
std::optional<MatrixView> on_gpu(RowSource& source);

}  // namespace kith
