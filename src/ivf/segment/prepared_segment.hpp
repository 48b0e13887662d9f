// Data that searches cache with a segment on a device, made by the first that benefits from it (rows/segments.hpp).
#pragma once

#include <cstdint>

namespace kith {

class PreparedSegment {
 public:
  virtual ~PreparedSegment() = default;
  virtual int64_t bytes() const = 0;  // on the device
};

// For Placed::find and keep: a device may cache several objects of different types with one segment.
template <typename T>
struct PreparedAs {
  bool operator()(const PreparedSegment& prepared) const { return dynamic_cast<const T*>(&prepared) != nullptr; }
};

}  // namespace kith
