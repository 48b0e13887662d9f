// Indexes of lists on a GPU answer as on the CPU, byte for byte: every kind and metric, with filters, lists that are
// too short, and queries and results in either memory.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "reference/data.hpp"
#include "reference/taken_params.hpp"

#include <kith/index.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

class CudaIndexListsSmall : public OnCuda {};
class CudaIndexLists : public OnCuda {};

TEST_F(CudaIndexListsSmall, EveryKindAnswersAsOnTheCpu) {
  const auto base = make_floats(Shape::gaussian, 2500, 24, 1);
  const auto queries = make_floats(Shape::gaussian, 70, 24, 2);
  std::vector<uint8_t> mask(2500);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 7 == 3;
  const RowFilter filter = RowFilter::mask(mask.data(), 2500);
  for (const char* const factory : {"IVF20,Flat", "IVF20,SQ8", "IVF9,SQ4", "IVF20,SQfp16", "IVF20,PQ6", "IVF5,PQ4x5",
                                    "SQ6", "PQ3", "RR20,IVF8,PQ5", "IVF20,PQ6,RFlat", "LSQ3x5", "IVF9,RQ2x8",
                                    "IVF9,RQ3x4", "LSQ3x4_Ncqint8", "IVF9,RQ2x8_Ncqint8", "IVF9,RQ3x3_Nqint8",
                                    "IVF5,LSQ3x4_Nfloat,RFlat", "RaBitQ", "IVF9,RaBitQ",
                                    "RR20,IVF8,RaBitQ,RFlat"}) {
    for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
      const std::string what = std::string(factory) + " " + std::string(name_of(metric));
      Index index(factory, {.metric = metric});
      index.train(base.view(), on_cpu());
      index.add(base.view().slice(0, 1900), Ownership::copy, on_cpu());
      index.add(base.view().slice(1900, 600), Ownership::copy, on_cpu());
      for (const int64_t probes : {1, 3, 1000}) {
        for (const int64_t k : {1, 10, 300}) {
          expect_same(index.search(queries.view(), taken_by(index, {.k = k, .probes = probes}), on_cuda()),
                      index.search(queries.view(), taken_by(index, {.k = k, .probes = probes}), on_cpu()), what);
          expect_same(
              index.search(queries.view(), taken_by(index, {.k = k, .filter = filter, .probes = probes}), on_cuda()),
              index.search(queries.view(), taken_by(index, {.k = k, .filter = filter, .probes = probes}), on_cpu()),
              what);
        }
      }
    }
  }
}

// Norms over decades around points far from the lists' centres: most queries are left by products, and long lists are
// searched as bases of their own. Equal rows in several lists change nothing.
TEST_F(CudaIndexListsSmall, LongListsOfNormsOverDecades) {
  constexpr int64_t kRows = 120'000;
  constexpr int64_t kQueries = 500;
  auto base = make_floats(Shape::gaussian, kRows, 16, 5);
  auto queries = make_floats(Shape::gaussian, kQueries, 16, 6);
  const auto spread = [](reference::Matrix<float>& rows) {
    for (int64_t i = 0; i < rows.rows; ++i) {
      const float length = std::pow(10.0f, static_cast<float>(i % 997) / 997.0f * 6 - 3);
      for (int64_t col = 0; col < rows.cols; ++col) rows.row(i)[col] *= length;
    }
  };
  spread(base);
  spread(queries);
  for (int64_t i = 0; i < 2000; ++i) std::copy_n(base.row(i % 50), 16, base.row(kRows - 1 - i));
  for (int64_t i = 0; i < 50; ++i) std::copy_n(base.row(i), 16, queries.row(kQueries - 1 - i));
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::cosine}) {
    Index index("IVF6,Flat", {.metric = metric});
    index.train(base.view(), on_cpu());
    index.add(base.view(), Ownership::copy, on_cpu());
    for (const int64_t probes : {2, 6}) {
      for (const int64_t k : {10, 100}) {
        const Neighbors expected = index.search(queries.view(), {.k = k, .probes = probes}, on_cpu());
        const std::string what = std::string(name_of(metric)) + ", k " + std::to_string(k);
        expect_same(index.search(queries.view(), {.k = k, .probes = probes}, on_cuda()), expected, what);
      }
    }
  }
}

