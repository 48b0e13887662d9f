// A piece of a base on the device, as the engines search it.
#pragma once

#include "kernels/distance/distance_cuda.hpp"
#include "kernels/matrix/operand_bounds.hpp"
#include "kernels/matrix/operand_layout.hpp"
#include "kernels/matrix/product_plan.hpp"
#include "kernels/rerank/byte_screen_cuda.hpp"

#include <kith/metric.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kith {

// The operands of a base on the device.
struct OperandsView {
  std::byte* operands = nullptr;
  uint32_t* terms = nullptr;  // f32 or i32, one for each row
  float* centre = nullptr;
  BaseBounds* bounds = nullptr;

  // From row `first`, a multiple of kQueryTile, on.
  OperandsView from(int64_t first, int64_t chunks) const {
    return {operands + first / kOperandTile * chunks * kTileChunkBytes, terms + first, centre, bounds};
  }
};

// Rounds rows to operands of this type; `bad_row`, if not null, receives the first row that is not finite. In large
// bases far rows are treated separately (operand_bounds.hpp), unless the queries are far too.
void make_operands(Metric metric, OperandType type, const DeviceRowsView& rows, int64_t cols, const OperandsView& to,
                   uint32_t* bad_row, cudaStream_t stream, bool parts_far_rows = true);

// Computes only the centre and the scale of the rounding, as make_operands() without far rows does.
void sample_operands(Metric metric, OperandType type, const DeviceRowsView& rows, int64_t cols, const OperandsView& to,
                     cudaStream_t stream);

struct ProductBase {
  DeviceRowsView rows;
  OperandsView operands;  // none where there are no products
  ByteScreenView screen;  // of all its rows, where there is one
  int64_t first_row = 0;
  const uint32_t* numbers = nullptr;  // on the device, where they are not first_row, first_row + 1, ...
  int64_t first_place = -1;           // where the numbers begin among those of all kept rows
  const uint64_t* kept = nullptr;     // bits of a filter, in the numbers of a piece that has all its rows
  const float* centre = nullptr;      // on the device, where its rows, and the queries, lie close to it

  // Rows first .. first + count - 1, without operands.
  ProductBase part(int64_t first, int64_t count) const {
    ProductBase some = *this;
    some.rows = slice_rows(rows, first, count);
    some.operands = OperandsView();
    some.screen = ByteScreenView();
    some.first_row += first;
    if (numbers != nullptr) {
      some.numbers += first;
      some.first_place += first;
    }
    return some;
  }
  // The same with their operands, from a multiple of kQueryTile on.
  ProductBase slice(int64_t first, int64_t count, int64_t chunks) const {
    ProductBase some = part(first, count);
    some.operands = operands.from(first, chunks);
    return some;
  }
};

}  // namespace kith
