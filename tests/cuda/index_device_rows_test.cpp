// Compressed indexes from rows in a GPU's memory hold, byte for byte, what they hold from rows on the host: trained
// there, filled there, mixed, searched wherever.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "io/temporary_directory.hpp"
#include "reference/data.hpp"
#include "reference/taken_params.hpp"

#include <kith/index.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

class CudaDeviceRowsSmall : public OnCuda {};

std::string saved(const Index& index) {
  const kith::testing::TemporaryDirectory directory;
  const std::string path = directory.path("saved.kith");
  index.save(path, on_cpu());
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(CudaDeviceRowsSmall, EveryKindHoldsTheSameBytes) {
  const auto base = make_floats(Shape::gaussian, 3000, 24, 1);
  const auto queries = make_floats(Shape::gaussian, 30, 24, 2);
  const DeviceMatrix there(base.view());
  for (const char* const factory :
       {"IVF20,Flat", "IVF20,SQ8", "IVF9,SQ4", "IVF20,SQfp16", "IVF20,PQ6", "IVF5,PQ4x5", "SQ6", "PQ3", "RR20,IVF8,PQ5",
        "PCA16,IVF8,SQ8", "OPQ4_16,IVF8,PQ4", "L2norm,IVF8,Flat", "IVF20,PQ6,RFlat", "PQ6,Refine(SQ8)", "RaBitQ",
        "IVF9,RaBitQ", "RR20,IVF8,RaBitQ"}) {
    for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
      const std::string what = std::string(factory) + " " + std::string(name_of(metric));
      Index here(factory, {.metric = metric});
      here.train(base.view(), on_cpu());
      here.add(base.view().slice(0, 2200), Ownership::copy, on_cpu());
      here.add(base.view().slice(2200, 800), Ownership::copy, on_cpu());
      Index made(factory, {.metric = metric});
      made.train(there.view(), on_cuda());
      made.add(there.view().slice(0, 2200), Ownership::copy, on_cuda());
      made.add(there.view().slice(2200, 800), Ownership::copy, on_cuda());
      EXPECT_EQ(made.device(), Device::cuda(0)) << what;
      EXPECT_GT(made.bytes().device, 0) << what;
      const Neighbors expected = here.search(queries.view(), taken_by(here, {.k = 20, .probes = 3}), on_cpu());
      expect_same(made.search(queries.view(), taken_by(made, {.k = 20, .probes = 3}), on_cuda()), expected, what);
      expect_same(made.search(queries.view(), taken_by(made, {.k = 20, .probes = 3}), on_cpu()), expected, what);
      EXPECT_EQ(saved(made), saved(here)) << what;
    }
  }
}

TEST_F(CudaDeviceRowsSmall, VectorsKeptBehindTransformsHoldTheSameBytes) {
  const auto base = make_floats(Shape::gaussian, 1500, 24, 3);
  const auto queries = make_floats(Shape::gaussian, 20, 24, 4);
  const DeviceMatrix there(base.view());
  for (const char* const factory : {"PCA16,Flat", "L2norm,Flat", "RR20,Flat"}) {
    Index here(factory);
    here.train(base.view(), on_cpu());
    here.add(base.view(), Ownership::copy, on_cpu());
    Index made(factory);
    made.train(there.view(), on_cuda());
    made.add(there.view().slice(0, 1000), Ownership::copy, on_cuda());
    made.add(there.view().slice(1000, 500), Ownership::copy, on_cuda());
    EXPECT_EQ(made.device(), Device::cuda(0)) << factory;
    expect_same(made.search(queries.view(), {.k = 20}, on_cuda()), here.search(queries.view(), {.k = 20}, on_cpu()), factory);
    EXPECT_EQ(saved(made), saved(here)) << factory;
    made.add(base.view(), Ownership::copy, on_cuda());
    here.add(base.view(), Ownership::copy, on_cpu());
    EXPECT_EQ(made.device(), Device::cuda(0)) << factory;  // all in one place
    expect_same(made.search(queries.view(), {.k = 20}, on_cuda()), here.search(queries.view(), {.k = 20}, on_cpu()), factory);
  }
}

// Training may differ in its last bits from device to device; what is coded with the same codebooks does not.
TEST_F(CudaDeviceRowsSmall, AdditiveCodesHoldTheSameBytes) {
  const auto base = make_floats(Shape::gaussian, 2000, 24, 1);
  const auto queries = make_floats(Shape::gaussian, 30, 24, 2);
  const DeviceMatrix there(base.view());
  for (const char* const factory :
       {"LSQ3x6", "IVF9,LSQ2x8", "IVF9,LSQ3x6_Ncqint8", "LSQ3x5_Nfloat", "IVF9,RQ3x4", "RQ3x5_Nqint8"}) {
    const kith::testing::TemporaryDirectory directory;
    const std::string path = directory.path("trained.kith");
    Index trained(factory);
    trained.train(there.view(), on_cuda());
    trained.save(path, on_cpu());
    Index here = Index::load(path, on_cpu());
    here.add(base.view(), Ownership::copy, on_cpu());
    Index made = Index::load(path, on_cpu());
    made.add(there.view().slice(0, 1500), Ownership::copy, on_cuda());
    made.add(base.view().slice(1500, 500), Ownership::copy, on_cuda());
    const Neighbors expected = here.search(queries.view(), taken_by(here, {.k = 20, .probes = 3}), on_cpu());
    expect_same(made.search(queries.view(), taken_by(made, {.k = 20, .probes = 3}), on_cuda()), expected, factory);
    expect_same(made.search(queries.view(), taken_by(made, {.k = 20, .probes = 3}), on_cpu()), expected, factory);
  }
}

