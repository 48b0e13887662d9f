// Transforms on the GPU against the CPU, bit for bit: rows and results on the host and on the device.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include <kith/error.hpp>
#include <kith/vector_transform.hpp>

#include "transform/transform_chain.hpp"
#include "transform/transform_training.hpp"

#include <algorithm>
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

void expect_same_training(const char* steps, const MatrixView& rows) {
  SCOPED_TRACE(steps);
  const DeviceMatrix device(rows);
  const auto trained = [&](const MatrixView& from, const Resources& resources) {
    VectorTransform transform({steps, 3, true});
    transform.train(from, resources);
    return transform;
  };
  const VectorTransform here = trained(rows, on_cpu());
  for (const VectorTransform& there : {trained(device.view(), Resources()), trained(rows, on_cuda())}) {
    for (size_t s = 0; s < here.steps().size(); ++s) {
      EXPECT_EQ(here.steps()[s].matrix, there.steps()[s].matrix);
      EXPECT_EQ(here.steps()[s].offset, there.steps()[s].offset);
    }
  }
}

TEST_F(CudaTransform, TrainsWithTheBytesOfTheCpu) {
  const Vectors rows = random_vectors(DType::f32, 3000, 24, 4);
  for (const char* steps : {"PCA9", "OPQ4_12", "OPQ6", "OPQ8_32", "OPQ24", "OPQ1", "L2norm,Centre", "L2norm,OPQ4_8"}) {
    expect_same_training(steps, rows.view());
  }
  expect_same_training("OPQ16_64", random_vectors(DType::f32, 9000, 200, 5).view());
  expect_same_training("PCA100", random_vectors(DType::f32, 5000, 300, 5).view());
  expect_same_training("OPQ2_80", random_vectors(DType::u8, 2000, 90, 6).view());
}

TEST_F(CudaTransform, TrainsOnHardRows) {
  for (const int64_t count : {1, 5, 200}) {
    expect_same_training("OPQ2_6", random_vectors(DType::f32, count, 6, 7).view());
  }
  Vectors rows = random_vectors(DType::f32, 700, 8, 8);
  for (int64_t i = 0; i < 700; ++i) {
    rows.row(i)[1] = 7;                                 // no variance
    rows.row(i)[2] = rows.row(i)[3];                    // less rank
    rows.row(i)[4] = 1e6f + static_cast<float>(i % 3);  // a mean far larger than the spread
    rows.row(i)[5] *= 1e-9f;
  }
  expect_same_training("OPQ4", rows.view());
  expect_same_training("PCA3,OPQ3_6", rows.view());
  for (int64_t i = 0; i < 700; ++i) std::copy_n(rows.row(0), 8, rows.row(i));  // all equal
  expect_same_training("OPQ4", rows.view());
}

TEST_F(CudaTransform, TrainsOnTheHostWhereThereIsNoRoom) {
  const Vectors rows = random_vectors(DType::f32, 3000, 24, 4);
  ResourceOptions options = cuda_options();
  options.device_memory_limit = 4 << 10;
  VectorTransform here({"OPQ4_12", 3, true});
  VectorTransform there({"OPQ4_12", 3, true});
  here.train(rows.view(), on_cpu());
  there.train(rows.view(), Resources(options));
  EXPECT_EQ(here.steps()[0].matrix, there.steps()[0].matrix);
}

TEST_F(CudaTransform, NamesTheTrainingRow) {
  Vectors rows = random_vectors(DType::f32, 400, 6, 6);
  rows.row(313)[5] = NAN;
  const DeviceMatrix device(rows);
  for (const char* steps : {"PCA3", "OPQ2"}) {
    VectorTransform transform({steps, 0, true});
    EXPECT_NE(text_thrown<InvalidArgument>([&] { transform.train(device.view(), on_cuda()); }).find("row 313"),
              std::string::npos);
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
