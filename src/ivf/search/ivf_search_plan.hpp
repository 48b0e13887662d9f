// How many queries a search of lists on the CPU takes together, and what that takes.
#pragma once

#include <kith/resources.hpp>

#include "core/planned.hpp"
#include "ivf/model/code_words.hpp"
#include "ivf/model/ivf_model.hpp"
#include "ivf/scan/list_product.hpp"

#include <cstdint>

namespace kith {

struct IvfPlan {
  int64_t query_batch = 0;
  ListProductShape scan;
  int64_t host_bytes = 0;
  int64_t device_bytes = 0;
};

// What a search wants of every batch.
struct IvfWish {
  int64_t list_length = 0;  // of candidates
  int64_t probes = 0;       // lists that are ranked
  int64_t fewest = 0;       // kept vectors that a query's lists must hold, where all lists do
  bool lowers = true;       // the k best so far lower a query's threshold
  int64_t asked = 0;        // probes that the caller asked for
};

// OutOfMemory, with the bytes of the smallest plan, where that does not fit.
IvfPlan plan_search(const IvfModel& model, const IvfWish& wish, int64_t queries, const PlanBudget& budget);

// The smallest plan, with what the model keeps of its codewords.
int64_t least_bytes(const IvfModel& model, const IvfWish& wish, int64_t queries, const Resources& resources);

// Makes what the model keeps of its codewords for such searches.
CodeWords::Wanted keep_words(const IvfModel& model, const IvfWish& wish, int64_t queries, const Resources& resources);

}  // namespace kith
