// The search of inverted lists on the GPU gives the bytes of a plain one: decode, canonical keys, sort.
#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"

#include "core/half.hpp"
#include "core/ordered_key.hpp"
#include "ivf/ivf_search_cuda.hpp"
#include "ivf/repeated_codes_cuda.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace kith {
namespace {

class CudaIvfSearchSmall : public OnCuda {};

struct Lists {
  CodeFormat format;
  KeyKind kind = KeyKind::l2;
  bool residual = false;
  bool has_centres = true;
  std::vector<int64_t> offsets;
  std::vector<uint8_t> codes;
  std::vector<uint32_t> rows;
  std::vector<float> centres;
  std::vector<float> codewords;
  std::vector<float> bases;
  std::vector<float> steps;
  std::vector<float> levels;

  bool by_norm() const { return has_norm_keys(format, kind); }
  int64_t lists() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t count() const { return offsets.back(); }
};

class Numbers {
 public:
  explicit Numbers(uint32_t seed) : random_(seed) {}
  float uniform() { return std::ldexp(static_cast<float>(random_() >> 8), -23) - 1; }
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_()) % limit; }
  std::vector<float> floats(int64_t count, float scale = 1) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = uniform() * scale;
    return values;
  }

 private:
  std::mt19937 random_;
};

float decoded(const Lists& lists, const uint8_t* code, int64_t col) {
  const CodeFormat& format = lists.format;
  if (format.kind == CodeKind::product) {
    const int64_t part = col / format.part_cols();
    const int64_t word = part * format.codewords() + sub_code(code, part, format.bits);
    return lists.codewords[static_cast<size_t>(word * format.part_cols() + col % format.part_cols())];
  }
  if (format.kind == CodeKind::additive) {
    float sum = 0;
    for (int64_t p = 0; p < format.parts; ++p) {
      const int64_t word = p * format.codewords() + sub_code(code, p, format.bits);
      const float value = lists.codewords[static_cast<size_t>(word * format.cols + col)];
      sum = p == 0 ? value : sum + value;
    }
    return sum;
  }
  if (format.kind == CodeKind::scalar) {
    const auto at = static_cast<size_t>(col);
    return std::fma(static_cast<float>(sub_code(code, col, format.bits)), lists.steps[at], lists.bases[at]);
  }
  if (format.dtype == DType::u8) return static_cast<float>(code[col]);
  if (format.dtype == DType::f16) {
    Half half;
    std::memcpy(&half, code + 2 * col, 2);
    return static_cast<float>(half);
  }
  float value;
  std::memcpy(&value, code + 4 * col, 4);
  return value;
}

// Lists of these lengths with random codes; values of about `scale`, centres `spread` times as far.
Lists make_lists(CodeFormat format, KeyKind kind, bool residual, const std::vector<int64_t>& lengths, uint32_t seed,
                 float scale = 1, float spread = 4) {
  Numbers numbers(seed);
  Lists lists;
  lists.format = format;
  lists.kind = kind;
  lists.residual = residual;
  lists.offsets.push_back(0);
  for (const int64_t length : lengths) lists.offsets.push_back(lists.offsets.back() + length);
  const int64_t count = lists.count();
  lists.centres = numbers.floats(lists.lists() * format.cols, scale * spread);
  if (format.kind == CodeKind::product) lists.codewords = numbers.floats(format.codewords() * format.cols, scale);
  if (format.kind == CodeKind::additive) {
    lists.codewords = numbers.floats(format.parts * format.codewords() * format.cols, scale);
    // About what norms are.
    const float usual = scale * scale * static_cast<float>(format.cols) / 3 *
                        (static_cast<float>(format.parts) + (residual ? spread * spread : 0.0f));
    lists.levels = numbers.floats(kNormLevels, usual / 10);
    for (float& level : lists.levels) level += usual;
  }
  if (format.kind == CodeKind::scalar) {
    lists.bases = numbers.floats(format.cols, scale);
    lists.steps = numbers.floats(format.cols, scale / static_cast<float>(1 << format.bits));
  }
  lists.codes.resize(static_cast<size_t>(count * format.bytes()));
  for (int64_t list = 0; list < lists.lists(); ++list) {
    const float* const centre = &lists.centres[static_cast<size_t>(list * format.cols)];
    for (int64_t i = lists.offsets[static_cast<size_t>(list)]; i < lists.offsets[static_cast<size_t>(list) + 1]; ++i) {
      uint8_t* const code = &lists.codes[static_cast<size_t>(i * format.bytes())];
      if (format.kind != CodeKind::stored || format.dtype == DType::u8) {
        for (int64_t byte = 0; byte < format.bytes(); ++byte) code[byte] = static_cast<uint8_t>(numbers.below(256));
        if (format.norm == CodeNorm::float32) {
          uint32_t bits;
          std::memcpy(&bits, &lists.levels[numbers.below(256)], sizeof bits);
          set_norm_bits(format, bits, code);
        }
        continue;
      }
      for (int64_t col = 0; col < format.cols; ++col) {
        const float value = numbers.uniform() * scale + (residual ? 0.0f : centre[col]);
        const Half half = half_of(value);
        if (format.dtype == DType::f16) std::memcpy(code + 2 * col, &half, 2);
        if (format.dtype == DType::f32) std::memcpy(code + 4 * col, &value, 4);
      }
    }
  }
  // Rows in an order of their own.
  lists.rows.resize(static_cast<size_t>(count));
  std::iota(lists.rows.begin(), lists.rows.end(), 0u);
  std::shuffle(lists.rows.begin(), lists.rows.end(), std::mt19937(seed));
  return lists;
}

