// One step of a transform as plain data, which files hold too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kith {

// y = matrix * x + offset (linear), x + offset (shift), x / |x| (unit_length), zeros behind x (padding).
struct TransformParts {
  enum class Kind : uint8_t { linear, shift, unit_length, padding };
  Kind kind = Kind::linear;
  std::string name;  // what made it: "OPQ", "PCA", "RR", ...
  int64_t in = 0;
  int64_t out = 0;
  std::vector<float> matrix;  // out x in
  std::vector<float> offset;  // out; a linear step may have none
};

}  // namespace kith
