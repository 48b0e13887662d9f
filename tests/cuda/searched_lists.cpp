#include "cuda/searched_lists.hpp"

#include "core/half.hpp"
#include "core/ordered_key.hpp"
#include "ivf/scan/prepare_lists_cuda.hpp"
#include "ivf/scan/scan_lists_task_cuda.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace kith::searched_lists {
namespace {

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
        const float key =
            lists.by_norm() ? key_by_norm(lists, values, vector, i) : canonical_pair<kKind>(values, vector, cols);
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

}  // namespace

Lists make_lists(CodeFormat format, KeyKind kind, bool residual, const std::vector<int64_t>& lengths, uint32_t seed,
                 float scale, float spread) {
  Numbers numbers(seed);
  Lists lists;
  lists.format = format;
  lists.kind = kind;
  lists.residual = residual;
  lists.offsets.push_back(0);
  for (const int64_t length : lengths) lists.offsets.push_back(lists.offsets.back() + length);
  const int64_t count = lists.count();
  lists.centres = numbers.floats(lists.lists() * format.cols, scale * spread);
  if (kind == KeyKind::cosine) {  // as an index trains them
    for (int64_t list = 0; list < lists.lists(); ++list) {
      float* const centre = &lists.centres[static_cast<size_t>(list * format.cols)];
      const double inverse_norm = canonical_inverse_norm(canonical_squared_norm(centre, format.cols));
      for (int64_t col = 0; col < format.cols; ++col) centre[col] = static_cast<float>(centre[col] * inverse_norm);
    }
  }
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

Queries make_queries(const Lists& lists, int64_t count, int64_t slots, uint32_t seed, float scale) {
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

Found search_on_gpu(const Lists& lists, const Queries& queries, int64_t k, const std::vector<uint64_t>& kept,
                    int64_t most_bytes, const Way& way) {
  const DeviceBytes offsets = on_device(lists.offsets);
  const DeviceBytes codes = on_device(lists.codes);
  const DeviceBytes rows = on_device(lists.rows);
  const DeviceBytes centres = on_device(lists.centres);
  const DeviceBytes codewords = on_device(lists.codewords);
  const DeviceBytes bases = on_device(lists.bases);
  const DeviceBytes steps = on_device(lists.steps);
  const DeviceBytes levels = on_device(lists.levels);
  const DeviceBytes values = on_device(queries.values);
  const DeviceBytes probes = on_device(queries.probes);
  const DeviceBytes bits = on_device(kept);
  const DeviceBytes out(static_cast<size_t>(queries.count * k) * 8);
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
  const DeviceBytes prepared(static_cast<size_t>(layout.bytes));
  task.prepared = layout.in(static_cast<std::byte*>(prepared.data()), view);
  view.unit = layout.takes_unit_vectors(view.kind);
  view.inverse_norms = task.prepared.inverse_norms;
  const bool by_row = way.rows && view.key().has_distances();
  const DeviceBytes row_terms(static_cast<size_t>(std::max<int64_t>(1, lists.count())) * 8);
  launch_prepare_lists(view, task.prepared, nullptr);
  if (by_row) {
    task.prepared.upper_terms = static_cast<float*>(row_terms.data());
    task.prepared.lower_terms = task.prepared.upper_terms + lists.count();
    launch_row_terms(view, task.prepared, nullptr);
  }
  task.queries = static_cast<const float*>(values.data());
  task.query_stride = lists.format.cols;
  task.probes = static_cast<const uint64_t*>(probes.data());
  task.kept = kept.empty() ? nullptr : static_cast<const uint64_t*>(bits.data());
  task.neighbors = static_cast<uint64_t*>(out.data());
  task.engine = way.engine;
  const DeviceBytes ranks(static_cast<size_t>(std::max<int64_t>(1, lists.count())) * 2);
  if (way.ranks) {
    launch_rank_repeats(view, static_cast<uint16_t*>(ranks.data()), nullptr);
    task.repeats = static_cast<const uint16_t*>(ranks.data());
  }
  IvfSearchShape shape;
  shape.kind = lists.kind;
  shape.unit = view.unit;
  shape.term = way.term;
  shape.sample_every = way.sample_every;
  shape.tables = way.tables;
  shape.format = lists.format;
  shape.queries = queries.count;
  shape.slots = queries.slots;
  shape.k = k;
  shape.lists = lists.lists();
  shape.vectors = lists.count();
  shape.row_terms = by_row;
  for (int64_t list = 0; list < lists.lists(); ++list) {
    const auto at = static_cast<size_t>(list);
    shape.longest = std::max(shape.longest, lists.offsets[at + 1] - lists.offsets[at]);
  }
  if (!kept.empty()) {
    shape.kept = 0;
    for (const uint64_t word : kept) shape.kept += __builtin_popcountll(word);
  }
  shape.multiprocessors = way.multiprocessors;
  shape.repeats = way.ranks && kept.empty();
  shape.warpgroups = product_engine(cuda_devices().front().compute_capability, way.engine) == ProductEngine::wgmma;
  const IvfSearchPlan plan = plan_ivf_search(shape, most_bytes);
  const ScanTermsLayout terms(view, plan.term);
  const DeviceBytes term_memory(static_cast<size_t>(terms.bytes));
  task.terms = terms.in(static_cast<std::byte*>(term_memory.data()));
  launch_scan_terms(view, task.prepared, task.terms, nullptr);
  const DeviceBytes memory(static_cast<size_t>(plan.bytes));
  launch_ivf_search(task, shape, plan, static_cast<std::byte*>(memory.data()), nullptr);
  KITH_CUDA_CHECK(cudaDeviceSynchronize());
  Found found;
  found.neighbors.resize(static_cast<size_t>(queries.count * k));
  out.read(found.neighbors.data());
  KITH_CUDA_CHECK(cudaMemcpy(&found.directly, directly_searched(static_cast<std::byte*>(memory.data())), 4,
                             cudaMemcpyDeviceToHost));
  return found;
}

uint32_t expect_same(const Lists& lists, const Queries& queries, int64_t k, const std::vector<uint64_t>& kept,
                     int64_t most_bytes) {
  const std::vector<uint64_t> expected = plain_search(lists, queries, k, kept);
  uint32_t directly = 0;
  for (const Way& way :
       {Way{}, Way{ProductEngine::mma, 0}, Way{ProductEngine::automatic, 1}, Way{ProductEngine::automatic, 3},
        Way{ProductEngine::mma, 3}, Way{ProductEngine::automatic, 0, 1}, Way{ProductEngine::automatic, 3, 1},
        Way{ProductEngine::automatic, 0, 1, true, 40, false, ScanTerm::of_list},
        Way{ProductEngine::automatic, 0, 1, true, 40, true, ScanTerm::of_vector},
        Way{ProductEngine::automatic, 3, 1, true, 2, false, ScanTerm::of_vector},
        Way{ProductEngine::automatic, 0, -1, false}, Way{ProductEngine::mma, 3, -1, false},
        Way{ProductEngine::automatic, 0, -1, true, 2}, Way{ProductEngine::automatic, 0, -1, false, 2},
        Way{ProductEngine::automatic, 3, -1, false, 2}, Way{ProductEngine::automatic, 0, -1, true, 40, true},
        Way{ProductEngine::automatic, 0, -1, true, 40, false, ScanTerm::none, true},
        Way{ProductEngine::mma, 3, -1, false, 40, true, ScanTerm::none, true}}) {
    const bool keeps_halves = PreparedLists::wants_halves(lists.format);
    const bool sums = lists.format.kind == CodeKind::additive;
    if (keeps_halves ? way.tables > 0 && !sums : !way.halves) continue;  // these have no such way
    if (way.term != ScanTerm::none && (!suits_tables(lists.format) || !has_differences(lists.kind))) continue;
    SCOPED_TRACE(::testing::Message() << "engine " << static_cast<int>(way.engine) << ", sample " << way.sample_every
                                      << ", tables " << way.tables << ", halves " << way.halves << ", multiprocessors "
                                      << way.multiprocessors << ", ranks " << way.ranks << ", term "
                                      << static_cast<int>(way.term) << ", by row " << way.rows);
    const Found found = search_on_gpu(lists, queries, k, kept, most_bytes, way);
    const bool planned =
        way.engine == ProductEngine::automatic && way.sample_every == 0 && way.tables < 0 && way.halves;
    if (planned && way.multiprocessors == Way().multiprocessors && !way.ranks && !way.rows) directly = found.directly;
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

std::string name_of(const CodeFormat& format) {
  const char* const kinds[] = {"stored", "scalar", "product", "additive"};
  return std::string(kinds[static_cast<int>(format.kind)]) + " " + std::string(name_of(format.dtype)) + " of " +
         std::to_string(format.cols) + " columns, " + std::to_string(format.bits) + " bits, " +
         std::to_string(format.parts) + " parts, norm " + std::to_string(static_cast<int>(format.norm));
}

}  // namespace kith::searched_lists
