// All distances on the GPU against the CPU, bit for bit.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include <kith/pairwise_distances.hpp>

#include <string>
#include <vector>

namespace kith {
namespace {

class CudaPairwiseSmall : public OnCuda {};
class CudaPairwise : public OnCuda {};

void expect_pairwise_parity(const MatrixView& x, const MatrixView& y, Metric metric,
                            const Resources& cuda = on_cuda()) {
  SCOPED_TRACE(::testing::Message() << x.rows() << " and " << y.rows() << " x " << x.cols() << ", " << name_of(metric));
  const MatrixBuffer expected = pairwise_distances(x, y, {metric}, on_cpu());
  const auto bytes = static_cast<size_t>(x.rows() * y.rows()) * 4;
  const MatrixBuffer found = pairwise_distances(x, y, {metric}, cuda);
  ASSERT_EQ(std::memcmp(expected.view().data(), found.view().data(), bytes), 0);
  const DeviceMatrix device_x(x);
  const DeviceMatrix device_y(y);
  const DeviceBytes result(bytes);
  pairwise_distances(device_x.view(), device_y.view(),
                     MutableMatrixView(result.data(), DType::f32, {x.rows(), y.rows(), y.rows()}, MemorySpace::cuda(0)),
                     {metric}, Resources());
  std::vector<float> there(static_cast<size_t>(x.rows() * y.rows()));
  result.read(there.data());
  ASSERT_EQ(std::memcmp(expected.view().data(), there.data(), bytes), 0);
}

TEST_F(CudaPairwiseSmall, OddShapes) {
  for (const int64_t rows : {1, 33, 70}) {
    const Stored y(DType::f32, rows, 19, 2, true);
    expect_pairwise_parity(y.view().slice(0, 1), y.view(), Metric::cosine);
  }
}

TEST_F(CudaPairwise, EveryMetricAndDtype) {
  for (const DType dtype : kAllDtypes) {
    for (const Metric metric : kEveryMetric) {
      const Stored x(dtype, 5, 19, 1, metric != Metric::chi_square);
      const Stored y(DType::f32, 70, 19, 2, metric != Metric::chi_square);
      expect_pairwise_parity(x.view(), y.view(), metric);
    }
  }
  const Stored bits(DType::u8, 33, 6, 3, false);
  expect_pairwise_parity(bits.view(), bits.view(), Metric::hamming);
}

TEST_F(CudaPairwise, ManyTilesAndLimits) {
  const Vectors x = random_vectors(DType::f32, 1500, 12, 4, 3);
  const Vectors y = random_vectors(DType::f32, 18000, 12, 5);
  expect_pairwise_parity(x.view(), y.view(), Metric::cosine);
  ResourceOptions options = cuda_options();
  options.device_memory_limit = 1 << 20;
  expect_pairwise_parity(x.view().slice(0, 200), y.view(), Metric::cosine, Resources(options));
}

TEST_F(CudaPairwise, NamesTheRow) {
  Vectors x = random_vectors(DType::f32, 40, 6, 6);
  const Vectors y = x;
  x.row(31)[5] = NAN;
  const DeviceMatrix device(x);
  const auto text = [&](const MatrixView& a, const MatrixView& b) {
    return text_thrown<InvalidArgument>([&] { pairwise_distances(a, b, {}, on_cuda()); });
  };
  EXPECT_NE(text(x.view(), y.view()).find("x row 31"), std::string::npos);
  EXPECT_NE(text(y.view(), device.view()).find("y row 31"), std::string::npos);
}

}  // namespace
}  // namespace kith
