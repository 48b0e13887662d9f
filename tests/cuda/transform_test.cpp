// Transforms on the GPU against the CPU, bit for bit: rows and results on the host and on the device.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include <kith/error.hpp>
#include <kith/vector_transform.hpp>

#include "transform/transform_chain.hpp"
#include "transform/transform_training.hpp"

#include <string>
#include <vector>

namespace kith {
namespace {

class CudaTransformSmall : public OnCuda {};
class CudaTransform : public OnCuda {};

using Run = std::vector<float>;

template <typename Use>
Run on_host(const TransformChain& chain, int64_t rows, int64_t cols, const Use& use) {
  Run found(static_cast<size_t>(rows * cols));
  use(chain, MutableMatrixView(found.data(), rows, cols));
  return found;
}

template <typename Use>
Run on_gpu(const TransformChain& chain, int64_t rows, int64_t cols, const Use& use) {
  const DeviceBytes result(static_cast<size_t>(rows * cols) * 4);
  use(chain, MutableMatrixView(result.data(), DType::f32, {rows, cols, cols}, MemorySpace::cuda(0)));
  Run found(static_cast<size_t>(rows * cols));
  result.read(found.data());
  return found;
}

void expect_parity(const TransformChain& chain, const MatrixView& rows, const Resources& cuda = on_cuda()) {
  const auto apply = [](const MatrixView& from, const Resources& resources) {
    return [&from, resources](const TransformChain& used, const MutableMatrixView& to) {
      used.apply(from, to, resources);
    };
  };
  const auto reverse = [](const MatrixView& from, const Resources& resources) {
    return [&from, resources](const TransformChain& used, const MutableMatrixView& to) {
      used.reverse(from, to, resources);
    };
  };
  const int64_t count = rows.rows();
  const Run there = on_host(chain, count, chain.out(), apply(rows, on_cpu()));
  const DeviceMatrix device(rows);
  EXPECT_EQ(on_gpu(chain, count, chain.out(), apply(device.view(), cuda)), there);
  EXPECT_EQ(on_host(chain, count, chain.out(), apply(device.view(), cuda)), there);
  EXPECT_EQ(on_gpu(chain, count, chain.out(), apply(rows, cuda)), there);
  EXPECT_EQ(on_host(chain, count, chain.out(), apply(rows, cuda)), there);
  if (!chain.reversible()) return;
  const MatrixView turned(there.data(), count, chain.out());
  const Run back = on_host(chain, count, chain.in(), reverse(turned, on_cpu()));
  const DeviceMatrix device_turned(turned);
  EXPECT_EQ(on_gpu(chain, count, chain.in(), reverse(device_turned.view(), cuda)), back);
  EXPECT_EQ(on_host(chain, count, chain.in(), reverse(device_turned.view(), cuda)), back);
}

TransformChain chain_of(const std::string& steps, const MatrixView& rows) {
  ViewSource source(rows);
  return train_transforms(parse_transforms(steps), source, 3, on_cpu());
}

TEST_F(CudaTransformSmall, EveryKindAndDtype) {
  for (const DType dtype : kAllDtypes) {
    const Stored rows(dtype, 70, 19, 2, true);
    for (const char* steps : {"RR", "RR7", "RR40", "PCA5", "Centre", "L2norm", "Pad33", "L2norm,PCA8,Pad10,RR20"}) {
      SCOPED_TRACE(steps);
      expect_parity(chain_of(steps, rows.view()), rows.view());
    }
  }
}

TEST_F(CudaTransformSmall, OffsetsAndAnyMatrix) {
  const Stored rows(DType::f32, 33, 6, 2, true);
  TransformParts parts = chain_of("RR8", rows.view()).parts().front();
  parts.offset = {1, -2, 3, 0.1f, 1e-5f, 7, 8, 1e5f};
  expect_parity(TransformChain::from_parts({parts}, on_cpu()), rows.view());
  for (float& value : parts.matrix) value = value * value + 0.1f;
  const TransformChain skew = TransformChain::from_parts({parts}, on_cpu());
  expect_parity(skew, rows.view());
  const DeviceBytes result(33 * 8 * 4);
  const MutableMatrixView there(result.data(), DType::f32, {33, 8, 8}, MemorySpace::cuda(0));
  const DeviceBytes back(33 * 6 * 4);
  EXPECT_THROW(
      skew.reverse(there, MutableMatrixView(back.data(), DType::f32, {33, 6, 6}, MemorySpace::cuda(0)), on_cuda()),
      Unsupported);
}

TEST_F(CudaTransform, ManyPiecesAndLimits) {
  const Vectors rows = random_vectors(DType::f32, 30'000, 96, 4);
  const TransformChain chain = chain_of("OPQ20_80", rows.view().slice(0, 2000));
  expect_parity(chain, rows.view());
  ResourceOptions options = cuda_options();
  options.device_memory_limit = 6 << 20;
  expect_parity(chain_of("L2norm,PCA40", rows.view().slice(0, 2000)), rows.view(), Resources(options));
}

TEST_F(CudaTransform, TrainsOnRowsOfADevice) {
  const Vectors rows = random_vectors(DType::f32, 3000, 24, 4);
  const DeviceMatrix device(rows);
  for (const char* steps : {"PCA9", "OPQ4_12", "L2norm,Centre"}) {
    VectorTransform here({steps, 3, true});
    VectorTransform there({steps, 3, true});
    here.train(rows.view(), on_cpu());
    there.train(device.view(), Resources());
    for (size_t s = 0; s < here.steps().size(); ++s) {
      EXPECT_EQ(here.steps()[s].matrix, there.steps()[s].matrix);
      EXPECT_EQ(here.steps()[s].offset, there.steps()[s].offset);
    }
  }
}

TEST_F(CudaTransform, NamesTheRow) {
  Vectors rows = random_vectors(DType::f32, 40, 6, 6);
  VectorTransform transform({"RR", 0, true});
  transform.train(rows.view(), on_cpu());
  rows.row(31)[5] = NAN;
  const DeviceMatrix device(rows);
  const DeviceBytes result(40 * 6 * 4);
  const MutableMatrixView out(result.data(), DType::f32, {40, 6, 6}, MemorySpace::cuda(0));
  EXPECT_NE(text_thrown<InvalidArgument>([&] { transform.apply(device.view(), out, on_cuda()); }).find("x row 31"),
            std::string::npos);
}

}  // namespace
}  // namespace kith
