// Ranks that share one GPU have the bytes of one process.
#include <kith/distributed.hpp>
#include <kith/vector_file.hpp>

#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "io/temporary_directory.hpp"
#include "ranks/shared_calls.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace kith::shared {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

class CudaRanks : public OnCuda {};

TEST_F(CudaRanks, EveryKindOfKMeans) {
  for (const int size : {1, 2, 3}) {
    SCOPED_TRACE(std::to_string(size) + " ranks");
    expect_kinds_of_kmeans(on_cuda(), [&](const MatrixView& rows, const KMeansParams& params, const KMeansInput& input = {}) {
      Fitted found;
      run_ranks(size, [&](Communicator& ranks) {
        KMeans model(params);
        fit(model, ranks, rows, input, on_cuda());
        if (ranks.rank() == size - 1) found = taken(model);
      });
      return found;
    });
  }
}

TEST_F(CudaRanks, KMeansFromFiles) {
  const testing::TemporaryDirectory folder;
  const auto rows = make_bytes(20'000, 32, 3);
  write_vectors(folder.path("rows.npy"), rows.view());
  const VectorFile file(folder.path("rows.npy"));
  KMeansParams params;
  params.clusters = 300;
  params.iterations = 3;
  const Fitted expected = fitted_on(on_cuda(), rows.view(), params);
  run_ranks(2, [&](Communicator& ranks) {
    KMeans model(params);
    fit(model, ranks, file, {}, on_cuda());
    EXPECT_EQ(taken(model), expected) << "rank " << ranks.rank();
  });
}

TEST_F(CudaRanks, ExactSearch) {
  const auto base = make_floats(Shape::near_duplicates, 3100, 17, 1);
  const auto queries = make_floats(Shape::near_duplicates, 90, 17, 2);
  const Found expected = found_in(knn(queries.view(), base.view(), {.k = 7}, on_cuda()));
  for (const Dealt dealt : {Dealt::automatic, Dealt::queries, Dealt::rows}) {
    run_ranks(3, [&](Communicator& ranks) {
      EXPECT_EQ(found_in(knn(ranks, queries.view(), base.view(), {.k = 7}, on_cuda(), dealt)), expected)
          << name_of(dealt) << ", rank " << ranks.rank();
    });
  }
}

TEST_F(CudaRanks, IndexesAreAddedToAndSearched) {
  const auto rows = make_floats(Shape::gaussian, 6000, 16, 1);
  const auto queries = make_floats(Shape::gaussian, 200, 16, 2);
  for (const char* const factory : {"Flat", "IVF30,Flat", "IVF30,PQ8", "OPQ4,IVF16,SQ8"}) {
    Index plain(factory);
    plain.train(rows.view(), on_cuda());
    Index trained = plain.clone();
    plain.add(rows.view(), Ownership::copy, on_cuda());
    SearchParams params{.k = 9};
    if (std::string_view(factory) != "Flat") params.probes = 6;
    const Found expected = found_in(plain.search(queries.view(), params, on_cuda()));
    run_ranks(2, [&](Communicator& ranks) {
      Index index = trained.clone();
      add(index, ranks, rows.view(), {}, on_cuda());
      EXPECT_EQ(found_in(search(index, ranks, queries.view(), params, on_cuda())), expected)
          << factory << ", rank " << ranks.rank();
    });
  }
}

}  // namespace
}  // namespace kith::shared
