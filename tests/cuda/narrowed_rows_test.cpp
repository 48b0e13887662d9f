// f64 rows in a GPU's memory become the f32 rows that the host makes of them, with the same offset and the same words.
#include "rows/narrowed_rows.hpp"
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "reference/data.hpp"

#include <kith/error.hpp>
#include <kith/index.hpp>
#include <kith/knn.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace kith {
namespace {

class CudaNarrowedRows : public OnCuda {};

constexpr int64_t kWideRows = 3000;
constexpr int64_t kWideCols = 7;

std::vector<double> far_values(double where) {
  const auto floats = reference::make_floats(reference::Shape::gaussian, kWideRows, kWideCols, 1);
  std::vector<double> values;
  for (const float value : floats.values) values.push_back(where + static_cast<double>(value));
  return values;
}

std::vector<float> on_host(const MatrixView& there) {
  std::vector<float> values(static_cast<size_t>(there.rows() * there.cols()));
  KITH_CUDA_CHECK(cudaMemcpy(values.data(), there.data(), values.size() * sizeof(float), cudaMemcpyDeviceToHost));
  return values;
}

void expect_same_rows(const NarrowedRows& here, const NarrowedRows& there) {
  ASSERT_EQ(here.offset() == nullptr, there.offset() == nullptr);
  if (here.offset() != nullptr) {
    EXPECT_EQ(*here.offset(), *there.offset());
  }
  const std::vector<float> values = on_host(there.view());
  EXPECT_EQ(std::memcmp(values.data(), here.view().data(), values.size() * sizeof(float)), 0);
}

TEST_F(CudaNarrowedRows, AreThoseOfTheHost) {
  for (const double where : {0.0, 1e9, -3e12}) {
    const std::vector<double> x = far_values(where);
    const MatrixView rows(x.data(), kWideRows, kWideCols);
    const MatrixView some(x.data(), DType::f64, {kWideRows / 2, kWideCols - 1, 2 * kWideCols});  // apart
    const DeviceMatrix there(rows);
    const MatrixView some_there(there.view().data(), DType::f64, {kWideRows / 2, kWideCols - 1, 2 * kWideCols},
                                MemorySpace::cuda(0));
    for (const Metric metric : {Metric::l2, Metric::cosine}) {
      expect_same_rows({"x", rows, metric, on_cpu()}, {"x", there.view(), metric, on_cuda()});
      expect_same_rows({"x", some, metric, on_cpu()}, {"x", some_there, metric, on_cuda()});
    }
  }
}

TEST_F(CudaNarrowedRows, OtherTypesLoseAnOffset) {
  const Offset offset = std::make_shared<const std::vector<double>>(kWideCols, 1000.25);
  const auto floats = reference::make_floats(reference::Shape::gaussian, kWideRows, kWideCols, 1);
  const auto bytes = reference::make_bytes(kWideRows, kWideCols, 2);
  for (const MatrixView& rows : {floats.view(), bytes.view()}) {
    const DeviceMatrix there(rows);
    expect_same_rows({"x", rows, offset, OfRounding::silent, on_cpu()},
                     {"x", there.view(), offset, OfRounding::silent, on_cuda()});
  }
}

TEST_F(CudaNarrowedRows, ANumberBeyondFloatIsNamed) {
  std::vector<double> x = far_values(0);
  x[20] = -1e300;
  const DeviceMatrix there(MatrixView(x.data(), kWideRows, kWideCols));
  try {
    (void)NarrowedRows("base", there.view(), Metric::cosine, on_cuda());
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "base holds -1e+300 in row 2, column 6, which is beyond float32's range of 3.4e38: scale the vectors");
  }
}

TEST_F(CudaNarrowedRows, AnIndexFindsTheSame) {
  const std::vector<double> x = far_values(1e9);
  const MatrixView rows(x.data(), kWideRows, kWideCols);
  const DeviceMatrix there(rows);
  for (const char* const factory : {"Flat", "IVF8,SQ8"}) {
    Index host(factory), device(factory);
    host.train(rows, on_cpu());
    host.add(rows, Ownership::copy, on_cpu());
    device.train(there.view(), on_cuda());
    device.add(there.view(), Ownership::copy, on_cuda());
    EXPECT_EQ(host.offset(), device.offset());
    const Neighbors expected = host.search(rows.slice(0, 50), {.k = 5}, on_cpu());
    const Neighbors found = device.search(there.view().slice(0, 50), {.k = 5}, on_cuda());
    EXPECT_EQ(std::memcmp(expected.ids(), found.ids(), 250 * sizeof(int64_t)), 0) << factory;
    EXPECT_EQ(std::memcmp(expected.distances(), found.distances(), 250 * sizeof(float)), 0) << factory;
  }
}

}  // namespace
}  // namespace kith