struct Queries {
  std::vector<float> values;
  std::vector<uint64_t> probes;
  int64_t count = 0;
  int64_t slots = 0;
};

// Queries near one list each; its own list first, then others in a random order.
Queries make_queries(const Lists& lists, int64_t count, int64_t slots, uint32_t seed, float scale = 1) {
  Numbers numbers(seed);
  Queries queries{{}, {}, count, slots};
  std::mt19937 random(seed + 1);
  for (int64_t q = 0; q < count; ++q) {
    std::vector<uint32_t> order(static_cast<size_t>(lists.lists()));
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random);
    for (int64_t col = 0; col < lists.format.cols; ++col) {
      queries.values.push_back(numbers.uniform() * scale +
                               lists.centres[static_cast<size_t>(order[0] * lists.format.cols + col)]);
    }
    for (int64_t slot = 0; slot < slots; ++slot) {
      const bool real = slot < lists.lists();
      queries.probes.push_back(real ? pack_neighbor(static_cast<uint32_t>(slot), order[static_cast<size_t>(slot)])
                                    : kPadding);
    }
  }
  return queries;
}

float key_by_norm(const Lists& lists, const float* query, const float* vector, int64_t place) {
  double lanes[kCanonicalLanes] = {};
  for (int64_t c = 0; c < lists.format.cols; ++c) {
    double& lane = lanes[c % kCanonicalLanes];
    lane = std::fma(static_cast<double>(query[c]), static_cast<double>(vector[c]), lane);
  }
  CodecView codec;
  codec.format = lists.format;
  codec.levels = lists.levels.data();
  const float norm = code_norm(codec, &lists.codes[static_cast<size_t>(place * lists.format.bytes())]);
  return norm_key(lists.kind, canonical_squared_norm(query, lists.format.cols), canonical_tree(lanes), norm);
}

