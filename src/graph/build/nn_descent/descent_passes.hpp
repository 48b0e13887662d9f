// How the passes of NN-Descent's rounds go over the rows. None of it changes the lists.
#pragma once

#include <cstdint>

namespace kith {

class GraphShare;

struct DescentPasses {
  // The order of the rows, neighbours close together, in the memory of the lists' device; null: as they are stored.
  const uint32_t* order = nullptr;
  const GraphShare* share = nullptr;  // joins are divided among several; null: all are made here
  int64_t gathered_rows = 0;          // whose offers are held while ranks exchange them
};

}  // namespace kith
