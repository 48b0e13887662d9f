// Codecs on a GPU against the CPU, byte for byte: trained values, codes and what they decode to.
#include "cuda/device_data.hpp"
#include "cuda/kmeans_parity.hpp"
#include "quantize/codec.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using ::testing::HasSubstr;

class CudaQuantize : public OnCuda {};

CodeRecipe scalar(int bits) { return {kScalarCode, DType::f32, bits, 0}; }
CodeRecipe product(int64_t parts, int bits) { return {kProductCode, DType::f32, bits, parts}; }
CodeRecipe stored(DType dtype) { return {kStoredCode, dtype, 8, 0}; }

std::vector<uint8_t> encoded(const Codec& codec, const MatrixView& rows, const Resources& resources) {
  std::vector<uint8_t> codes(static_cast<size_t>(rows.rows() * codec.format().bytes()), 0xA5);
  codec.encode(rows, codes.data(), resources);
  return codes;
}

// From the host and from device memory, to both.
void expect_parity(const CodeRecipe& spec, const MatrixView& rows, const Resources& cuda = on_cuda()) {
  SCOPED_TRACE(::testing::Message() << rows.rows() << " x " << rows.cols() << " (" << name_of(rows.dtype()) << "), kind "
                                  << static_cast<int>(spec.code->kind()) << ", " << spec.bits << " bits, " << spec.parts
                                  << " parts");
  const DeviceMatrix there(rows);
  const auto codec = Codec::train(spec, rows, 7, on_cpu());
  ASSERT_EQ(Codec::train(spec, rows, 7, cuda)->values(), codec->values());
  ASSERT_EQ(Codec::train(spec, there.view(), 7, cuda)->values(), codec->values());

  const std::vector<uint8_t> codes = encoded(*codec, rows, on_cpu());
  ASSERT_EQ(encoded(*codec, rows, cuda), codes);
  ASSERT_EQ(encoded(*codec, there.view(), cuda), codes);
  const int64_t bytes = codec->format().bytes();
  const DeviceBytes device_codes(codes.size());
  const MutableMatrixView made(device_codes.data(), DType::u8, {rows.rows(), bytes, bytes}, MemorySpace::cuda(0));
  codec->encode(there.view(), made, cuda);
  std::vector<uint8_t> read(codes.size());
  device_codes.read(read.data());
  ASSERT_EQ(read, codes);

  const int64_t values = rows.rows() * rows.cols();
  std::vector<float> expected(static_cast<size_t>(values));
  std::vector<float> found(expected.size());
  codec->decode(codes.data(), rows.rows(), {expected.data(), rows.rows(), rows.cols()}, on_cpu());
  codec->decode(codes.data(), rows.rows(), {found.data(), rows.rows(), rows.cols()}, cuda);
  ASSERT_EQ(found, expected);
  const DeviceBytes device_rows(expected.size() * 4);
  codec->decode(made, {device_rows.data(), DType::f32, {rows.rows(), rows.cols(), rows.cols()}, MemorySpace::cuda(0)},
                cuda);
  device_rows.read(found.data());
  ASSERT_EQ(found, expected);
}

TEST_F(CudaQuantize, HardData) {
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(name_of(shape));
    const auto rows = make_floats(shape, 1500, 24, 1);
    expect_parity(product(3, 8), rows.view());
    expect_parity(product(12, 5), rows.view());
    if (shape == Shape::huge) continue;  // spans leave f32, values f16
    expect_parity(scalar(8), rows.view());
    expect_parity(scalar(6), rows.view());
    expect_parity(scalar(4), rows.view());
    expect_parity(stored(DType::bf16), rows.view());
  }
}

TEST_F(CudaQuantize, EveryWidthOfAPart) {
  for (const int64_t cols : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 24, 32, 33, 100}) {
    const auto rows = make_floats(Shape::gaussian, 1100, 2 * cols, 2);
    expect_parity(product(2, 8), rows.view());
    expect_parity(product(2, 4), rows.view());
  }
}

TEST_F(CudaQuantize, EveryDtypeAndGaps) {
  const auto floats = make_floats(Shape::gaussian, 700, 30, 3);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::u8, DType::i8}) {
    const TypedRows rows(dtype, floats, 20, 3);
    expect_parity(product(5, 6), rows.view());
    expect_parity(scalar(6), rows.view());
    expect_parity(stored(DType::f16), rows.view());
    expect_parity(stored(dtype), rows.view());
  }
}

TEST_F(CudaQuantize, ManyRowsInPieces) {
  const auto rows = make_floats(Shape::mixed_norms, 90000, 32, 4);
  expect_parity(product(8, 8), rows.view());
  expect_parity(product(8, 8), rows.view(), with_device_limit(24 << 20));
  expect_parity(scalar(4), rows.view(), with_device_limit(4 << 20));
}

TEST_F(CudaQuantize, TiesAndDuplicates) {
  auto rows = make_floats(Shape::gaussian, 2000, 8, 5);
  for (float& value : rows.values) value = std::round(value);  // whole numbers: many are as near
  expect_parity(product(2, 8), rows.view());
  expect_parity(product(1, 7), rows.view());
  expect_parity(product(8, 4), rows.view());
}

TEST_F(CudaQuantize, WhatATypeCannotHoldIsNamedAlike) {
  auto rows = make_floats(Shape::gaussian, 900, 8, 6);
  rows.row(700)[3] = 70000;
  rows.row(800)[1] = -1e6f;
  const auto codec = Codec::from_parts({CodeKind::stored, 8, DType::f16, 8, 0}, {});
  const DeviceMatrix there(rows.view());
  for (const MatrixView& view : {rows.view(), there.view()}) {
    std::string text;
    try {
      encoded(*codec, view, on_cuda());
    } catch (const InvalidArgument& error) {
      text = error.what();
    }
    EXPECT_THAT(text, HasSubstr("row 700, column 3 of 'rows' holds 70000, which f16 cannot"));
  }
}

TEST_F(CudaQuantize, ValuesThatAreNoNumbers) {
  auto rows = make_floats(Shape::gaussian, 300, 8, 7);
  const auto codec = Codec::train(product(2, 4), rows.view(), 0, on_cpu());
  const auto ranges = Codec::train(scalar(8), rows.view(), 0, on_cpu());
  rows.row(3)[1] = NAN;
  rows.row(20)[0] = INFINITY;
  rows.row(299)[7] = -INFINITY;
  for (const auto& one : {codec, ranges})
    EXPECT_EQ(encoded(*one, rows.view(), on_cuda()), encoded(*one, rows.view(), on_cpu()));
}

}  // namespace
}  // namespace kith