template <KeyKind kKind>
std::vector<uint64_t> plain_search(const Lists& lists, const Queries& queries, int64_t k,
                                   const std::vector<uint64_t>& kept) {
  const int64_t cols = lists.format.cols;
  std::vector<float> stored(static_cast<size_t>(lists.count() * cols));
  for (int64_t list = 0; list < lists.lists(); ++list) {
    for (int64_t i = lists.offsets[static_cast<size_t>(list)]; i < lists.offsets[static_cast<size_t>(list) + 1]; ++i) {
      for (int64_t col = 0; col < cols; ++col) {
        const float value = decoded(lists, &lists.codes[static_cast<size_t>(i * lists.format.bytes())], col);
        const float centre = lists.centres[static_cast<size_t>(list * cols + col)];
        stored[static_cast<size_t>(i * cols + col)] = lists.residual ? centre + value : value;
      }
    }
  }
  std::vector<uint64_t> neighbors;
  for (int64_t q = 0; q < queries.count; ++q) {
    std::vector<uint64_t> found;
    for (int64_t slot = 0; slot < queries.slots; ++slot) {
      const uint64_t probe = queries.probes[static_cast<size_t>(q * queries.slots + slot)];
      if (probe == kPadding) continue;
      for (int64_t i = lists.offsets[row_of(probe)]; i < lists.offsets[row_of(probe) + 1]; ++i) {
        const uint32_t row = lists.rows[static_cast<size_t>(i)];
        if (!kept.empty() && (kept[row / 64] >> (row % 64) & 1) == 0) continue;
        const float* const values = &queries.values[static_cast<size_t>(q * cols)];
        const float* const vector = &stored[static_cast<size_t>(i * cols)];
        const float key = lists.by_norm() ? key_by_norm(lists, values, vector, i)
                                          : canonical_pair<kKind>(values, vector, cols);
        found.push_back(pack_neighbor(ordered_key(key), row));
      }
    }
    std::sort(found.begin(), found.end());
    found.resize(static_cast<size_t>(k), kPadding);
    neighbors.insert(neighbors.end(), found.begin(), found.end());
  }
  return neighbors;
}

std::vector<uint64_t> plain_search(const Lists& lists, const Queries& queries, int64_t k,
                                   const std::vector<uint64_t>& kept) {
  return visit_kind(lists.kind, [&](auto tag) { return plain_search<decltype(tag)::kind>(lists, queries, k, kept); });
}

template <typename T>
DeviceArray on_device(const std::vector<T>& values) {
  return DeviceArray(values.data(), values.size() * sizeof(T));
}

struct Found {
  std::vector<uint64_t> neighbors;
  uint32_t directly = 0;
};

// How a search is done, which must not change what it finds.
struct Way {
  ProductEngine engine = ProductEngine::automatic;
  int sample_every = 0;  // 0: as planned
  int tables = -1;       // negative: as planned
  bool halves = true;    // kept, of all but product codes
  int multiprocessors = 40;  // two: each block takes many items, one after the other
  bool ranks = false;        // of repeated codes
};

Found search_on_gpu(const Lists& lists, const Queries& queries, int64_t k, const std::vector<uint64_t>& kept,
                    int64_t most_bytes, const Way& way) {
  const DeviceArray offsets = on_device(lists.offsets);
  const DeviceArray codes = on_device(lists.codes);
  const DeviceArray rows = on_device(lists.rows);
  const DeviceArray centres = on_device(lists.centres);
  const DeviceArray codewords = on_device(lists.codewords);
  const DeviceArray bases = on_device(lists.bases);
  const DeviceArray steps = on_device(lists.steps);
  const DeviceArray levels = on_device(lists.levels);
  const DeviceArray values = on_device(queries.values);
  const DeviceArray probes = on_device(queries.probes);
  const DeviceArray bits = on_device(kept);
  const DeviceArray out(static_cast<size_t>(queries.count * k) * 8);
  IvfSearchTask task;
  DeviceListsView& view = task.lists;
  view.kind = lists.kind;
  view.codec = {lists.format, static_cast<const float*>(bases.data()), static_cast<const float*>(steps.data()),
                static_cast<const float*>(codewords.data()), static_cast<const float*>(levels.data())};
  view.residual = lists.residual;
  view.lists = lists.lists();
  view.centres = lists.has_centres ? static_cast<const float*>(centres.data()) : nullptr;
  view.offsets = static_cast<const int64_t*>(offsets.data());
  view.codes = static_cast<const uint8_t*>(codes.data());
  view.rows = static_cast<const uint32_t*>(rows.data());
  view.count = lists.count();
  const PreparedListsLayout layout(view, way.halves);
  const DeviceArray prepared(static_cast<size_t>(layout.bytes));
  task.prepared = layout.in(static_cast<std::byte*>(prepared.data()), view);
  launch_prepare_lists(view, task.prepared, nullptr);
  task.queries = static_cast<const float*>(values.data());
  task.query_stride = lists.format.cols;
  task.probes = static_cast<const uint64_t*>(probes.data());
  task.kept = kept.empty() ? nullptr : static_cast<const uint64_t*>(bits.data());
  task.neighbors = static_cast<uint64_t*>(out.data());
  task.engine = way.engine;
  const DeviceArray ranks(static_cast<size_t>(std::max<int64_t>(1, lists.count())) * 2);
  if (way.ranks) {
    launch_rank_repeats(view, static_cast<uint16_t*>(ranks.data()), nullptr);
    task.repeats = static_cast<const uint16_t*>(ranks.data());
  }
  IvfSearchShape shape;
  shape.sample_every = way.sample_every;
  shape.tables = way.tables;
  shape.format = lists.format;
  shape.queries = queries.count;
  shape.slots = queries.slots;
  shape.k = k;
  shape.lists = lists.lists();
  shape.vectors = lists.count();
  if (!kept.empty()) {
    shape.kept = 0;
    for (const uint64_t word : kept) shape.kept += __builtin_popcountll(word);
  }
  shape.multiprocessors = way.multiprocessors;
  const IvfSearchPlan plan = plan_ivf_search(shape, most_bytes);
  const DeviceArray memory(static_cast<size_t>(plan.bytes));
  launch_ivf_search(task, shape, plan, static_cast<std::byte*>(memory.data()), nullptr);
  KITH_CUDA_CHECK(cudaDeviceSynchronize());
  Found found;
  found.neighbors.resize(static_cast<size_t>(queries.count * k));
  out.read(found.neighbors.data());
  KITH_CUDA_CHECK(cudaMemcpy(&found.directly, directly_searched(static_cast<std::byte*>(memory.data())), 4,
                             cudaMemcpyDeviceToHost));
  return found;
}

