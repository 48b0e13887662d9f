// The rows that a search goes over, and the layouts that an index keeps of them.
#pragma once

#include <kith/device.hpp>
#include <kith/resources.hpp>

#include "exact/prepared_base.hpp"
#include "exact/search_task.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <functional>

namespace kith {

// Of a base in blocks, each of which has, or can get, a layout for each device.
class BaseLayouts {
 public:
  virtual ~BaseLayouts() = default;
  // Whether layouts are made at all.
  virtual bool can_prepare() const = 0;
  // Finds the layouts for the device, or makes them; false where some rows have none.
  virtual bool prepare(const SearchTask& task, Device device, const Resources& resources) = 0;
  // After prepare(): that of the block that holds the row, or null.
  virtual const PreparedBase* of(int64_t row) const = 0;
};

struct SearchBase {
  RowSource& rows;
  BaseLayouts* layouts = nullptr;
};

// A run of rows, the first of which is number first_row. `ready` is its layout for the plan's device, or none.
using BaseStep = std::function<void(const MatrixView& rows, int64_t first_row, const PreparedBase* ready)>;

// Calls step for all rows in ascending order: whole blocks where they are prepared, else at most `chunk` at a time.
void walk_base(const SearchBase& base, int64_t chunk, const BaseStep& step);

}  // namespace kith