// A list that most vectors are in and many queries look at is searched apart from the others.
TEST_F(CudaIndexLists, OneListOfMostVectors) {
  constexpr int64_t kRows = 100'000;
  constexpr int64_t kQueries = 1500;
  constexpr int64_t kCols = 400;
  auto base = make_floats(Shape::gaussian, kRows, kCols, 5);
  auto queries = make_floats(Shape::gaussian, kQueries, kCols, 6);
  const auto set_some_apart = [](reference::Matrix<float>& rows) {
    for (int64_t i = 0; i < rows.rows; ++i) {
      const bool apart = i % 8 == 0;
      for (int64_t col = 0; col < rows.cols; ++col) rows.row(i)[col] *= apart ? 10.0f : 0.01f;
      if (apart) rows.row(i)[i / 8 % 40] += 10000.0f;
    }
  };
  set_some_apart(base);
  set_some_apart(queries);
  for (int64_t i = 0; i < 50; ++i) std::copy_n(base.row(i), kCols, queries.row(i));
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean}) {
    Index index("IVF16,Flat", {.metric = metric});
    index.train(base.view(), on_cpu());
    index.add(base.view(), Ownership::copy, on_cpu());
    ASSERT_GE(index.info().longest, 65536);
    for (const int64_t probes : {1, 3}) {
      const Neighbors expected = index.search(queries.view(), {.k = 20, .probes = probes}, on_cpu());
      const std::string what = std::string(name_of(metric)) + ", probes " + std::to_string(probes);
      expect_same(index.search(queries.view(), {.k = 20, .probes = probes}, on_cuda()), expected, what);
    }
  }
}

// Many queries that look at all lists are exact search: ties are in the order of rows, whatever list these are in.
TEST_F(CudaIndexListsSmall, ManyQueriesOfAllLists) {
  constexpr int64_t kRows = 9000;
  constexpr int64_t kQueries = 4200;
  auto base = make_floats(Shape::gaussian, kRows, 14, 7);
  auto queries = make_floats(Shape::gaussian, kQueries, 14, 8);
  for (int64_t i = 0; i < 4000; ++i) std::copy_n(base.row(i % 300), 14, base.row(kRows - 1 - i));
  for (int64_t i = 0; i < 300; ++i) std::copy_n(base.row(i), 14, queries.row(kQueries - 1 - i));
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
    Index index("IVF6,Flat", {.metric = metric});
    index.train(base.view(), on_cpu());
    index.add(base.view().slice(0, 6000), Ownership::copy, on_cpu());
    index.add(base.view().slice(6000, kRows - 6000), Ownership::copy, on_cpu());
    const DeviceMatrix there(queries.view());
    for (const int64_t k : {1, 10, 100}) {
      const std::string what = std::string(name_of(metric)) + ", k " + std::to_string(k);
      const Neighbors expected = index.search(queries.view(), {.k = k, .probes = 6}, on_cpu());
      expect_same(index.search(queries.view(), {.k = k, .probes = 6}, on_cuda()), expected, what);
      const DeviceResult result(kQueries, k);
      index.search(there.view(), result.view, {.k = k, .probes = 6}, on_cuda());
      expect_same(result.on_host(), expected, what + ", on the device");
    }
  }
}

// Sums of codewords, with and without norms, and signs: what is removed and added between searches, ranges, and little
// memory for halves.
TEST_F(CudaIndexListsSmall, AdditiveCodesAnswerAsOnTheCpu) {
  const auto base = make_floats(Shape::gaussian, 3000, 40, 1);
  const auto queries = make_floats(Shape::gaussian, 30, 40, 2);
  const std::vector<int64_t> gone = {1, 5, 2999};
  for (const char* const factory : {"IVF6,LSQ3x6", "LSQ3x6", "IVF6,LSQ3x6_Ncqint8", "RQ4x5_Nfloat", "RaBitQ",
                                    "IVF6,RaBitQ"}) {
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
      const std::string what = std::string(factory) + " " + std::string(name_of(metric));
      Index index(factory, {.metric = metric});
      index.train(base.view(), on_cpu());
      index.add(base.view(), Ownership::copy, on_cpu());
      index.remove({gone.data(), 3, {}}, on_cpu());
      index.add(base.view().slice(0, 40), Ownership::copy, on_cpu());
      const Neighbors expected = index.search(queries.view(), taken_by(index, {.k = 50, .probes = 2}), on_cpu());
      expect_same(index.search(queries.view(), taken_by(index, {.k = 50, .probes = 2}), on_cuda()), expected, what);
      const RangeSearchParams range =
          range_taken_by(index, {.radius = expected.distances(3)[20], .probes = 2});
      const RangeNeighbors here = index.range_search(queries.view(), range, on_cpu());
      const RangeNeighbors there = index.range_search(queries.view(), range, on_cuda());
      ASSERT_EQ(here.size(), there.size()) << what;
      const auto count = static_cast<size_t>(here.size());
      EXPECT_EQ(std::memcmp(here.ids(), there.ids(), count * sizeof(int64_t)), 0) << what;
      EXPECT_EQ(std::memcmp(here.distances(), there.distances(), count * sizeof(float)), 0) << what;
      EXPECT_EQ(std::memcmp(here.offsets(), there.offsets(), 31 * sizeof(int64_t)), 0) << what;
    }
  }
}

