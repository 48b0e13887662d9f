// Every pair of dtypes: what passes unchanged, what is rounded, what is refused and how it is named.
#include "io/dtype_conversion.hpp"

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "core/dtype_visit.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace kith {
namespace {

using testing::expect_refusal;
using testing::TemporaryDirectory;

const std::string kConvertedPath = "v.fbin";
constexpr DType kAll[] = {DType::f32, DType::f16, DType::bf16, DType::u8, DType::i8};

template <typename To, typename From>
std::vector<To> converted(const std::vector<From>& from, DType from_dtype, DType to_dtype) {
  std::vector<To> to(from.size());
  convert_values(from.data(), from_dtype, to.data(), to_dtype, static_cast<int64_t>(from.size()), {kConvertedPath, 0, 1});
  return to;
}

float to_f16_and_back(float value) {
  return static_cast<float>(converted<Half>(std::vector{value}, DType::f32, DType::f16)[0]);
}

TEST(DTypeConversion, SmallIntegersPassBetweenAllDtypes) {
  for (const DType from : kAll) {
    for (const DType to : kAll) {
      visit_dtype(from, [&](auto source) {
        visit_dtype(to, [&](auto target) {
          using From = typename decltype(source)::type;
          using To = typename decltype(target)::type;
          std::vector<float> numbers(128);
          for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
          const auto stored = converted<From>(numbers, DType::f32, from);
          const auto moved = converted<To>(stored, from, to);
          for (size_t i = 0; i < numbers.size(); ++i) {
            ASSERT_EQ(static_cast<float>(moved[i]), numbers[i]) << name_of(from) << " to " << name_of(to);
          }
        });
      });
    }
  }
}

TEST(DTypeConversion, EveryHalfWidensExactlyAndComesBack) {
  std::vector<Half> all;
  for (uint32_t bits = 0; bits < 0x10000U; ++bits) all.push_back({static_cast<uint16_t>(bits)});
  const auto wide = converted<float>(all, DType::f16, DType::f32);
  const auto back = converted<Half>(wide, DType::f32, DType::f16);
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(static_cast<float>(all[i])));
    if (!std::isnan(wide[i])) {
      ASSERT_EQ(back[i].bits, all[i].bits);
    }
  }
}

// Neighbourhoods of every boundary: all exponents, with fractions near their ends and halves.
TEST(DTypeConversion, NarrowsAsTheStorageTypesDo) {
  std::vector<float> values;
  for (uint32_t high = 0; high < 0x10000U; ++high) {
    for (const uint32_t low : {0x0000U, 0x0001U, 0x0fffU, 0x1000U, 0x1001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      const float value = float_of_bits(high << 16 | low);
      if (std::isfinite(value) && std::fabs(value) >= 65520.0F) continue;  // which f16 refuses
      values.push_back(value);
    }
  }
  const auto halves = converted<Half>(values, DType::f32, DType::f16);
  const auto brains = converted<BFloat16>(values, DType::f32, DType::bf16);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(halves[i].bits, half_of(values[i]).bits) << values[i];
    ASSERT_EQ(brains[i].bits, bfloat16_of(values[i]).bits) << values[i];
  }
}

TEST(DTypeConversion, RoundsToNearestEven) {
  EXPECT_EQ(to_f16_and_back(2049.0F), 2048.0F);
  EXPECT_EQ(to_f16_and_back(2051.0F), 2052.0F);
  EXPECT_EQ(to_f16_and_back(1e-9F), 0.0F);
  EXPECT_EQ(static_cast<float>(converted<BFloat16>(std::vector{257.0F}, DType::f32, DType::bf16)[0]), 256.0F);
  EXPECT_EQ(static_cast<float>(converted<BFloat16>(std::vector{259.0F}, DType::f32, DType::bf16)[0]), 260.0F);
}

TEST(DTypeConversion, KeepsNanAndInfinityAmongFloats) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const DType to : {DType::f16, DType::bf16}) {
    const auto made = converted<uint16_t>(
        std::vector{infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), -0.0F}, DType::f32, to);
    const auto back = converted<float>(made, to, DType::f32);
    EXPECT_EQ(back[0], infinity);
    EXPECT_EQ(back[1], -infinity);
    EXPECT_TRUE(std::isnan(back[2]));
    EXPECT_TRUE(back[3] == 0.0F && std::signbit(back[3]));
  }
}

struct Refused {
  DType to;
  float value;
  const char* reason;
};

TEST(DTypeConversion, RefusesWhatTheOtherCannotHoldAndNamesIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [to, value, reason] :
       {Refused{DType::f16, 65520.0F, "holds 65520, which f16 cannot; only values up to 65504 fit"},
        Refused{DType::f16, -1e9F, "holds -1000000000, which f16 cannot"},
        Refused{DType::bf16, std::numeric_limits<float>::max(), "which bf16 cannot"},
        Refused{DType::u8, 3.5F, "holds 3.5, which u8 cannot; only whole numbers from 0 to 255 fit"},
        Refused{DType::u8, 256.0F, "holds 256, which u8 cannot"},
        Refused{DType::u8, -1.0F, "holds -1, which u8 cannot"}, Refused{DType::u8, nan, "holds nan, which u8 cannot"},
        Refused{DType::u8, std::numeric_limits<float>::infinity(), "holds inf, which u8 cannot"},
        Refused{DType::i8, 128.0F, "holds 128, which i8 cannot; only whole numbers from -128 to 127 fit"},
        Refused{DType::i8, -129.0F, "which i8 cannot"}, Refused{DType::i8, 1e30F, "which i8 cannot"}}) {
    for (const size_t at : {size_t{0}, size_t{1023}, size_t{1024}, size_t{4999}}) {
      std::vector<float> values(5000, 1.0F);
      values[at] = value;
      std::vector<uint16_t> out(values.size());
      const auto convert = [&, to = to] {
        convert_values(values.data(), DType::f32, out.data(), to, 5000, {kConvertedPath, 700, 10});
      };
      const auto place = "row " + std::to_string((at + 700) / 10) + ", column " + std::to_string((at + 700) % 10) +
                         " of '" + kConvertedPath + "' ";
      expect_refusal<InvalidArgument>(convert, place);
      expect_refusal<InvalidArgument>(convert, reason);
    }
  }
}

