// The search of inverted lists on the GPU where bounds are hard put: equal vectors, all magnitudes, lists far apart.
#include "cuda/searched_lists.hpp"

#include "core/ordered_key.hpp"
#include "ivf/scan/prepare_lists_cuda.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <tuple>
#include <vector>

namespace kith {
namespace {

using namespace searched_lists;

TEST_F(CudaIvfSearchSmall, EqualVectors) {
  for (const KeyKind kind : kKinds) {
    Lists lists = make_lists(product(32, 4, 8), kind, false, {2000, 2500, 900}, 18);
    std::fill(lists.codes.begin(), lists.codes.end(), uint8_t{3});
    expect_same(lists, make_queries(lists, 12, 3, 19), 25);
    lists = make_lists(additive(32, 4, 8, CodeNorm::cqint8), kind, true, {2000, 2500, 900}, 18);
    std::fill(lists.codes.begin(), lists.codes.end(), uint8_t{3});
    expect_same(lists, make_queries(lists, 12, 3, 19), 25);
    // Norms so small that many keys are 0.
    lists = make_lists(additive(32, 4, 8, CodeNorm::cqint8), kind, true, {2000, 2500, 900}, 18);
    for (size_t i = 0; i < lists.levels.size(); i += 3) lists.levels[i] = -1000;
    expect_same(lists, make_queries(lists, 12, 3, 19), 25);
    lists = make_lists(stored(20, DType::u8), kind, false, {1200, 900}, 20);
    for (uint8_t& code : lists.codes) code = code % 2;  // few distinct distances
    expect_same(lists, make_queries(lists, 12, 2, 21), 25);
  }
}

TEST_F(CudaIvfSearchSmall, ValuesOfAllMagnitudes) {
  for (const float scale : {1e-42f, 1e-30f, 1e-12f, 1e10f, 1e17f, 1e25f}) {
    for (const KeyKind kind : kKinds) {
      for (const float spread : {0.1f, 1000.0f}) {
        SCOPED_TRACE(::testing::Message() << scale << ", kind " << static_cast<int>(kind) << ", spread " << spread);
        const Lists lists = make_lists(product(24, 6, 8), kind, true, kLengths, 22, scale, spread);
        expect_same(lists, make_queries(lists, 8, 6, 23, scale), 12);
        const Lists sums = make_lists(additive(24, 3, 8, CodeNorm::cqint8), kind, true, kLengths, 22, scale, spread);
        expect_same(sums, make_queries(sums, 8, 6, 23, scale), 12);
        const Lists plain = make_lists(stored(24, DType::f32), kind, false, kLengths, 24, scale, spread);
        expect_same(plain, make_queries(plain, 8, 6, 25, scale), 12);
      }
    }
  }
}

// A list of most vectors, of all lengths over four decades around its centre, as k-means makes of such rows. Bounds
// that are made by row, and a sample of all of the list, leave hardly any query to be searched directly.
TEST_F(CudaIvfSearchSmall, NormsOverDecadesInALongList) {
  for (const auto& [cols, kind, k] :
       std::vector<std::tuple<int64_t, KeyKind, int64_t>>{{20, KeyKind::l2, 10},
                                                          {20, KeyKind::squared_l2, 100},
                                                          {20, KeyKind::inner_product, 10},
                                                          {20, KeyKind::cosine, 100},
                                                          {128, KeyKind::l2, 10},
                                                          {128, KeyKind::cosine, 10},
                                                          {200, KeyKind::squared_l2, 10},
                                                          {200, KeyKind::cosine, 10}}) {
    SCOPED_TRACE(::testing::Message() << cols << " columns, kind " << static_cast<int>(kind) << ", k " << k);
    Lists lists = make_lists(stored(cols, DType::f32), kind, false, {30000, 200, 150, 300, 1, 70}, 60, 1, 40);
    std::fill_n(lists.centres.begin(), cols, 0.0f);
    Numbers numbers(61);
    const auto fill = [&](float* row) {
      const float length = std::pow(10.0f, 2 * numbers.uniform());
      for (int64_t col = 0; col < cols; ++col) row[col] = numbers.uniform() * length;
    };
    for (int64_t row = 0; row < 30000; ++row) fill(reinterpret_cast<float*>(lists.codes.data()) + row * cols);
    Queries queries = make_queries(lists, 60, 4, 62);
    for (int64_t query = 0; query < queries.count; ++query) {
      fill(queries.values.data() + query * cols);
      uint64_t* const probes = queries.probes.data() + query * queries.slots;
      const bool has_long =
          std::any_of(probes, probes + queries.slots, [](uint64_t probe) { return row_of(probe) == 0; });
      if (!has_long) probes[0] = pack_neighbor(0, 0);
    }
    expect_same(lists, queries, k);
    const Way by_row{ProductEngine::automatic, 0, -1, true, 40, false, ScanTerm::none, true};
    const uint32_t directly = search_on_gpu(lists, queries, k, {}, int64_t{1} << 30, by_row).directly;
    if (k == 10 && kind != KeyKind::inner_product) {
      EXPECT_LE(directly, 3u);
    }
  }
}

// Over ten decades most vectors are no halves at all beside the longest: queries among them are compared directly, with
// what lies about as far from the centres as they do.
TEST_F(CudaIvfSearchSmall, NormsOverTenDecades) {
  for (const auto& [kind, k] :
       std::vector<std::tuple<KeyKind, int64_t>>{{KeyKind::l2, 10}, {KeyKind::squared_l2, 100}}) {
    const int64_t cols = 24;
    const std::vector<int64_t> lengths{20000, 5000, 3000, 600, 2049, 1};
    Lists lists = make_lists(stored(cols, DType::f32), kind, false, lengths, 60, 1, 40);
    Numbers numbers(61);
    const auto fill = [&](float* row, const float* centre) {
      const float length = std::pow(10.0f, 5 * numbers.uniform());
      for (int64_t col = 0; col < cols; ++col) row[col] = centre[col] + numbers.uniform() * length;
    };
    for (int64_t list = 0; list < 3; ++list)
      std::fill_n(lists.centres.begin() + list * cols, cols, 0.01f * static_cast<float>(list));
    auto* row = reinterpret_cast<float*>(lists.codes.data());
    for (size_t list = 0; list < lengths.size(); ++list) {
      for (int64_t i = 0; i < lengths[list]; ++i, row += cols)
        fill(row, lists.centres.data() + static_cast<int64_t>(list) * cols);
    }
    Queries queries = make_queries(lists, 200, 4, 62);
    for (int64_t query = 0; query < queries.count; ++query)
      fill(queries.values.data() + query * cols, lists.centres.data());
    expect_same(lists, queries, k);
    const Way by_row{ProductEngine::automatic, 0, -1, true, 40, false, ScanTerm::none, true};
    EXPECT_GT(search_on_gpu(lists, queries, k, {}, int64_t{1} << 30, by_row).directly, 20u);
  }
}

// What is not finite has keys too: NaN comes last.
TEST_F(CudaIvfSearchSmall, ValuesThatAreNotFinite) {
  for (const KeyKind kind : kKinds) {
    Lists lists = make_lists(stored(16, DType::f32), kind, false, kLengths, 26);
    for (size_t i = 0; i < lists.codes.size(); i += 4 * 16 * 37) {
      const float value = i % 2 == 0 ? INFINITY : NAN;
      std::memcpy(&lists.codes[i], &value, 4);
    }
    Queries queries = make_queries(lists, 8, 6, 27);
    expect_same(lists, queries, 300);
    queries.values[5] = NAN;
    queries.values[16 + 3] = INFINITY;
    std::fill_n(queries.values.begin() + 32, 16, 0.0f);
    expect_same(lists, queries, 12);
    Lists sums = make_lists(additive(16, 3, 8, CodeNorm::float32), kind, false, kLengths, 26);
    for (int64_t i = 0; i < sums.count(); i += 41) {
      set_norm_bits(sums.format, i % 2 == 0 ? 0x7F800000u : 0x7FC00000u,
                    &sums.codes[static_cast<size_t>(i * sums.format.bytes())]);
    }
    expect_same(sums, queries, 300);
  }
}

// Centres so far apart that a query's reach ends before other lists begin.
TEST_F(CudaIvfSearchSmall, ListsFarApart) {
  for (const CodeFormat& format :
       {product(128, 8, 8), product(128, 32, 8), stored(64, DType::f32), stored(128, DType::f16)}) {
    for (const bool residual : {false, true}) {
      for (const float spread : {30.0f, 300.0f, 3000.0f}) {
        SCOPED_TRACE(::testing::Message() << name_of(format) << ", residual " << residual << ", spread " << spread);
        const Lists lists =
            make_lists(format, KeyKind::l2, residual, std::vector<int64_t>(30, 400), 44, 1, spread);
        expect_same(lists, make_queries(lists, 40, 25, 45), 30);
      }
    }
  }
}

// Data whose mean is far larger than its spread: lookups with terms beside the lists rule out as others do.
TEST_F(CudaIvfSearchSmall, DataFarFromZero) {
  for (const CodeFormat& format : {product(128, 32, 8), product(128, 8, 8), product(80, 20, 8)}) {
    Lists lists = make_lists(format, KeyKind::squared_l2, true, std::vector<int64_t>(30, 700), 53);
    for (float& value : lists.centres) value += 1000;
    const Queries queries = make_queries(lists, 60, 12, 54);
    SCOPED_TRACE(name_of(format));
    EXPECT_EQ(expect_same(lists, queries, 30), 0u);
    for (const ScanTerm term : {ScanTerm::of_list, ScanTerm::of_vector}) {
      const Way way{ProductEngine::automatic, 0, 1, true, 40, false, term};
      EXPECT_EQ(search_on_gpu(lists, queries, 30, {}, int64_t{1} << 30, way).directly, 0u);
    }
  }
}

// Too many equal codes for the room of candidates, in lists whose other vectors are out of reach.
TEST_F(CudaIvfSearchSmall, MoreEqualVectorsThanCandidates) {
  for (const float spread : {4.0f, 300.0f}) {
    Lists lists = make_lists(product(32, 8, 8), KeyKind::squared_l2, true, {9000, 300, 8000, 400, 500, 50}, 46, 1, spread);
    for (size_t i = 0; i < lists.codes.size(); ++i) lists.codes[i] = lists.codes[i % 24];
    const Queries queries = make_queries(lists, 30, 6, 47);
    EXPECT_GT(expect_same(lists, queries, 20), 0u);
  }
}

// In the order of rows, as an index has them, only the first equal ones are candidates, whichever way they are found.
TEST_F(CudaIvfSearchSmall, RepeatedCodesInTheOrderOfRowsLeaveRoom) {
  for (const CodeFormat& format : {product(32, 8, 8), product(128, 32, 8), stored(20, DType::u8), scalar(24, 8)}) {
    Lists lists = make_lists(format, KeyKind::squared_l2, true, {9000, 300, 8000, 400, 500, 50, 70000}, 50, 1, 30);
    std::iota(lists.rows.begin(), lists.rows.end(), 0u);
    const auto bytes = static_cast<size_t>(format.bytes());
    for (size_t i = 0; i < lists.codes.size(); ++i) lists.codes[i] = lists.codes[i / bytes % 3 * bytes + i % bytes];
    const Queries queries = make_queries(lists, 15, 6, 51);
    for (const int64_t k : {1, 20, 700}) {
      SCOPED_TRACE(::testing::Message() << name_of(format) << ", k " << k);
      expect_same(lists, queries, k);
    }
    const Way ranked{ProductEngine::automatic, 0, -1, true, 40, true};
    const Way plain;
    const Found with = search_on_gpu(lists, queries, 20, {}, int64_t{1} << 30, ranked);
    EXPECT_LT(with.directly, search_on_gpu(lists, queries, 20, {}, int64_t{1} << 30, plain).directly);
  }
}

TEST_F(CudaIvfSearchSmall, RepeatedCodesAreRankedByRow) {
  Lists lists = make_lists(product(16, 4, 8), KeyKind::l2, true, {1000, 0, 200, 3000, 600}, 52);
  std::iota(lists.rows.begin(), lists.rows.end(), 0u);
  for (size_t i = 0; i < lists.codes.size(); ++i) {
    const size_t vector = i / 4;
    if (vector % 3 != 0) lists.codes[i] = static_cast<uint8_t>(vector % 3);  // two codes with a third of the list each
  }
  std::swap(lists.rows[4300], lists.rows[4301]);  // the last list is not in order
  const DeviceBytes offsets = on_device(lists.offsets);
  const DeviceBytes codes = on_device(lists.codes);
  const DeviceBytes rows = on_device(lists.rows);
  const DeviceBytes most(4);
  KITH_CUDA_CHECK(cudaMemset(most.data(), 0, 4));
  DeviceListsView view;
  view.codec.format = lists.format;
  view.lists = lists.lists();
  view.offsets = static_cast<const int64_t*>(offsets.data());
  view.codes = static_cast<const uint8_t*>(codes.data());
  view.rows = static_cast<const uint32_t*>(rows.data());
  view.count = lists.count();
  const DeviceBytes ranks(static_cast<size_t>(lists.count()) * 2);
  launch_count_repeats(view, static_cast<uint32_t*>(most.data()), nullptr);
  launch_rank_repeats(view, static_cast<uint16_t*>(ranks.data()), nullptr);
  uint32_t frequent = 0;
  most.read(&frequent);
  EXPECT_GE(frequent, 1000u);
  std::vector<uint16_t> found(static_cast<size_t>(lists.count()));
  ranks.read(found.data());
  for (int64_t list = 0; list < lists.lists(); ++list) {
    std::map<std::vector<uint8_t>, uint16_t> seen;
    for (int64_t i = lists.offsets[static_cast<size_t>(list)]; i < lists.offsets[static_cast<size_t>(list) + 1]; ++i) {
      const auto from = lists.codes.begin() + 4 * i;
      const uint16_t before = seen[{from, from + 4}]++;
      const bool known = i % 3 != 0 && (list == 0 || list == 3);
      EXPECT_EQ(found[static_cast<size_t>(i)], known ? before : 0) << list << ", " << i;
    }
  }
}

// More than a query has room for as candidates, in every engine: none of its queries is left to the direct search.
TEST_F(CudaIvfSearchSmall, ListsOfManyThousandEqualVectors) {
  for (const CodeFormat& format : {product(16, 4, 8), stored(20, DType::f32), product(160, 20, 8)}) {
    for (const KeyKind kind : {KeyKind::l2, KeyKind::inner_product}) {
      SCOPED_TRACE(::testing::Message() << name_of(format) << ", kind " << static_cast<int>(kind));
      Lists lists = make_lists(format, kind, true, {70'000, 300, 900}, 53);
      std::iota(lists.rows.begin(), lists.rows.end(), 0u);
      const auto bytes = static_cast<size_t>(format.bytes());
      for (size_t i = 0; i < lists.codes.size(); ++i) {
        if (i / bytes < 70'000 && i / bytes % 50 != 0) lists.codes[i] = lists.codes[bytes + i % bytes];
      }
      const Queries queries = make_queries(lists, 12, 3, 54);
      for (const int64_t k : {1, 30}) expect_same(lists, queries, k);
      const Way ranked{ProductEngine::automatic, 0, -1, true, 40, true};
      EXPECT_LE(search_on_gpu(lists, queries, 30, {}, int64_t{1} << 30, ranked).directly,
                has_differences(kind) ? 0u : 3u);
    }
  }
}

TEST_F(CudaIvfSearchSmall, MostRowsInOneListUnderAFilter) {
  std::vector<int64_t> lengths(50, 40);
  lengths[11] = 18000;
  const Lists lists = make_lists(product(128, 32, 8), KeyKind::l2, true, lengths, 48);
  std::vector<uint64_t> kept(static_cast<size_t>(lists.count() / 64 + 1), 0x5555555555555555u);
  for (const int64_t slots : {1, 8, 50}) expect_same(lists, make_queries(lists, 150, slots, 49), 100, kept);
}

}  // namespace
}  // namespace kith
