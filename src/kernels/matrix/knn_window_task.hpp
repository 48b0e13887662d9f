// What the windows of a k-NN search are made of, for all queries of a batch.
#pragma once

#include "kernels/distance/canonical.hpp"
#include "kernels/matrix/operand_facts.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <cstdint>

namespace kith {

struct KnnWindowTask {
  KeyKind kind = KeyKind::l2;
  OperandType type = OperandType::half;
  int64_t cols = 0;
  int64_t queries = 0;
  int64_t k = 0;
  const float* kth = nullptr;     // each query's k-th smallest group minimum, or a little more; null: it is among
  const float* minima = nullptr;  // each query's smallest `selected` group minima, sorted
  int64_t selected = 0;           // at least k, if there are as many groups
  int64_t groups = 0;             // there are
  const QueryFacts* query_facts = nullptr;
  const BaseFacts* base_facts = nullptr;
  float* thresholds = nullptr;      // -inf where nothing is sure
  uint32_t* key_limits = nullptr;   // ordered keys: a nearest row's does not exceed it
  uint32_t* row_counts = nullptr;   // zeroed, for whoever counts candidates next; or null
  int32_t* group_counts = nullptr;  // how many of the selected groups can hold a neighbour; -1: nothing is sure, or
                                    // more than those selected can. Null where that does not matter
};

}  // namespace kith
