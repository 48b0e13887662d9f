// Codes by local search on a GPU against the CPU, byte for byte: by products and directly, from every start, for data
// that is hard for either.
#include "quantize/additive/additive_encoding.hpp"

#include <kith/local_search_quantizer.hpp>

#include "cuda/device_data.hpp"
#include "quantize/codec.hpp"
#include "reference/additive_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace kith {
namespace {

using Case = reference::AdditiveCase;
using reference::additive_encoding;
using reference::make_additive_case;
using reference::Matrix;
using reference::Shape;
using reference::stored_as;

class CudaAdditiveSmall : public OnCuda {};
class CudaAdditive : public OnCuda {};

struct Encoded {
  std::vector<uint8_t> codes;
  std::vector<float> costs;
};

Encoded room_for(const Case& given) {
  Encoded out;
  out.costs.resize(static_cast<size_t>(given.rows.rows), -1.0f);
  for (int64_t i = 0; i < given.rows.rows * given.books.books; ++i) {
    out.codes.push_back(static_cast<uint8_t>(i * 37 % given.books.words()));
  }
  return out;
}

Encoded on_the_cpu(const Case& given, AdditiveEncoding encoding) {
  encoding.form = SearchForm::automatic;
  Encoded out = room_for(given);
  encode_additive(given.books, encoding, given.rows.view(), out.codes.data(), out.costs.data(), on_cpu());
  return out;
}

Encoded on_the_gpu(const Case& given, const AdditiveEncoding& encoding, const Resources& resources = on_cuda()) {
  Encoded out = room_for(given);
  encode_additive_cuda(given.books, encoding, given.rows.view(), out.codes.data(), out.costs.data(), 0, resources);
  return out;
}

void expect_equal(const Encoded& found, const Encoded& expected, int64_t books) {
  for (size_t i = 0; i < expected.codes.size(); ++i) {
    ASSERT_EQ(int{found.codes[i]}, int{expected.codes[i]})
        << "row " << i / static_cast<size_t>(books) << ", book " << i % static_cast<size_t>(books);
  }
  for (size_t i = 0; i < expected.costs.size(); ++i) {
    if (expected.costs[i] != expected.costs[i]) continue;
    ASSERT_EQ(found.costs[i], expected.costs[i]) << "cost of row " << i;
  }
}

void expect_parity(const Case& given, const AdditiveEncoding& encoding) {
  SCOPED_TRACE(::testing::Message() << given.rows.rows << " x " << given.rows.cols << ", " << given.books.books
                                    << " books of " << given.books.words() << ", start "
                                    << static_cast<int>(encoding.start));
  const Encoded expected = on_the_cpu(given, encoding);
  expect_equal(on_the_gpu(given, encoding), expected, given.books.books);
  for (const SearchForm form : {SearchForm::direct, SearchForm::tables}) {
    AdditiveEncoding other = encoding;
    other.form = form;
    SCOPED_TRACE(static_cast<int>(form));
    expect_equal(on_the_gpu(given, other), expected, given.books.books);
  }
}

TEST_F(CudaAdditiveSmall, EveryStart) {
  const Case given = make_additive_case(Shape::gaussian, 4, 8, 32, 70);
  for (const CodeStart start : {CodeStart::given, CodeStart::random, CodeStart::greedy}) {
    for (const int64_t rounds : {0, 1, 3}) {
      SCOPED_TRACE(rounds);
      expect_parity(given, additive_encoding(start, rounds));
    }
  }
}

TEST_F(CudaAdditiveSmall, RowsAroundTilesAndColumnsAroundSteps) {
  for (const int64_t rows : {1, 7, 63, 65, 127, 128, 129, 300}) {
    expect_parity(make_additive_case(Shape::gaussian, 3, 8, 20, rows), additive_encoding(CodeStart::greedy, 2));
  }
  for (const int64_t cols : {1, 2, 15, 16, 17, 63, 64, 65, 100, 127, 128, 129}) {
    expect_parity(make_additive_case(Shape::gaussian, 3, 8, cols, 33), additive_encoding(CodeStart::random, 2));
  }
}

TEST_F(CudaAdditiveSmall, FewBitsAndManyBooks) {
  for (int bits = 1; bits <= 8; ++bits) {
    expect_parity(make_additive_case(Shape::gaussian, 4, bits, 24, 40), additive_encoding(CodeStart::greedy, 3));
  }
  for (const int64_t books : {1, 2, 15, 64, 65, 128}) {
    AdditiveEncoding encoding = additive_encoding(CodeStart::greedy, 2);
    encoding.search.perturbed = 1;
    expect_parity(make_additive_case(Shape::gaussian, books, 4, 24, 20), encoding);
  }
  // The most books and columns that a block of the search by products has room for.
  expect_parity(make_additive_case(Shape::gaussian, 64, 4, 128, 20), additive_encoding(CodeStart::random, 2));
}

// From one round to the next few codes of a row change, or most of them, or none.
TEST_F(CudaAdditiveSmall, FewAndManyPerturbedCodes) {
  for (const int64_t books : {5, 16}) {
    const Case given = make_additive_case(Shape::gaussian, books, 8, 32, 140);
    for (const int64_t perturbed : {int64_t{0}, int64_t{1}, books / 2, books}) {
      SCOPED_TRACE(perturbed);
      AdditiveEncoding encoding = additive_encoding(CodeStart::greedy, 5);
      encoding.search.perturbed = perturbed;
      expect_parity(given, encoding);
    }
  }
}

TEST_F(CudaAdditiveSmall, HardCases) {
  for (const auto& [name, given] : reference::hard_additive_cases()) {
    SCOPED_TRACE(name);
    expect_parity(given, additive_encoding(CodeStart::greedy, 2));
    expect_parity(given, additive_encoding(CodeStart::random, 2));
  }
}

TEST_F(CudaAdditiveSmall, OrdersNumbersAndRounds) {
  const Case given = make_additive_case(Shape::gaussian, 6, 8, 32, 90);
  AdditiveEncoding encoding = additive_encoding(CodeStart::random, 4);
  encoding.search.random_order = true;
  encoding.search.sweeps = 2;
  expect_parity(given, encoding);
  encoding.first_row = int64_t{1} << 40;
  encoding.search.from_round = 100;
  expect_parity(given, encoding);
  encoding.by_content = true;
  expect_parity(given, encoding);
}

TEST_F(CudaAdditiveSmall, RoundsContinue) {
  const Case given = make_additive_case(Shape::gaussian, 5, 8, 32, 90);
  const Encoded whole = on_the_gpu(given, additive_encoding(CodeStart::greedy, 6));
  Encoded split = on_the_gpu(given, additive_encoding(CodeStart::greedy, 2));
  AdditiveEncoding rest = additive_encoding(CodeStart::given, 4);
  rest.search.from_round = 2;
  encode_additive_cuda(given.books, rest, given.rows.view(), split.codes.data(), split.costs.data(), 0, on_cuda());
  expect_equal(split, whole, 5);
}

TEST_F(CudaAdditiveSmall, DtypesStridesAndDeviceMemory) {
  const Case given = make_additive_case(Shape::gaussian, 4, 8, 24, 100);
  const AdditiveEncoding encoding = additive_encoding(CodeStart::greedy, 2);
  const auto check = [&](const MatrixView& rows) {
    std::vector<uint8_t> expected(400);
    encode_additive(given.books, encoding, rows, expected.data(), nullptr, on_cpu());
    std::vector<uint8_t> found(400);
    encode_additive_cuda(given.books, encoding, rows, found.data(), nullptr, 0, on_cuda());
    EXPECT_EQ(found, expected);
    const DeviceMatrix there(rows);
    const DeviceBytes codes(400);
    encode_additive_cuda(given.books, encoding, there.view(), static_cast<uint8_t*>(codes.data()), nullptr, 0,
                         on_cuda());
    codes.read(found.data());
    EXPECT_EQ(found, expected);
  };
  check(stored_as<Half>(given.rows).view());
  check(stored_as<BFloat16>(given.rows).view());
  check(stored_as<uint8_t>(given.rows).view());
  check(stored_as<int8_t>(given.rows).view());
  check(MatrixView(given.rows.row(0), DType::f32, {100, 24, 24}));
  Matrix<float> wide(100, 31);
  for (int64_t i = 0; i < 100; ++i) std::copy_n(given.rows.row(i), 24, wide.row(i));
  check(MatrixView(wide.row(0), DType::f32, {100, 24, 31}));
}

TEST_F(CudaAdditive, ManyColumns) {
  expect_parity(make_additive_case(Shape::gaussian, 3, 8, 960, 20), additive_encoding(CodeStart::greedy, 1));
  expect_parity(make_additive_case(Shape::gaussian, 2, 3, 3000, 20), additive_encoding(CodeStart::random, 1));
}

// Chunks of 64 columns, in shared memory and past it, with every length of the ring.
TEST_F(CudaAdditiveSmall, EveryNumberOfChunks) {
  for (const int64_t cols : {1, 3, 64, 100, 129, 192, 200, 256, 257, 300, 384, 500}) {
    for (const CodeStart start : {CodeStart::given, CodeStart::greedy}) {
      expect_parity(make_additive_case(Shape::gaussian, 3, 8, cols, 131), additive_encoding(start, 3));
    }
  }
}

// Codewords that differ in one column, by little or by nothing once they are rounded: sums in f32 do not tell them
// apart.
TEST_F(CudaAdditiveSmall, CodewordsThatHardlyDiffer) {
  for (const int64_t cols : {40, 128, 300}) {
    Case given = make_additive_case(Shape::gaussian, 4, 8, cols, 131);
    for (int64_t k = 0; k < 4; ++k) {
      for (int64_t j = 64; j < 256; ++j) {
        float* const word = given.words.row(k * 256 + j);
        std::copy_n(given.words.row(k * 256 + j % 64), cols, word);
        word[j % cols] *= 1 + std::ldexp(1.0f, -8 - 4 * static_cast<int>(j / 64));
      }
    }
    expect_parity(given, additive_encoding(CodeStart::greedy, 3));
    expect_parity(given, additive_encoding(CodeStart::random, 3));
  }
}

TEST_F(CudaAdditive, WideRowsOfManyBooks) {
  for (const int64_t cols : {3, 129, 256, 300, 384, 768}) {
    for (const int64_t books : {2, 7, 8, 15, 16, 31}) {
      const Case given = make_additive_case(books % 2 == 0 ? Shape::gaussian : Shape::far_mean, books, 8, cols, 257);
      AdditiveEncoding encoding = additive_encoding(CodeStart::greedy, 3);
      encoding.search.perturbed = std::min<int64_t>(books, 4);
      SCOPED_TRACE(::testing::Message() << cols << " columns, " << books << " books");
      expect_equal(on_the_gpu(given, encoding), on_the_cpu(given, encoding), books);
    }
  }
}

// As many rows as keep the whole device busy, of as many columns as lie past shared memory.
TEST_F(CudaAdditive, ManyWideRows) {
  const Case given = make_additive_case(Shape::gaussian, 8, 8, 384, 40'003);
  const AdditiveEncoding encoding = additive_encoding(CodeStart::greedy, 8);
  const Encoded found = on_the_gpu(given, encoding);
  AdditiveEncoding tables = encoding;
  tables.form = SearchForm::tables;
  expect_equal(on_the_gpu(given, tables), found, 8);
}

TEST_F(CudaAdditive, AsInUse) {
  AdditiveEncoding encoding = additive_encoding(CodeStart::greedy, 8);
  encoding.search.perturbed = 4;
  Case given = make_additive_case(Shape::gaussian, 7, 8, 128, 1000);
  expect_equal(on_the_gpu(given, encoding), on_the_cpu(given, encoding), 7);
  encoding.search.perturbed = 2;
  given = make_additive_case(Shape::far_mean, 15, 8, 128, 500);
  expect_equal(on_the_gpu(given, encoding), on_the_cpu(given, encoding), 15);
}

// As many rows as keep the whole device busy: by products twice, and by tables, which share no kernel with them.
TEST_F(CudaAdditive, ManyRowsInEveryForm) {
  Case given = make_additive_case(Shape::gaussian, 16, 8, 128, 60'000);
  for (float& value : given.rows.values) value = std::nearbyint(40 * value);
  for (float& value : given.words.values) value *= 40;
  const AdditiveEncoding encoding = additive_encoding(CodeStart::greedy, 32);
  const Encoded found = on_the_gpu(given, encoding);
  expect_equal(on_the_gpu(given, encoding), found, 16);
  AdditiveEncoding tables = encoding;
  tables.form = SearchForm::tables;
  expect_equal(on_the_gpu(given, tables), found, 16);
}

TEST_F(CudaAdditive, SmallLimits) {
  const Case given = make_additive_case(Shape::gaussian, 4, 8, 64, 2000);
  const AdditiveEncoding encoding = additive_encoding(CodeStart::greedy, 2);
  const Encoded expected = on_the_cpu(given, encoding);
  ResourceOptions options = cuda_options();
  options.device_memory_limit = int64_t{2} << 20;
  expect_equal(on_the_gpu(given, encoding, Resources(options)), expected, 4);
  options.device_memory_limit = 1000;
  EXPECT_THROW(on_the_gpu(given, encoding, Resources(options)), OutOfMemory);
}

// Codecs, whose rows are numbered by what they hold: from the host and from device memory, to both, packed and with
// norms.
void expect_codec_parity(const CodeRecipe& spec, int64_t cols, int64_t count, DType dtype) {
  SCOPED_TRACE(::testing::Message() << spec.parts << " x " << spec.bits << ", norm " << static_cast<int>(spec.norm)
                                    << ", " << spec.code->name(spec) << ", " << name_of(dtype));
  const CodeFormat format = spec.format_for(cols);
  const Case given = make_additive_case(Shape::gaussian, spec.parts, spec.bits, cols, count);
  std::vector<float> values = given.words.values;
  for (int i = 0; format.norm == CodeNorm::cqint8 && i < kNormLevels; ++i) values.push_back(static_cast<float>(i));
  const auto codec = Codec::from_parts(spec, cols, values);
  const auto halves = stored_as<Half>(given.rows);
  const MatrixView rows = dtype == DType::f32 ? given.rows.view() : halves.view();
  const auto bytes = static_cast<size_t>(count * format.bytes());
  std::vector<uint8_t> expected(bytes);
  codec->encode(rows, expected.data(), on_cpu());
  std::vector<uint8_t> found(bytes, 0xA5);
  codec->encode(rows, found.data(), on_cuda());
  ASSERT_EQ(found, expected);
  const DeviceMatrix there(rows);
  const DeviceBytes codes(bytes);
  const MutableMatrixView made(codes.data(), DType::u8, {count, format.bytes(), format.bytes()}, MemorySpace::cuda(0));
  codec->encode(there.view(), made, Resources());
  codes.read(found.data());
  ASSERT_EQ(found, expected);
  std::vector<float> decoded(static_cast<size_t>(count * cols));
  std::vector<float> decoded_there(decoded.size());
  codec->decode(expected.data(), count, {decoded.data(), count, cols}, on_cpu());
  codec->decode(expected.data(), count, {decoded_there.data(), count, cols}, on_cuda());
  ASSERT_EQ(decoded_there, decoded);
}

TEST_F(CudaAdditiveSmall, Codecs) {
  CodeRecipe spec{kLocalSearchCode, DType::f32, 8, 4};
  spec.effort = 3;
  expect_codec_parity(spec, 20, 150, DType::f32);
  expect_codec_parity(spec, 20, 150, DType::f16);
  spec.norm = CodeNorm::cqint8;
  expect_codec_parity(spec, 20, 150, DType::f32);
  spec.bits = 5;
  expect_codec_parity(spec, 20, 150, DType::f32);
  spec.norm = CodeNorm::float32;
  expect_codec_parity(spec, 33, 70, DType::f16);
}

TEST_F(CudaAdditiveSmall, CodecsOfBeams) {
  CodeRecipe spec{kResidualCode, DType::f32, 8, 3};
  for (const int beam : {1, 5, 64}) {
    spec.effort = beam;
    expect_codec_parity(spec, 20, 30, DType::f32);
  }
  spec.bits = 3;
  spec.effort = 20;
  spec.norm = CodeNorm::float32;
  expect_codec_parity(spec, 17, 40, DType::f16);
}

TEST_F(CudaAdditiveSmall, Quantizers) {
  for (const int bits : {8, 6}) {
    LocalSearchParams params;
    params.codebooks = 3;
    params.bits = bits;
    const Case given = make_additive_case(Shape::gaussian, 3, bits, 16, 60);
    LocalSearchQuantizer quantizer(params);
    quantizer.set_values({given.words.row(0), static_cast<int64_t>(given.words.values.size()), {}});
    const int64_t bytes = quantizer.code_bytes();
    const auto size = static_cast<size_t>(60 * bytes);
    std::vector<uint8_t> expected(size);
    quantizer.encode(given.rows.view(), {expected.data(), 60, bytes}, {.rounds = 2}, on_cpu());
    const DeviceMatrix there(given.rows.view());
    const DeviceBytes codes(size);
    const MutableMatrixView made(codes.data(), DType::u8, {60, bytes, bytes}, MemorySpace::cuda(0));
    quantizer.encode(there.view(), made, {.rounds = 2});
    std::vector<uint8_t> found(size);
    codes.read(found.data());
    EXPECT_EQ(found, expected);
    // On from there, with codes on the device and on the host.
    quantizer.encode(given.rows.view(), {expected.data(), 60, bytes},
                     {.rounds = 2, .from_round = 2, .start = CodeStart::given}, on_cpu());
    quantizer.encode(there.view(), {found.data(), 60, bytes}, {.rounds = 2, .from_round = 2, .start = CodeStart::given},
                     on_cuda());
    EXPECT_EQ(found, expected);
    quantizer.encode(there.view(), made, {.rounds = 2, .from_round = 2, .start = CodeStart::given});
    codes.read(found.data());
    EXPECT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace kith
