// What a sample says of the data: a vector near its mean, and how far values are from it.
#pragma once

#include <vector>

namespace kith {

struct DataSample {
  std::vector<float> origin;  // one value a column
  float largest = 0;          // magnitude of a value minus its column's origin
};

}  // namespace kith