// In every way. Returns how many queries were searched directly, as planned.
uint32_t expect_same(const Lists& lists, const Queries& queries, int64_t k, const std::vector<uint64_t>& kept = {},
                     int64_t most_bytes = int64_t{1} << 30) {
  const std::vector<uint64_t> expected = plain_search(lists, queries, k, kept);
  uint32_t directly = 0;
  for (const Way& way : {Way{}, Way{ProductEngine::mma, 0}, Way{ProductEngine::automatic, 1},
                         Way{ProductEngine::automatic, 3}, Way{ProductEngine::mma, 3},
                         Way{ProductEngine::automatic, 0, 1}, Way{ProductEngine::automatic, 3, 1},
                         Way{ProductEngine::automatic, 0, -1, false}, Way{ProductEngine::mma, 3, -1, false},
                         Way{ProductEngine::automatic, 0, -1, true, 2}, Way{ProductEngine::automatic, 0, -1, false, 2},
                         Way{ProductEngine::automatic, 3, -1, false, 2},
                         Way{ProductEngine::automatic, 0, -1, true, 40, true}}) {
    const bool keeps_halves = PreparedLists::wants_halves(lists.format);
    const bool sums = lists.format.kind == CodeKind::additive;
    if (keeps_halves ? way.tables > 0 && !sums : !way.halves) continue;  // these have no such way
    SCOPED_TRACE(testing::Message() << "engine " << static_cast<int>(way.engine) << ", sample " << way.sample_every
                                    << ", tables " << way.tables << ", halves " << way.halves << ", multiprocessors "
                                    << way.multiprocessors << ", ranks " << way.ranks);
    const Found found = search_on_gpu(lists, queries, k, kept, most_bytes, way);
    const bool planned =
        way.engine == ProductEngine::automatic && way.sample_every == 0 && way.tables < 0 && way.halves;
    if (planned && way.multiprocessors == Way().multiprocessors && !way.ranks) directly = found.directly;
    int64_t wrong = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      if (expected[i] == found.neighbors[i]) continue;
      if (wrong++ < 3) {
        ADD_FAILURE() << "query " << i / static_cast<size_t>(k) << ", place " << i % static_cast<size_t>(k)
                      << ": expected " << key_of_ordered(ordered_of(expected[i])) << " of " << row_of(expected[i])
                      << ", got " << key_of_ordered(ordered_of(found.neighbors[i])) << " of "
                      << row_of(found.neighbors[i]);
      }
    }
    EXPECT_EQ(wrong, 0);
  }
  return directly;
}

