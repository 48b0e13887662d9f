// How a segment of lists is searched on a GPU: a pure function of the shape of the search and the memory there is, so
// that any machine can plan, and test plans, for any GPU.
#pragma once

#include "ivf/scan/scan_cut.hpp"
#include "kernels/codes/code_format.hpp"
#include "kernels/distance/canonical.hpp"

#include <cstdint>

namespace kith {

// The problem: sizes of the lists and of the search.
struct IvfSearchShape {
  CodeFormat format;
  KeyKind kind = KeyKind::squared_l2;
  int64_t queries = 0;
  int64_t slots = 0;  // lists per query
  int64_t k = 0;
  int64_t lists = 0;
  int64_t filled = 0;  // nonempty lists; 0: all
  int64_t vectors = 0;
  int64_t longest = 0;  // longest list; 0: unknown, all are taken as equal
  int64_t kept = -1;  // vectors that a filter leaves; negative: all
  int multiprocessors = 0;
  bool warpgroups = false;  // the device has Hopper's products
  bool repeats = false;     // equal vectors are known, and no filter is there
  bool row_terms = false;   // bounds can be made by row (device_lists_cuda.hpp)
  bool unit = false;        // cosine by distances of normalized vectors (likewise)
  bool bounded = false;     // vectors beyond a bound from a sample of all lists are not searched
  int sample_every = 0;  // of the first pass (scan_cut.hpp); 0: as the plan thinks best, 1: whole lists
  int tables = -1;       // 1: lookup tables where they can be; 0: products; negative: as the plan thinks best
  ScanTerm term = ScanTerm::none;  // what lookup tables of product codes find kept beside the lists, or there is room for
};

struct IvfSearchPlan {
  int64_t batch = 0;    // queries at a time
  bool direct = false;  // no products: every key is computed
  bool tables = false;  // lookup tables in the place of products, of distances
  ScanTerm term = ScanTerm::none;  // with what beside the lists
  bool wide = false;               // products of wide vectors by warpgroups
  bool sums = false;    // the same of additive codes, where metric and lists allow it
  bool by_row = false;  // bounds
  ScanCut cut;
  int64_t values = 0;      // per query in the first pass, at most
  int64_t candidates = 0;  // per query
  int64_t bytes = 0;
};

inline double mean_length(const IvfSearchShape& shape) {
  const int64_t lists = shape.filled > 0 ? shape.filled : shape.lists;
  return static_cast<double>(shape.vectors) / static_cast<double>(lists > 0 ? lists : 1);
}

// The best plan within `most_bytes`, or the smallest one if none fits. Pure.
IvfSearchPlan plan_ivf_search(const IvfSearchShape& shape, int64_t most_bytes);

}  // namespace kith