// Columns that fill no byte, and many; vectors far from the origin, equal ones, and zeros; few queries and many.
TEST_F(CudaIndexListsSmall, SignsAnswerAsOnTheCpu) {
  for (const int64_t cols : {3, 37, 128, 384}) {
    for (const Shape shape : {Shape::gaussian, Shape::far_mean, Shape::near_duplicates, Shape::all_equal}) {
      auto base = make_floats(shape, 4000, cols, 1);
      std::fill_n(base.row(17), cols, 0.0f);
      const auto queries = make_floats(shape, 60, cols, 2);
      for (const char* const factory : {"RaBitQ", "IVF12,RaBitQ"}) {
        for (const Metric metric : {Metric::l2, Metric::inner_product}) {
          const std::string what = std::string(factory) + " " + std::string(name_of(metric)) + ", " +
                                   std::to_string(cols) + " columns, shape " + std::to_string(static_cast<int>(shape));
          Index index(factory, {.metric = metric});
          index.train(base.view(), on_cpu());
          index.add(base.view(), Ownership::copy, on_cpu());
          for (const int64_t count : {1, 3, 60}) {
            const MatrixView some = queries.view().slice(0, count);
            expect_same(index.search(some, taken_by(index, {.k = 15, .probes = 4}), on_cuda()),
                        index.search(some, taken_by(index, {.k = 15, .probes = 4}), on_cpu()), what);
          }
        }
      }
    }
  }
}

TEST_F(CudaIndexListsSmall, QueriesAndResultsMayLieOnTheDevice) {
  const auto base = make_floats(Shape::gaussian, 3000, 16, 1);
  const auto queries = make_floats(Shape::gaussian, 40, 16, 2);
  const std::vector<int64_t> gone = {1, 5, 2999};
  for (const char* const factory : {"IVF10,PQ4", "IVF10,Flat", "PQ4", "RR,IVF10,PQ4"}) {
    Index index(factory);
    index.train(base.view(), on_cpu());
    index.add(base.view(), Ownership::copy, on_cpu());
    index.remove({gone.data(), 3, {}}, on_cpu());  // so that rows are not their own ids
    const DeviceMatrix on_device(queries.view());
    for (const int64_t k : {5, 2000}) {
      const Neighbors expected = index.search(queries.view(), taken_by(index, {.k = k, .probes = 2}), on_cpu());
      const DeviceResult result(40, k);
      index.search(on_device.view(), result.view, taken_by(index, {.k = k, .probes = 2}), on_cuda());
      std::vector<int64_t> ids(static_cast<size_t>(40 * k));
      std::vector<float> distances(ids.size());
      result.ids.read(ids.data());
      result.distances.read(distances.data());
      EXPECT_EQ(std::memcmp(ids.data(), expected.ids(), ids.size() * sizeof(int64_t)), 0) << factory << " " << k;
      EXPECT_EQ(std::memcmp(distances.data(), expected.distances(), ids.size() * sizeof(float)), 0) << factory;
    }
  }
}

