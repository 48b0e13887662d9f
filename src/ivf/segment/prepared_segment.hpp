// What searches keep beside a segment on a device, made by the first that gains by it (rows/segments.hpp).
#pragma once

#include <cstdint>

namespace kith {

class PreparedSegment {
 public:
  virtual ~PreparedSegment() = default;
  virtual int64_t bytes() const = 0;  // on the device
};

// For Placed::find and keep: a device may keep several things of different types beside one segment.
template <typename T>
struct PreparedAs {
  bool operator()(const PreparedSegment& prepared) const { return dynamic_cast<const T*>(&prepared) != nullptr; }
};

}  // namespace kith