CodeFormat product(int64_t cols, int64_t parts, int bits) { return {CodeKind::product, cols, DType::f32, bits, parts}; }
CodeFormat scalar(int64_t cols, int bits) { return {CodeKind::scalar, cols, DType::f32, bits, 0}; }
CodeFormat stored(int64_t cols, DType dtype) { return {CodeKind::stored, cols, dtype, 8, 0}; }

CodeFormat additive(int64_t cols, int64_t books, int bits, CodeNorm norm = CodeNorm::decoded) {
  CodeFormat format{CodeKind::additive, cols, DType::f32, bits, books};
  format.norm = norm;
  return format;
}

std::string name_of(const CodeFormat& format) {
  const char* const kinds[] = {"stored", "scalar", "product", "additive"};
  return std::string(kinds[static_cast<int>(format.kind)]) + " " + std::string(name_of(format.dtype)) + " of " +
         std::to_string(format.cols) + " columns, " + std::to_string(format.bits) + " bits, " +
         std::to_string(format.parts) + " parts, norm " + std::to_string(static_cast<int>(format.norm));
}

std::vector<CodeFormat> formats_of(int64_t cols) {
  std::vector<CodeFormat> formats{stored(cols, DType::f32), stored(cols, DType::f16), stored(cols, DType::u8),
                                  scalar(cols, 8),          scalar(cols, 6),          scalar(cols, 4),
                                  product(cols, 1, 8)};
  for (const int64_t parts : {2, 5, 8, 16, 32, 50, 65}) {
    if (cols % parts != 0) continue;
    formats.push_back(product(cols, parts, 8));
    formats.push_back(product(cols, parts, 4 + static_cast<int>(parts % 4)));
  }
  for (const CodeNorm norm : {CodeNorm::decoded, CodeNorm::float32, CodeNorm::cqint8}) {
    formats.push_back(additive(cols, 3, 8, norm));
    formats.push_back(additive(cols, 2, 5, norm));
  }
  return formats;
}

IvfSearchPlan planned(const CodeFormat& format, int64_t queries, int64_t slots, int64_t lists, int64_t vectors) {
  IvfSearchShape shape;
  shape.format = format;
  shape.queries = queries;
  shape.slots = slots;
  shape.k = 100;
  shape.lists = lists;
  shape.vectors = vectors;
  shape.multiprocessors = 132;
  return plan_ivf_search(shape, int64_t{8} << 30);
}