TEST_F(CudaDeviceRowsSmall, OfAnyDtypeAndStride) {
  const auto floats = make_floats(Shape::gaussian, 1200, 16, 1);
  const auto bytes = make_bytes(1200, 16, 1);
  for (const char* const factory : {"IVF10,PQ4", "IVF10,SQ8", "RR,IVF10,PQ4"}) {
    Index here(factory);
    here.train(bytes.view(), on_cpu());
    here.add(bytes.view(), Ownership::copy, on_cpu());
    Index made(factory);
    const DeviceMatrix there(bytes.view());
    made.train(there.view(), on_cuda());
    made.add(there.view(), Ownership::copy, on_cuda());
    EXPECT_EQ(saved(made), saved(here)) << factory;

    // Every other column pair of wider rows.
    const MatrixView narrow(floats.view().data(), DType::f32, {1200, 8, 16});
    Index few(factory);
    few.train(narrow, on_cpu());
    few.add(narrow, Ownership::copy, on_cpu());
    const DeviceMatrix wide(floats.view());
    const MatrixView narrow_there(wide.view().data(), DType::f32, {1200, 8, 16}, MemorySpace::cuda(0));
    Index few_there(factory);
    few_there.train(narrow_there, on_cuda());
    few_there.add(narrow_there, Ownership::copy, on_cuda());
    EXPECT_EQ(saved(few_there), saved(few)) << factory;
  }
}

TEST_F(CudaDeviceRowsSmall, HardData) {
  for (const Shape shape : {Shape::near_duplicates, Shape::far_mean, Shape::all_equal}) {
    const auto base = make_floats(shape, 1500, 20, 1);
    const DeviceMatrix there(base.view());
    for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
      Index here("IVF70,PQ4", {.metric = metric});
      here.train(base.view(), on_cpu());
      here.add(base.view(), Ownership::copy, on_cpu());
      Index made("IVF70,PQ4", {.metric = metric});
      made.train(there.view(), on_cuda());
      made.add(there.view(), Ownership::copy, on_cuda());
      EXPECT_EQ(saved(made), saved(here)) << name_of(metric) << " " << static_cast<int>(shape);
    }
  }
}

TEST_F(CudaDeviceRowsSmall, AddsOfOneRowAndMixedPlacesAreAsAddedAtOnce) {
  const auto base = make_floats(Shape::gaussian, 900, 12, 1);
  const auto queries = make_floats(Shape::gaussian, 25, 12, 2);
  const DeviceMatrix there(base.view());
  Index whole("IVF6,PQ3");
  whole.train(base.view(), on_cpu());
  Index parts("IVF6,PQ3");
  parts.train(base.view(), on_cpu());
  whole.add(base.view(), Ownership::copy, on_cpu());
  int64_t at = 0;
  for (const int64_t count : {1, 1, 300, 1, 2, 200, 90, 1, 4, 300}) {
    const bool on_gpu = at % 2 == 0;
    parts.add((on_gpu ? there.view() : base.view()).slice(at, count), Ownership::copy, on_cuda());
    at += count;
    if (count > 2) (void)parts.search(queries.view(), {.k = 3}, on_cuda());  // so that copies come about
  }
  ASSERT_EQ(parts.size(), 900);
  for (const int64_t k : {1, 7, 200}) {
    for (const int64_t probes : {1, 6}) {
      const Neighbors expected = whole.search(queries.view(), {.k = k, .probes = probes}, on_cpu());
      expect_same(parts.search(queries.view(), {.k = k, .probes = probes}, on_cuda()), expected, "parts");
      expect_same(parts.search(queries.view(), {.k = k, .probes = probes}, on_cpu()), expected, "parts on the CPU");
    }
  }
  EXPECT_EQ(saved(parts), saved(whole));
  const std::vector<int64_t> gone = {0, 1, 500, 899};
  whole.remove({gone.data(), 4, {}}, on_cpu());
  parts.remove({gone.data(), 4, {}}, on_cuda());
  expect_same(parts.search(queries.view(), {.k = 9, .probes = 3}, on_cuda()),
              whole.search(queries.view(), {.k = 9, .probes = 3}, on_cpu()), "removed");
}

