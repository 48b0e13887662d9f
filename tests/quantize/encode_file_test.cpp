// Codes of files, read piece by piece: the bytes of one array, for any limit, in one file or in several.
#include <kith/error.hpp>
#include <kith/local_search_quantizer.hpp>
#include <kith/product_quantizer.hpp>
#include <kith/residual_quantizer.hpp>
#include <kith/scalar_quantizer.hpp>
#include <kith/vector_file.hpp>

#include "cluster/fitted.hpp"
#include "core/memory_budget.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using testing::TemporaryDirectory;

Resources coding_under(int64_t limit, int threads = 2) {
  ResourceOptions options;
  options.device = Device::cpu();
  options.threads = threads;
  options.host_memory_limit = limit;
  return Resources(options);
}

// A thousand pieces of the fewest rows would be too many for a test; these limits make some.
template <typename Quantizer, typename... How>
void expect_codes_of_the_array(const Quantizer& quantizer, const MatrixView& rows, const VectorFile& file,
                               const How&... how) {
  const int64_t width = quantizer.code_bytes();
  std::vector<uint8_t> truth(static_cast<size_t>(rows.rows() * width));
  quantizer.encode(rows, MutableMatrixView(truth.data(), rows.rows(), width), how..., coding_under(kNoLimit));
  std::vector<uint8_t> codes(truth.size());
  const MutableMatrixView out(codes.data(), rows.rows(), width);
  const auto refused = testing::thrown<OutOfMemory>([&] { quantizer.encode(file, out, how..., coding_under(1000)); });
  ASSERT_TRUE(refused);
  for (const int64_t limit : {refused->bytes_needed(), 2 * refused->bytes_needed(), kNoLimit}) {
    std::fill(codes.begin(), codes.end(), uint8_t{0});
    quantizer.encode(file, out, how..., coding_under(limit));
    EXPECT_EQ(codes, truth) << limit;
  }
  const CodesSink into_nothing = [](int64_t, const MatrixView&) {};
  const auto least = testing::thrown<OutOfMemory>([&] { quantizer.encode(file, into_nothing, how..., coding_under(1000)); });
  ASSERT_TRUE(least);
  for (const int64_t limit : {least->bytes_needed(), kNoLimit}) {
    std::vector<uint8_t> given;
    const CodesSink keep = [&](int64_t first, const MatrixView& some) {
      EXPECT_EQ(first * width, static_cast<int64_t>(given.size()));
      const auto* const from = static_cast<const uint8_t*>(some.data());
      given.insert(given.end(), from, from + some.rows() * width);
    };
    const Resources resources = coding_under(limit, 1);
    quantizer.encode(file, keep, how..., resources);
    EXPECT_EQ(given, truth) << limit;
    EXPECT_EQ(resources.host_memory()->used(), 0);
  }
}

class EncodeFile : public ::testing::Test {
 protected:
  EncodeFile() : rows(make_floats(Shape::gaussian, 3000, 12, 1)) {
    for (int64_t part = 0; part < 3; ++part) {
      write_vectors(directory.path("p" + std::to_string(part) + ".npy"), rows.view().slice(1000 * part, 1000));
    }
  }
  VectorFile file() const { return VectorFile(directory.path("p*.npy")); }

  TemporaryDirectory directory;
  reference::Matrix<float> rows;
};

TEST_F(EncodeFile, GivesTheCodesOfTheArray) {
  ProductQuantizer product({3, 5, 3, true});
  product.train(rows.view(), cpu_resources(2));
  expect_codes_of_the_array(product, rows.view(), file());
  ScalarQuantizer scalar({6, true});
  scalar.train(rows.view(), cpu_resources(2));
  expect_codes_of_the_array(scalar, rows.view(), file());
  ResidualQuantizer residual({.codebooks = 3, .bits = 4});
  residual.train(rows.view(), cpu_resources(2));
  expect_codes_of_the_array(residual, rows.view(), file());
}

// Its draws depend on the row's number, which counts from the file's first row, not from that of a piece.
TEST_F(EncodeFile, LocalSearchDrawsByTheRowInTheFile) {
  LocalSearchQuantizer local({.codebooks = 3, .bits = 4, .rounds = 2, .train_search_rounds = 2});
  local.train(rows.view(), cpu_resources(2));
  expect_codes_of_the_array(local, rows.view(), file());
  expect_codes_of_the_array(local, rows.view(), file(), LocalSearchEncoding{.rounds = 3, .first_row = 77, .seed = 5});
  // A start that is given lies in the codes.
  std::vector<uint8_t> whole(static_cast<size_t>(3000 * local.code_bytes()));
  const MutableMatrixView out(whole.data(), 3000, local.code_bytes());
  local.encode(file(), out, {.rounds = 6}, coding_under(kNoLimit));
  std::vector<uint8_t> continued(whole.size());
  const MutableMatrixView again(continued.data(), 3000, local.code_bytes());
  local.encode(file(), again, {.rounds = 2}, coding_under(300'000));
  local.encode(file(), again, {.rounds = 4, .from_round = 2, .start = CodeStart::given}, coding_under(300'000));
  EXPECT_EQ(continued, whole);
  const CodesSink nothing = [](int64_t, const MatrixView&) {};
  EXPECT_THROW(local.encode(file(), nothing, {.start = CodeStart::given}), InvalidArgument);
}

TEST_F(EncodeFile, ErrorsNameTheFileAndWhatIsWrong) {
  ScalarQuantizer scalar({8, true});
  const CodesSink nothing = [](int64_t, const MatrixView&) {};
  EXPECT_THROW(scalar.encode(file(), nothing), InvalidState);
  scalar.train(rows.view(), cpu_resources(2));
  std::vector<uint8_t> few(12);
  testing::expect_refusal<InvalidArgument>([&] { scalar.encode(file(), MutableMatrixView(few.data(), 1, 12)); },
                                           "they must be 3000 x 12 u8");
  rows.row(2100)[3] = std::numeric_limits<float>::quiet_NaN();
  write_vectors(directory.path("p2.npy"), rows.view().slice(2000, 1000));
  testing::expect_refusal<InvalidArgument>([&] { scalar.encode(file(), nothing, coding_under(60'000)); }, "row 2100");
  testing::expect_refusal<InvalidArgument>([&] { scalar.encode(file(), nothing, coding_under(60'000)); },
                                           "p2.npy");
  write_vectors(directory.path("narrow.npy"), make_floats(Shape::gaussian, 5, 7, 1).view());
  testing::expect_refusal<InvalidArgument>(
      [&] { scalar.encode(VectorFile(directory.path("narrow.npy")), nothing); }, "holds rows of 7 columns");
}

TEST_F(EncodeFile, WhatTheReceiverThrowsReachesTheCaller) {
  ScalarQuantizer scalar({8, true});
  scalar.train(rows.view(), cpu_resources(2));
  int64_t calls = 0;
  const CodesSink full = [&](int64_t first, const MatrixView&) {
    ++calls;
    if (first > 0) throw std::runtime_error("full");
  };
  EXPECT_THROW(scalar.encode(file(), full, coding_under(60'000)), std::runtime_error);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace kith