// Lookups where hardly any queries share a list and pairs are many, products elsewhere: what was measured to be quicker.
TEST(IvfSearchPlan, TablesForListsThatAreNotShared) {
  EXPECT_TRUE(planned(product(80, 20, 8), 10000, 16, 262144, 1'000'000'000).tables);
  EXPECT_TRUE(planned(product(128, 8, 8), 10000, 16, 262144, 1'000'000'000).tables);
  EXPECT_FALSE(planned(product(128, 8, 8), 10000, 1, 4096, 10'000'000).tables);
  EXPECT_FALSE(planned(product(128, 8, 8), 10000, 32, 4096, 10'000'000).tables);
  EXPECT_FALSE(planned(product(128, 32, 8), 10000, 2, 32768, 10'000'000).tables);
  EXPECT_FALSE(planned(product(128, 8, 8), 100, 32, 4096, 10'000'000).tables);
  EXPECT_FALSE(planned(product(128, 32, 8), 1, 32, 4096, 10'000'000).tables);
  EXPECT_FALSE(planned(product(80, 20, 8), 10000, 16, 65536, 100'000'000).tables);
  EXPECT_FALSE(planned(product(128, 32, 4), 10000, 16, 262144, 1'000'000'000).tables);  // has no such tables
  EXPECT_FALSE(planned(stored(128, DType::f32), 10000, 16, 262144, 1'000'000'000).tables);
}

// One long list: a sample of all of it, and room for what its k-th value lets pass.
TEST(IvfSearchPlan, ALongListIsSampledThroughout) {
  for (const int64_t rows : {300'000, 1'000'000, 5'000'000}) {
    const IvfSearchPlan plan = planned(additive(128, 7, 8), 10000, 1, 1, rows);
    EXPECT_GE(plan.cut.sample_every * plan.cut.kept_rows, rows) << rows;
    EXPECT_LE(plan.values, kMostFirstValues) << rows;
    EXPECT_GE(plan.candidates, 100 * rows / plan.values * 5 / 4) << rows;
    EXPECT_FALSE(plan.direct);
  }
  EXPECT_EQ(planned(additive(128, 7, 8), 10000, 1, 1, 100'000).cut.sample_every, 1);
}

// A sample where reading lists twice would take longer, or where first pairs are few of all.
TEST(IvfSearchPlan, SamplesOfLongCodesAndOfManyLists) {
  EXPECT_EQ(planned(product(128, 8, 8), 10000, 8, 4096, 10'000'000).cut.sample_every, 1);
  EXPECT_EQ(planned(product(128, 8, 8), 10000, 128, 4096, 10'000'000).cut.sample_every, 4);
  EXPECT_EQ(planned(stored(128, DType::f32), 10000, 32, 4096, 10'000'000).cut.sample_every, 4);
  EXPECT_EQ(planned(stored(128, DType::f32), 10000, 8, 4096, 10'000'000).cut.sample_every, 1);
  EXPECT_EQ(planned(stored(128, DType::f32), 10000, 1, 4096, 10'000'000).cut.sample_every, 1);
}

constexpr KeyKind kKinds[] = {KeyKind::l2, KeyKind::squared_l2, KeyKind::inner_product, KeyKind::cosine};
const std::vector<int64_t> kLengths{40, 0, 33, 700, 1, 128, 0, 310, 64, 95, 200, 31};

TEST_F(CudaIvfSearchSmall, EveryCodeMetricAndWidth) {
  uint32_t seed = 1;
  for (const int64_t cols : {1, 2, 16, 100, 128, 130, 260}) {
    for (const CodeFormat& format : formats_of(cols)) {
      for (const KeyKind kind : kKinds) {
        for (const bool residual : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << name_of(format) << ", kind " << static_cast<int>(kind) << ", residual " << residual);
          const Lists lists = make_lists(format, kind, residual, kLengths, ++seed);
          expect_same(lists, make_queries(lists, 4, 5, seed), 10);
        }
      }
    }
  }
}

TEST_F(CudaIvfSearchSmall, OrdinaryDataIsSearchedByProducts) {
  for (const CodeFormat& format :
       {product(128, 8, 8), product(128, 32, 8), product(128, 64, 8), product(80, 20, 8), stored(128, DType::f32),
        stored(128, DType::f16), scalar(128, 8), stored(200, DType::f32), additive(128, 7, 8),
        additive(128, 7, 8, CodeNorm::cqint8), additive(200, 4, 8, CodeNorm::qint8)}) {
    for (const KeyKind kind : kKinds) {
      const Lists lists = make_lists(format, kind, true, std::vector<int64_t>(30, 700), 77);
      for (const int64_t slots : {1, 4, 25}) {
        SCOPED_TRACE(testing::Message() << name_of(format) << ", kind " << static_cast<int>(kind) << ", " << slots);
        const Queries queries = make_queries(lists, 20, slots, 78);
        EXPECT_LE(expect_same(lists, queries, 30), kind == KeyKind::l2 || kind == KeyKind::squared_l2 ? 0u : 3u);
      }
    }
  }
}

TEST_F(CudaIvfSearchSmall, ManyQueriesOfAList) {
  for (const CodeFormat& format : {product(64, 16, 8), stored(40, DType::f32), stored(150, DType::f16)}) {
    const Lists lists = make_lists(format, KeyKind::squared_l2, true, {500, 900}, 5);
    for (const int64_t count : {1, 7, 8, 9, 127, 300, 700}) {
      SCOPED_TRACE(testing::Message() << name_of(format) << ", " << count << " queries");
      expect_same(lists, make_queries(lists, count, 2, 6), 20);
    }
  }
}

// Most of the vectors in one list, so that it is longer than what the first pass keeps.
TEST_F(CudaIvfSearchSmall, OneHugeList) {
  std::vector<int64_t> lengths(40, 20);
  lengths[7] = 20000;
  for (const KeyKind kind : kKinds) {
    const Lists lists = make_lists(product(32, 8, 8), kind, true, lengths, 8);
    for (const int64_t slots : {1, 3, 40}) expect_same(lists, make_queries(lists, 40, slots, 9), 50);
  }
}

TEST_F(CudaIvfSearchSmall, OneListWithoutCentre) {
  for (const CodeFormat& format :
       {product(32, 8, 8), product(30, 10, 5), scalar(24, 8), stored(16, DType::f32), additive(32, 3, 8),
        additive(30, 7, 8, CodeNorm::cqint8), additive(24, 3, 8, CodeNorm::float32), additive(24, 3, 5)}) {
    for (const KeyKind kind : kKinds) {
      for (const float scale : {1.0f, 1e-30f, 1e17f}) {
        Lists lists = make_lists(format, kind, false, {3000}, 10, scale);
        lists.has_centres = false;
        expect_same(lists, make_queries(lists, scale == 1 ? 20 : 3, 1, 11, scale), 15);
      }
    }
  }
}

// So long that its threshold comes from a sample of all of it.
TEST_F(CudaIvfSearchSmall, OneLongList) {
  for (const CodeFormat& format :
       {product(16, 4, 8), additive(16, 3, 8), additive(16, 3, 8, CodeNorm::cqint8)}) {
    for (const KeyKind kind : {KeyKind::squared_l2, KeyKind::inner_product}) {
      Lists lists = make_lists(format, kind, false, {140'000}, 10);
      lists.has_centres = false;
      SCOPED_TRACE(testing::Message() << name_of(format) << ", kind " << static_cast<int>(kind));
      EXPECT_EQ(expect_same(lists, make_queries(lists, 9, 1, 11), 40), 0u);
      expect_same(lists, make_queries(lists, 1, 1, 12), 40);
    }
  }
}

// More neighbours than vectors, and lists that all have nothing.
TEST_F(CudaIvfSearchSmall, FewerVectorsThanNeighbors) {
  for (const KeyKind kind : kKinds) {
    const Lists lists = make_lists(product(16, 4, 8), kind, true, kLengths, 12);
    for (const int64_t k : {1, 50, 400, 1700, 3000}) expect_same(lists, make_queries(lists, 6, 4, 13), k);
    const Lists empty = make_lists(product(16, 4, 8), kind, true, {0, 0, 0}, 14);
    expect_same(empty, make_queries(empty, 3, 2, 15), 5);
  }
}

// Every list, and more probes than there are lists.
TEST_F(CudaIvfSearchSmall, AllLists) {
  const Lists lists = make_lists(scalar(48, 8), KeyKind::l2, false, kLengths, 16);
  for (const int64_t slots : {12, 20}) expect_same(lists, make_queries(lists, 30, slots, 17), 40);
}

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
        SCOPED_TRACE(testing::Message() << scale << ", kind " << static_cast<int>(kind) << ", spread " << spread);
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

TEST_F(CudaIvfSearchSmall, RowsThatAFilterKeeps) {
  for (const CodeFormat& format :
       {product(32, 8, 8), stored(20, DType::f32), additive(32, 3, 8), additive(32, 3, 8, CodeNorm::qint8)}) {
    for (const KeyKind kind : kKinds) {
      const Lists lists = make_lists(format, kind, true, std::vector<int64_t>(20, 400), 28);
      for (const uint32_t one_in : {2u, 10u, 500u}) {
        Numbers numbers(29);
        std::vector<uint64_t> kept(static_cast<size_t>(lists.count() / 64 + 1));
        for (int64_t row = 0; row < lists.count(); ++row) {
          if (numbers.below(one_in) == 0) kept[static_cast<size_t>(row / 64)] |= uint64_t{1} << (row % 64);
        }
        expect_same(lists, make_queries(lists, 15, 8, 30), 12, kept);
      }
    }
  }
}

// So many queries that a warp re-ranks each; with equal codes some have too many candidates for that, and some for a
// block.
TEST_F(CudaIvfSearchSmall, MoreThanAThousandQueries) {
  for (const KeyKind kind : kKinds) {
    for (const CodeFormat& format : {product(32, 8, 8), stored(24, DType::f32), stored(24, DType::f16), scalar(20, 8)}) {
      SCOPED_TRACE(testing::Message() << name_of(format) << ", kind " << static_cast<int>(kind));
      const Lists lists = make_lists(format, kind, true, std::vector<int64_t>(30, 150), 61);
      for (const int64_t k : {1, 20, 170}) expect_same(lists, make_queries(lists, 1100, 5, 62), k);
    }
    Lists equal = make_lists(product(16, 4, 8), kind, false, {900, 300, 2500, 40}, 63);
    for (size_t i = 0; i < equal.codes.size(); ++i) equal.codes[i] = static_cast<uint8_t>(equal.codes[i] % 2);
    expect_same(equal, make_queries(equal, 1030, 2, 64), 30);
  }
}

// Lists whose last tile has any number of vectors, of all codes that the scan reads in a way of its own.
TEST_F(CudaIvfSearchSmall, ListsOfEveryLength) {
  std::vector<int64_t> lengths;
  for (const int64_t around : {0, 8, 16, 32, 64, 128, 192, 256, 320}) {
    for (int64_t length = std::max<int64_t>(0, around - 2); length <= around + 2; ++length) lengths.push_back(length);
  }
  for (const CodeFormat& format :
       {product(128, 8, 8), product(128, 16, 8), product(128, 32, 8), product(128, 64, 8), product(80, 20, 8),
        product(48, 4, 8), product(40, 20, 8), stored(128, DType::f32), stored(96, DType::f16), scalar(128, 8)}) {
    SCOPED_TRACE(name_of(format));
    const Lists lists = make_lists(format, KeyKind::squared_l2, true, lengths, 41);
    const auto all = static_cast<int64_t>(lengths.size());
    expect_same(lists, make_queries(lists, 70, all, 42), 10);
    expect_same(lists, make_queries(lists, 300, 6, 43), 20);
  }
}

// Centres so far apart that a query's reach ends before other lists begin.
TEST_F(CudaIvfSearchSmall, ListsFarApart) {
  for (const CodeFormat& format :
       {product(128, 8, 8), product(128, 32, 8), stored(64, DType::f32), stored(128, DType::f16)}) {
    for (const bool residual : {false, true}) {
      for (const float spread : {30.0f, 300.0f, 3000.0f}) {
        SCOPED_TRACE(testing::Message() << name_of(format) << ", residual " << residual << ", spread " << spread);
        const Lists lists =
            make_lists(format, KeyKind::l2, residual, std::vector<int64_t>(30, 400), 44, 1, spread);
        expect_same(lists, make_queries(lists, 40, 25, 45), 30);
      }
    }
  }
}

// So many equal codes that candidates have no room, in lists of which the others are out of reach.
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
      SCOPED_TRACE(testing::Message() << name_of(format) << ", k " << k);
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
  const DeviceArray offsets = on_device(lists.offsets);
  const DeviceArray codes = on_device(lists.codes);
  const DeviceArray rows = on_device(lists.rows);
  const DeviceArray most(4);
  KITH_CUDA_CHECK(cudaMemset(most.data(), 0, 4));
  DeviceListsView view;
  view.codec.format = lists.format;
  view.lists = lists.lists();
  view.offsets = static_cast<const int64_t*>(offsets.data());
  view.codes = static_cast<const uint8_t*>(codes.data());
  view.rows = static_cast<const uint32_t*>(rows.data());
  view.count = lists.count();
  const DeviceArray ranks(static_cast<size_t>(lists.count()) * 2);
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

TEST_F(CudaIvfSearchSmall, MostRowsInOneListUnderAFilter) {
  std::vector<int64_t> lengths(50, 40);
  lengths[11] = 18000;
  const Lists lists = make_lists(product(128, 32, 8), KeyKind::l2, true, lengths, 48);
  std::vector<uint64_t> kept(static_cast<size_t>(lists.count() / 64 + 1), 0x5555555555555555u);
  for (const int64_t slots : {1, 8, 50}) expect_same(lists, make_queries(lists, 150, slots, 49), 100, kept);
}

TEST_F(CudaIvfSearchSmall, EveryBudgetGivesTheSameBytes) {
  const Lists lists = make_lists(product(32, 8, 8), KeyKind::l2, true, std::vector<int64_t>(30, 500), 31);
  const Queries queries = make_queries(lists, 100, 10, 32);
  for (const int64_t bytes : {int64_t{1}, int64_t{300} << 10, int64_t{3} << 20})
    expect_same(lists, queries, 10, {}, bytes);
}

}  // namespace
}  // namespace kith