TEST_F(CudaDeviceRowsSmall, WhatIsNotFiniteIsRefusedByItsNumberAndNothingIsAdded) {
  auto base = make_floats(Shape::gaussian, 600, 8, 1);
  const DeviceMatrix good(base.view());
  base.row(417)[3] = NAN;
  const DeviceMatrix bad(base.view());
  for (const char* const factory : {"IVF5,PQ4", "PCA4,IVF5,SQ8", "PQ4x4"}) {
    Index index(factory);
    EXPECT_THROW(index.train(bad.view(), on_cuda()), InvalidArgument);
    EXPECT_FALSE(index.trained());
    index.train(good.view(), on_cuda());
    try {
      index.add(bad.view(), Ownership::copy, on_cuda());
      ADD_FAILURE() << factory;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("417"), std::string::npos) << error.what();
    }
    EXPECT_EQ(index.size(), 0);
    index.add(good.view(), Ownership::copy, on_cuda());
    EXPECT_EQ(index.size(), 600);
  }
}

TEST_F(CudaDeviceRowsSmall, RangesAreThoseOfTheCpu) {
  const auto base = make_floats(Shape::gaussian, 2500, 16, 1);
  const auto queries = make_floats(Shape::gaussian, 60, 16, 2);
  std::vector<uint8_t> mask(2500);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 == 1;
  const DeviceMatrix there(base.view());
  const DeviceMatrix asked(queries.view());
  for (const char* const factory : {"IVF12,Flat", "IVF12,SQ8", "IVF12,PQ4", "PQ4", "RR,IVF12,PQ4", "IVF12,PQ4,RFlat"}) {
    for (const auto& [metric, radius] :
         {std::pair{Metric::l2, 4.5f}, {Metric::sqeuclidean, 18.0f}, {Metric::inner_product, 4.0f},
          {Metric::cosine, 0.7f}, {Metric::l2, 1e9f}, {Metric::l2, 0.0f}}) {
      Index index(factory, {.metric = metric});
      index.train(there.view(), on_cuda());
      index.add(there.view().slice(0, 1500), Ownership::copy, on_cuda());
      index.add(there.view().slice(1500, 700), Ownership::copy, on_cuda());
      index.add(base.view().slice(2200, 300), Ownership::copy, on_cuda());
      for (const int64_t probes : {1, 5, 12}) {
        for (const bool filtered : {false, true}) {
          RangeSearchParams params = range_taken_by(index, {.radius = radius, .probes = probes});
          if (filtered) params.filter = RowFilter::mask(mask.data(), 2500);
          const RangeNeighbors expected = index.range_search(queries.view(), params, on_cpu());
          for (const MatrixView& rows : {queries.view(), asked.view()}) {
            const RangeNeighbors found = index.range_search(rows, params, on_cuda());
            ASSERT_EQ(found.size(), expected.size()) << factory << " " << name_of(metric) << " " << radius;
            EXPECT_EQ(std::memcmp(found.offsets(), expected.offsets(), 61 * sizeof(int64_t)), 0) << factory;
            const auto count = static_cast<size_t>(found.size());
            EXPECT_EQ(std::memcmp(found.ids(), expected.ids(), count * sizeof(int64_t)), 0) << factory;
            EXPECT_EQ(std::memcmp(found.distances(), expected.distances(), count * sizeof(float)), 0) << factory;
          }
        }
      }
    }
  }
}

TEST_F(CudaDeviceRowsSmall, LittleDeviceMemoryMakesSmallerBatchesOrLeavesItToTheCpu) {
  const auto base = make_floats(Shape::gaussian, 4000, 16, 1);
  const auto queries = make_floats(Shape::gaussian, 3000, 16, 2);
  const DeviceMatrix there(base.view());
  Index index("IVF16,PQ4");
  index.train(there.view(), on_cuda());
  index.add(there.view(), Ownership::copy, on_cuda());
  const Neighbors expected = index.search(queries.view(), {.k = 100, .probes = 8}, on_cpu());
  expect_same(index.search(queries.view(), {.k = 100, .probes = 8}, on_cuda()), expected, "at once");
  ResourceOptions options;
  options.device = Device::cuda(0);
  options.device_memory_limit = int64_t{48} << 20;
  expect_same(index.search(queries.view(), {.k = 100, .probes = 8}, Resources(options)), expected, "in batches");
  options.device_memory_limit = 1000;
  EXPECT_THROW(index.search(queries.view(), {.k = 100, .probes = 8}, Resources(options)), OutOfMemory);
  options.device = Device::automatic();
  expect_same(index.search(queries.view(), {.k = 100, .probes = 8}, Resources(options)), expected, "on the CPU");
  const RangeSearchParams range{.radius = 4.0f, .probes = 8};
  EXPECT_EQ(index.range_search(queries.view(), range, Resources(options)).size(),
            index.range_search(queries.view(), range, on_cpu()).size());
}

}  // namespace
}  // namespace kith
