// The loop of every k-NN search, on every device: batches of queries, pieces of the base, results out.
#pragma once

#include <kith/knn.hpp>

#include "exact/exact_search.hpp"

#include <cstdint>

namespace kith {

// Where batches of results go.
class KnnOutput {
 public:
  virtual ~KnnOutput() = default;
  // Before the first batch: batches have up to so many queries.
  virtual void open(int64_t batch, const Resources& resources) = 0;
  // Where the results of queries first, first + 1, ... are written, and that they are.
  virtual NeighborsView destination(int64_t first, int64_t count) = 0;
  virtual void done(int64_t first, const NeighborsView& part) = 0;
};

void search_knn(const SearchShape& shape, const SearchWish& wish, const SearchInput& input, KnnOutput& output,
                const Resources& resources);
// The same once it is settled; there is something to find.
void search_knn(const SettledSearch& search, KnnOutput& output);

}  // namespace kith