TEST(DTypeConversion, RefusesBetweenNarrowDtypesToo) {
  const auto refused = [](const auto& from, DType from_dtype, DType to_dtype) {
    expect_refusal<InvalidArgument>([&] { converted<uint16_t>(from, from_dtype, to_dtype); }, "row 0, column 0");
  };
  refused(std::vector<uint8_t>{128}, DType::u8, DType::i8);
  refused(std::vector<int8_t>{-1}, DType::i8, DType::u8);
  refused(std::vector<BFloat16>{bfloat16_of(1e6F)}, DType::bf16, DType::f16);
  refused(std::vector<Half>{half_of(0.5F)}, DType::f16, DType::u8);
  EXPECT_EQ(static_cast<float>(converted<Half>(std::vector{bfloat16_of(0.125F)}, DType::bf16, DType::f16)[0]), 0.125F);
}

TEST(DTypeConversion, LargestValuesStillFit) {
  EXPECT_EQ(to_f16_and_back(65504.0F), 65504.0F);
  EXPECT_EQ(to_f16_and_back(65519.0F), 65504.0F);
  EXPECT_EQ((converted<uint8_t>(std::vector{0.0F, 255.0F, -0.0F}, DType::f32, DType::u8)),
            (std::vector<uint8_t>{0, 255, 0}));
  EXPECT_EQ((converted<int8_t>(std::vector{-128.0F, 127.0F}, DType::f32, DType::i8)), (std::vector<int8_t>{-128, 127}));
}

TEST(DTypeConversion, FilesAreReadAndWrittenInAnotherDtype) {
  const TemporaryDirectory directory;
  std::vector<uint8_t> bytes(300 * 70);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 128);
  const MatrixView matrix(bytes.data(), 300, 70);
  write_vectors(directory.path("v.u8bin"), matrix);
  for (const auto& [name, dtype] : {std::pair{"v.fbin", DType::f32},
                                    {"v.f16bin", DType::f16},
                                    {"v.bf16bin", DType::bf16},
                                    {"v.i8bin", DType::i8},
                                    {"v.fvecs", DType::f32}}) {
    write_vectors(directory.path(name), matrix, dtype);
    const MatrixBuffer back = read_vectors(directory.path(name), {5, 200}, DType::u8);
    EXPECT_EQ(std::memcmp(back.view().data(), bytes.data() + 5 * 70, 200 * 70), 0) << name;
    const MatrixBuffer direct = read_vectors(directory.path("v.u8bin"), {}, dtype);
    const MatrixBuffer stored = read_vectors(directory.path(name));
    EXPECT_EQ(direct.dtype(), stored.dtype());
    EXPECT_EQ(std::memcmp(direct.view().data(), stored.view().data(), static_cast<size_t>(300 * 70 * size_of(dtype))),
              0)
        << name;
  }
}

TEST(DTypeConversion, ReadingNamesTheFilesRow) {
  const TemporaryDirectory directory;
  for (const int64_t cols : {int64_t{3}, int64_t{20000}}) {  // the longer row is converted in parts
    std::vector<float> values(static_cast<size_t>(4 * cols), 1.0F);
    values[static_cast<size_t>(3 * cols - 1)] = 0.5F;
    const std::string path = directory.path("v.fbin");
    write_vectors(path, MatrixView(values.data(), 4, cols));
    expect_refusal<InvalidArgument>(
        [&] {
          read_vectors(path, {1, 3}, DType::u8);
        },
        "row 2, column " + std::to_string(cols - 1) + " of '" + path + "' holds 0.5");
    expect_refusal<InvalidArgument>(
        [&] { write_vectors(directory.path("w.u8bin"), MatrixView(values.data(), 4, cols), DType::u8); },
        "row 2, column " + std::to_string(cols - 1));
    EXPECT_FALSE(std::filesystem::exists(directory.path("w.u8bin")));
    EXPECT_EQ(read_vectors(path, {3, 1}, DType::u8).rows(), 1);
  }
}

RC_GTEST_PROP(DTypeConversionProperty, ReadsIntoAnyStrideAndDtype, ()) {
  const TemporaryDirectory directory;
  const int64_t rows = *rc::gen::inRange(1, 40);
  const int64_t cols = *rc::gen::inRange(1, 300);
  const int64_t stride = cols + *rc::gen::inRange(0, 5);
  std::vector<uint8_t> bytes(static_cast<size_t>(rows * cols));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 100);
  const std::string path = directory.path(*rc::gen::element("v.u8bin", "v.bvecs", "v.npy"));
  write_vectors(path, MatrixView(bytes.data(), rows, cols));
  std::vector<float> out(static_cast<size_t>(rows * stride), -1.0F);
  VectorFile(path).read(0, MutableMatrixView(out.data(), DType::f32, {rows, cols, stride}));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < stride; ++j) {
      const float value = out[static_cast<size_t>(i * stride + j)];
      RC_ASSERT(value == (j < cols ? static_cast<float>((i * cols + j) % 100) : -1.0F));
    }
  }
}

}  // namespace
}  // namespace kith