TEST_F(CudaIndexListsSmall, TrainedAndFilledOnTheDeviceItHoldsTheSameVectors) {
  const auto base = make_floats(Shape::gaussian, 5000, 24, 1);
  std::vector<int64_t> ids(5000);
  std::iota(ids.begin(), ids.end(), 0);
  for (const char* const factory :
       {"IVF20,Flat", "IVF20,SQ8", "IVF20,SQ4", "IVF20,SQfp16", "IVF20,PQ6", "IVF5,PQ4x5", "PQ3"}) {
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
      std::vector<std::vector<float>> held;
      for (const Resources& resources : {on_cpu(), on_cuda()}) {
        Index index(factory, {.metric = metric});
        index.train(base.view(), resources);
        index.add(base.view().slice(0, 4000), Ownership::copy, resources);
        index.add(base.view().slice(4000, 1000), Ownership::copy, resources);
        held.emplace_back(5000 * 24);
        index.reconstruct({ids.data(), 5000, {}}, MutableMatrixView(held.back().data(), 5000, 24), on_cpu());
      }
      EXPECT_EQ(std::memcmp(held[0].data(), held[1].data(), held[0].size() * sizeof(float)), 0)
          << factory << " " << name_of(metric);
    }
  }
}

TEST_F(CudaIndexListsSmall, RowsAreRemovedWhereTheyLie) {
  const auto base = make_floats(Shape::gaussian, 3000, 16, 1);
  const auto queries = make_floats(Shape::gaussian, 30, 16, 2);
  const DeviceMatrix there(base.view());
  std::vector<int64_t> gone;
  for (int64_t id = 0; id < 3000; id += 1 + id % 3) gone.push_back(id);
  for (const char* const factory : {"IVF10,PQ4", "IVF10,Flat", "SQ8", "RR,IVF10,PQ4,RFlat"}) {
    Index on_host(factory);
    on_host.train(base.view(), on_cpu());
    Index index = on_host.to(Device::cuda(0));
    for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 2000}, {2000, 1000}}) {
      on_host.add(base.view().slice(first, count), Ownership::copy, on_cpu());
      index.add(there.view().slice(first, count), Ownership::copy, on_cuda());
    }
    const auto count = static_cast<int64_t>(gone.size());
    EXPECT_EQ(index.remove({gone.data(), count, {}}, on_cuda()), count);
    on_host.remove({gone.data(), count, {}}, on_cpu());
    EXPECT_EQ(index.device(), Device::cuda(0)) << factory;
    for (const int64_t probes : {2, 10}) {
      expect_same(index.search(queries.view(), taken_by(index, {.k = 9, .probes = probes}), on_cuda()),
                  on_host.search(queries.view(), taken_by(on_host, {.k = 9, .probes = probes}), on_cpu()), factory);
    }
    index.add(there.view().slice(0, 500), Ownership::copy, on_cuda());
    on_host.add(base.view().slice(0, 500), Ownership::copy, on_cpu());
    expect_same(index.search(queries.view(), taken_by(index, {.k = 9, .probes = 3}), on_cuda()),
                on_host.search(queries.view(), taken_by(on_host, {.k = 9, .probes = 3}), on_cpu()), factory);
  }
}

TEST_F(CudaIndexListsSmall, BytesInLists) {
  const auto base = make_bytes(1500, 32, 1);
  const auto queries = make_bytes(33, 32, 2);
  Index index("IVF12,Flat", {.metric = Metric::sqeuclidean});
  index.train(base.view(), on_cpu());
  index.add(base.view(), Ownership::copy, on_cpu());
  for (const int64_t probes : {1, 12}) {
    expect_same(index.search(queries.view(), {.k = 20, .probes = probes}, on_cuda()),
                index.search(queries.view(), {.k = 20, .probes = probes}, on_cpu()), "bytes");
  }
}

TEST_F(CudaIndexListsSmall, ABadQueryIsRefusedWhereverItLies) {
  const auto base = make_floats(Shape::gaussian, 500, 8, 1);
  auto queries = make_floats(Shape::gaussian, 4, 8, 2);
  queries.row(2)[1] = NAN;
  for (const char* const factory : {"IVF4,Flat", "PQ4x4"}) {
    Index index(factory);
    index.train(base.view(), on_cpu());
    index.add(base.view(), Ownership::copy, on_cpu());
    EXPECT_THROW(index.search(queries.view(), {.k = 2}, on_cuda()), InvalidArgument) << factory;
    const DeviceMatrix on_device(queries.view());
    const DeviceResult result(4, 2);
    EXPECT_THROW(index.search(on_device.view(), result.view, {.k = 2}, on_cuda()), InvalidArgument) << factory;
  }
}

}  // namespace
}  // namespace kith
