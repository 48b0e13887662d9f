// A second look at candidates on a GPU gives the bytes of that on the host: every code of the vectors, metric and place
// of queries and results, vectors in several blocks, and candidates too many for it.
#include "cuda/device_data.hpp"
#include "cuda/index_parity.hpp"
#include "cuda/parity.hpp"
#include "reference/data.hpp"
#include "reference/taken_params.hpp"

#include <kith/index.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

class CudaIndexRefineSmall : public OnCuda {};

TEST_F(CudaIndexRefineSmall, EveryCodeAndMetric) {
  const auto base = make_floats(Shape::gaussian, 2500, 24, 1);
  const auto queries = make_floats(Shape::gaussian, 45, 24, 2);
  const std::vector<int64_t> gone = {1, 5, 2420};
  for (const char* const factory : {"IVF20,PQ6,RFlat", "IVF20,PQ6,Refine(SQ8)", "IVF9,SQ4,Refine(SQfp16)",
                                    "PQ3,Refine(PQ12)", "RR20,IVF8,PQ5,RFlat", "IVF20,PQ6x4,Refine(SQ6)"}) {
    for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
      const std::string what = std::string(factory) + " " + std::string(name_of(metric));
      Index index(factory, {.metric = metric});
      index.train(base.view(), on_cpu());
      index.add(base.view().slice(0, 1900), Ownership::copy, on_cpu());
      index.add(base.view().slice(1900, 500), Ownership::copy, on_cpu());
      index.add(base.view().slice(2400, 100), Ownership::copy, on_cpu());
      expect_as_on_cpu(index, queries.view(), taken_by(index, {.k = 10, .probes = 3}), what);
      EXPECT_GT(index.bytes().device, 2500 * 12) << what;  // the vectors came too
      expect_as_on_cpu(index, queries.view(), taken_by(index, {.k = 1, .probes = 2, .refine = 60}), what);
      index.remove({gone.data(), 3, {}}, on_cpu());  // so that rows are not their own ids
      expect_as_on_cpu(index, queries.view(), taken_by(index, {.k = 20, .probes = 3, .refine = 2}), what);
    }
  }
}

TEST_F(CudaIndexRefineSmall, BytesAndMoreCandidatesThanABlockSorts) {
  const auto base = make_bytes(6000, 32, 3);
  const auto queries = make_bytes(21, 32, 4);
  Index index("IVF12,PQ8,RFlat", {.metric = Metric::sqeuclidean});
  index.train(base.view(), on_cpu());
  index.add(base.view(), Ownership::copy, on_cpu());
  expect_as_on_cpu(index, queries.view(), {.k = 15, .probes = 4}, "bytes");
  expect_as_on_cpu(index, queries.view(), {.k = 1024, .probes = 12, .refine = 4}, "4,096 candidates");
  expect_as_on_cpu(index, queries.view(), {.k = 1500, .probes = 12, .refine = 4}, "all rows");
  expect_as_on_cpu(index, queries.view(), {.k = 400, .probes = 1, .refine = 4}, "few in the lists");
}

// Equal distances, of vectors of which the codes say other things.
TEST_F(CudaIndexRefineSmall, TiesGoToTheSmallerRow) {
  const auto base = make_floats(Shape::gaussian, 40, 16, 5);
  std::vector<float> repeated;
  for (int copy = 0; copy < 30; ++copy) {
    for (int64_t i = 0; i < 40; ++i) {
      const auto* const row = reinterpret_cast<const float*>(base.view().row(i));
      repeated.insert(repeated.end(), row, row + 16);
    }
  }
  const MatrixView rows(repeated.data(), 1200, 16);
  Index index("IVF4,PQ4x4,RFlat");
  index.train(rows, on_cpu());
  index.add(rows, Ownership::copy, on_cpu());
  expect_as_on_cpu(index, base.view(), {.k = 25, .probes = 4, .refine = 3}, "repeated rows");
}

// Where the vectors find no room the second look is the host's.
TEST_F(CudaIndexRefineSmall, NoRoomForTheVectors) {
  const auto base = make_floats(Shape::gaussian, 20000, 256, 6);
  const auto queries = make_floats(Shape::gaussian, 5, 256, 7);
  Index index("IVF8,PQ8,RFlat");
  index.train(base.view().slice(0, 3000), on_cpu());
  index.add(base.view(), Ownership::copy, on_cpu());
  ResourceOptions options;
  options.device = Device::cuda(0);
  options.device_memory_limit = int64_t{16} << 20;  // the vectors have 20
  const Neighbors found = index.search(queries.view(), {.k = 5, .probes = 2}, Resources(options));
  const Neighbors expected = index.search(queries.view(), {.k = 5, .probes = 2}, on_cpu());
  EXPECT_EQ(std::memcmp(found.ids(), expected.ids(), 25 * sizeof(int64_t)), 0);
  EXPECT_EQ(std::memcmp(found.distances(), expected.distances(), 25 * sizeof(float)), 0);
}

}  // namespace
}  // namespace kith
