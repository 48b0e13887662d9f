// The graph of an index's own vectors in a GPU's memory lies there, and is the CPU's.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "graph/same_graph.hpp"
#include "reference/data.hpp"
#include "reference/taken_params.hpp"

#include <kith/index_graph.hpp>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

class CudaIndexGraphSmall : public OnCuda {};

TEST_F(CudaIndexGraphSmall, LiesWhereTheVectorsDo) {
  for (const Shape shape : {Shape::gaussian, Shape::all_equal}) {  // whose rows stand behind others of the same distance
    const auto rows = make_floats(shape, 700, 12, 3);
    const DeviceMatrix device(rows.view());
    for (const char* const factory : {"Flat", "IVF8,Flat", "IVF8,PQ3x4"}) {
      SCOPED_TRACE(factory);
      Index index(factory);
      index.train(rows.view(), on_cpu());
      index.add(rows.view(), Ownership::copy, on_cpu());
      for (const int64_t k : {1, 7, 40}) {
        const IndexGraphParams params = graph_taken_by(index, {.k = k, .probes = 3});
        const KnnGraph expected = knn_graph(index, rows.view(), params, on_cpu());
        const KnnGraph there = knn_graph(index, device.view(), params, on_cuda());
        EXPECT_EQ(there.space(), MemorySpace::cuda(0));
        expect_same_bytes(expected, there);
        EXPECT_EQ(expected.report().recall->recall, there.report().recall->recall);
        expect_same_bytes(expected, knn_graph(index, rows.view(), params, on_cuda()));
        const DeviceResult result(700, k);
        knn_graph(index, device.view(), result.view, params, on_cuda());
        expect_same_bytes(expected, result.on_host());
      }
    }
  }
}

TEST_F(CudaIndexGraphSmall, OfNoRowsAndFewerThanNeighbors) {
  const auto rows = make_floats(Shape::gaussian, 3, 4, 3);
  const DeviceMatrix device(rows.view());
  for (const int64_t count : {0, 1, 3}) {
    Index index("Flat");
    index.add(rows.view().slice(0, count), Ownership::copy, on_cpu());
    const KnnGraph there = knn_graph(index, device.view().slice(0, count), {.k = 5}, on_cuda());
    expect_same_bytes(knn_graph(index, rows.view().slice(0, count), {.k = 5}, on_cpu()), there);
  }
}

}  // namespace
}  // namespace kith
