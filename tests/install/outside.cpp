// Uses the installed Kith from outside: one search, one index, one error caught by its type.
#include <kith/kith.hpp>

#include <cstdio>
#include <vector>

int main() {
  // Five points on a line; the nearest to 2.2 are the ones at 2, 3 and 1.
  const std::vector<float> base = {0, 1, 2, 3, 4};
  const std::vector<float> query = {2.2F};
  const kith::MatrixView base_view(base.data(), 5, 1);
  const kith::MatrixView query_view(query.data(), 1, 1);
  const int64_t expected[] = {2, 3, 1};

  kith::Index index("Flat", {.metric = kith::Metric::sqeuclidean});
  index.add(base_view);
  const kith::Neighbors found = kith::knn(query_view, base_view, {.k = 3, .metric = kith::Metric::sqeuclidean});
  const kith::Neighbors indexed = index.search(query_view, {.k = 3});
  for (int i = 0; i < 3; ++i) {
    if (found.ids()[i] != expected[i] || indexed.ids()[i] != expected[i]) {
      std::printf("neighbour %d is %lld and, by the index, %lld; expected %lld\n", i,
                  static_cast<long long>(found.ids()[i]), static_cast<long long>(indexed.ids()[i]),
                  static_cast<long long>(expected[i]));
      return 1;
    }
    if (found.distances()[i] != indexed.distances()[i]) {
      std::printf("distance %d is %g and, by the index, %g\n", i, found.distances()[i], indexed.distances()[i]);
      return 1;
    }
  }

  try {
    kith::parse_metric("no such metric");
    std::puts("an unknown metric was accepted");
    return 1;
  } catch (const kith::InvalidArgument& error) {
    std::printf("kith %.*s works from outside; an error reads: %s\n", static_cast<int>(kith::version().size()),
                kith::version().data(), error.what());
  }
  return 0;
}
