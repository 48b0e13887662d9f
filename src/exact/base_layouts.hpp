// The layouts that an index keeps of the rows that a search goes over.
#pragma once

#include <kith/device.hpp>
#include <kith/resources.hpp>

#include "exact/prepared_base.hpp"
#include "exact/search_task.hpp"

#include <cstdint>

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

}  // namespace kith
