// Mapped files: the same values as reading gives, no copy, and a limit that turns the mapping off.
#include <kith/mapped_vectors.hpp>

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

using namespace std::string_literals;

namespace kith {
namespace {

using testing::expect_corrupt;
using testing::expect_refusal;
using testing::TemporaryDirectory;

std::vector<uint8_t> counting_bytes(size_t count) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i % 120);
  return bytes;
}

TEST(MappedVectors, ShowWhatReadingGives) {
  const TemporaryDirectory directory;
  const std::vector<uint8_t> bytes = counting_bytes(100 * 17);
  for (const auto& [name, dtype] : {std::pair{"v.fvecs", DType::f32},
                                    {"v.bvecs", DType::u8},
                                    {"v.fbin", DType::f32},
                                    {"v.f16bin", DType::f16},
                                    {"v.bf16bin", DType::bf16},
                                    {"v.u8bin", DType::u8},
                                    {"v.i8bin", DType::i8},
                                    {"v.npy", DType::f16}}) {
    const std::string path = directory.path(name);
    write_vectors(path, MatrixView(bytes.data(), 100, 17), dtype);
    const MatrixBuffer read = read_vectors(path);
    MappedVectors mapped(path);
    EXPECT_TRUE(mapped.is_mapped());
    const MappedVectors moved(std::move(mapped));
    const MatrixView view = moved.view();
    ASSERT_EQ(view.rows(), 100) << name;
    ASSERT_EQ(view.cols(), 17) << name;
    ASSERT_EQ(view.dtype(), dtype) << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data()) % static_cast<uintptr_t>(size_of(dtype)), 0U);
    for (int64_t i = 0; i < 100; ++i) {
      EXPECT_EQ(std::memcmp(view.row(i), read.view().row(i), static_cast<size_t>(17 * size_of(dtype))), 0) << name;
    }
  }
}

TEST(MappedVectors, RowsOfVecsFilesAreApartByTheirHeaders) {
  const TemporaryDirectory directory;
  const std::vector<uint8_t> bytes = counting_bytes(12);
  write_vectors(directory.path("v.bvecs"), MatrixView(bytes.data(), 4, 3));
  write_vectors(directory.path("v.fvecs"), MatrixView(bytes.data(), 4, 3), DType::f32);
  EXPECT_EQ(MappedVectors(directory.path("v.bvecs")).view().row_stride(), 7);
  EXPECT_EQ(MappedVectors(directory.path("v.fvecs")).view().row_stride(), 4);
}

TEST(MappedVectors, HaveNoRowsWhereTheFileHasNone) {
  const TemporaryDirectory directory;
  EXPECT_EQ(MappedVectors(directory.write("v.fvecs", "")).view().rows(), 0);
  write_vectors(directory.path("v.fbin"), MatrixView(nullptr, DType::f32, {0, 9, 9}));
  EXPECT_EQ(MappedVectors(directory.path("v.fbin")).view().cols(), 9);
}

TEST(MappedVectors, AreReadUnderAMemoryLimit) {
  const TemporaryDirectory directory;
  const std::vector<uint8_t> bytes = counting_bytes(1000);
  const std::string path = directory.path("v.bvecs");
  write_vectors(path, MatrixView(bytes.data(), 100, 10));
  ResourceOptions options;
  options.host_memory_limit = 1000;
  const Resources resources(options);
  {
    const MappedVectors read(path, resources);
    EXPECT_FALSE(read.is_mapped());
    EXPECT_EQ(std::memcmp(read.view().data(), bytes.data(), 1000), 0);
    EXPECT_THROW(MappedVectors(path, resources), OutOfMemory);
  }
  EXPECT_FALSE(MappedVectors(path, resources).is_mapped());
}

TEST(MappedVectors, KeepTheirFileWhenItsNameIsTakenByAnother) {
  const TemporaryDirectory directory;
  const std::vector<uint8_t> bytes = counting_bytes(100);
  const std::string path = directory.path("v.u8bin");
  write_vectors(path, MatrixView(bytes.data(), 10, 10));
  const MappedVectors mapped(path);
  const uint8_t other = 99;
  write_vectors(path, MatrixView(&other, 1, 1));
  EXPECT_EQ(std::memcmp(mapped.view().data(), bytes.data(), 100), 0);
}

TEST(MappedVectors, RefuseWhatCannotBeUsedAsItLies) {
  const TemporaryDirectory directory;
  const std::string text = "{'descr':'<f4','fortran_order':False,'shape':(2,1),}\n";  // a header of 63 bytes
  const std::string odd = directory.write(
      "odd.npy", "\x93NUMPY\x01\0"s + static_cast<char>(text.size()) + '\0' + text + std::string(8, '\0'));
  expect_refusal<InvalidArgument>([&] { MappedVectors mapped(odd); },
                                  "begin at byte 63, which is not a multiple of their 4");
  EXPECT_EQ(read_vectors(odd).rows(), 2);
  const std::string ids = directory.write("i.ibin", std::string(8, '\0'));
  expect_refusal<InvalidArgument>([&] { MappedVectors mapped(ids); }, "holds ids (i32), not vectors");
  const std::string cut = directory.write("v.fbin", "\x02\0\0\0\x03\0\0\0"s);
  expect_corrupt([&] { MappedVectors mapped(cut); }, cut, 8, "is truncated");
}

}  // namespace
}  // namespace kith
