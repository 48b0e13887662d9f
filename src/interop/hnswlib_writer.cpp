// A graph index as hnswlib's file: the lists of rows on level 0, and above it levels that rows are drawn for as hnswlib
// draws them, each with a graph of its own rows.
#include <kith/error.hpp>
#include <kith/hnswlib_file.hpp>

#include "core/random.hpp"
#include "graph/search/build/build_walk_graph.hpp"
#include "index/graph_edges.hpp"
#include "index/index_access.hpp"
#include "interop/faiss_sink.hpp"
#include "interop/hnswlib_layout.hpp"
#include "kernels/distance/distance_cpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace kith {
namespace {

constexpr uint64_t kLevelStream = 0x6C65766C;  // of random numbers
constexpr int kHighestLevel = 16;
constexpr uint64_t kEf = 200;

[[noreturn]] void refuse(const Index& index, std::string_view why) {
  throw Unsupported(fmt::format("hnswlib has no file for the index '{}': {}", index.factory(), why));
}

void check_writable(const Index& index, const IndexParts& parts) {
  if (index.info().degree == 0) refuse(index, "it has no graph; \"Graph32\" has one");
  if (!parts.transforms.empty() || parts.lists || parts.refine) refuse(index, "hnswlib keeps vectors as they are");
  if (parts.dtype != DType::f32 || !parts.subtracted.empty()) refuse(index, "its vectors are not f32");
  const Metric metric = parts.metric;
  if (metric != Metric::l2 && metric != Metric::sqeuclidean && metric != Metric::inner_product &&
      metric != Metric::cosine) {
    refuse(index, fmt::format("it has no metric '{}'", name_of(metric)));
  }
}

// All vectors in one block; of length 1 for cosine, as hnswlib has them.
HostArray<float> rows_of(const IndexParts& parts, const Resources& resources) {
  HostArray<float> rows(parts.rows * parts.cols, "the vectors", resources);
  float* to = rows.data();
  for (const PartMatrix& block : parts.flat) {
    for (int64_t i = 0; i < block.rows(); ++i, to += parts.cols) {
      std::memcpy(to, block.view().row(i), static_cast<size_t>(parts.cols) * sizeof(float));
      if (parts.metric != Metric::cosine) continue;
      double inverse = 0;
      canonical_inverse_norms_cpu(MatrixView(to, 1, parts.cols), &inverse);
      for (int64_t c = 0; c < parts.cols; ++c) to[c] = static_cast<float>(static_cast<double>(to[c]) * inverse);
    }
  }
  return rows;
}

IndexEdges joined(const MatrixView& rows, const WalkGraphParams& params, const Resources& resources) {
  const auto graph = build_walk_graph(rows, params, resources);
  return edges_between_rows(graph->order.view(), graph->edges.flat(), params.degree, rows.rows(), resources);
}

// The rows of a level, ascending, and their edges, which count them.
struct Level {
  std::vector<uint32_t> rows;
  IndexEdges edges;
};

void write_list(FaissSink& sink, const IndexEdges& edges, int64_t row, const std::vector<uint32_t>* numbers,
                uint64_t room) {
  std::vector<uint32_t> list(room, 0);
  const int64_t first = edges.offsets()[row];
  const int64_t count = std::min(edges.offsets()[row + 1] - first, static_cast<int64_t>(room));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t other = edges.columns()[first + i];
    list[static_cast<size_t>(i)] =
        numbers == nullptr ? static_cast<uint32_t>(other) : (*numbers)[static_cast<size_t>(other)];
  }
  sink.number(static_cast<uint32_t>(count));
  sink.bytes(list.data(), static_cast<int64_t>(room) * 4);
}

}  // namespace

void write_hnswlib(const Index& index, const std::string& path, const Resources& resources) {
  const IndexParts parts = IndexAccess::parts(index, resources);
  check_writable(index, parts);
  const int64_t degree = index.info().degree;
  const HostArray<float> vectors = rows_of(parts, resources);
  const MatrixView rows(vectors.data(), parts.rows, parts.cols);
  const WalkGraphParams params{.metric = parts.metric, .degree = degree, .seed = parts.seed};
  // Rows that came after the graph was built are to be found too.
  const bool whole = parts.graph && parts.graph->rows == parts.rows;
  IndexEdges lowest;
  if (whole) {
    lowest = edges_between_rows(*parts.graph, parts.rows, resources);
  } else if (parts.rows > 0) {
    lowest = joined(rows, params, resources);
  }
  HnswlibHeader header;
  header.capacity = header.count = static_cast<uint64_t>(parts.rows);
  header.most_links_below = static_cast<uint64_t>(degree);
  header.m = header.most_links = static_cast<uint64_t>(degree / 2);
  header.vector_offset = hnswlib_list_bytes(header.most_links_below);
  header.label_offset = header.vector_offset + static_cast<uint64_t>(parts.cols) * 4;
  header.element_bytes = header.label_offset + 8;
  header.level_factor = 1 / std::log(static_cast<double>(header.m));
  header.ef = kEf;

  const CounterRng rng(parts.seed, kLevelStream);
  std::vector<int> highest(static_cast<size_t>(parts.rows), 0);
  for (int64_t i = 0; i < parts.rows; ++i) {
    const double drawn = 1 - static_cast<double>(rng.uniform(static_cast<uint64_t>(i)));  // above 0
    const int level = std::min(static_cast<int>(-std::log(drawn) * header.level_factor), kHighestLevel);
    highest[static_cast<size_t>(i)] = level;
    if (level <= header.highest_level) continue;
    header.highest_level = level;
    header.entry = static_cast<uint32_t>(i);
  }
  std::vector<Level> levels;
  for (int l = 1; l <= header.highest_level; ++l) {
    Level level;
    for (int64_t i = 0; i < parts.rows; ++i) {
      if (highest[static_cast<size_t>(i)] >= l) level.rows.push_back(static_cast<uint32_t>(i));
    }
    MatrixBuffer some(DType::f32, std::ssize(level.rows), parts.cols, "the vectors of a level", resources);
    for (size_t i = 0; i < level.rows.size(); ++i) {
      std::memcpy(some.mutable_view().row(static_cast<int64_t>(i)), rows.row(level.rows[i]),
                  static_cast<size_t>(parts.cols) * sizeof(float));
    }
    WalkGraphParams above = params;
    above.degree = degree_for(degree / 2);
    level.edges = joined(some.view(), above, resources);
    levels.push_back(std::move(level));
  }

  FaissSink sink(path, resources);
  header.visit([&](auto& field) { sink.number(field); });
  for (int64_t i = 0; i < parts.rows; ++i) {
    write_list(sink, lowest, i, nullptr, header.most_links_below);
    sink.bytes(rows.row(i), parts.cols * 4);
    sink.number(static_cast<uint64_t>(parts.ids.empty() ? i : parts.ids[i]));
  }
  std::vector<int64_t> next(levels.size(), 0);
  for (int64_t i = 0; i < parts.rows; ++i) {
    const int top = highest[static_cast<size_t>(i)];
    sink.number(static_cast<uint32_t>(static_cast<uint64_t>(top) * hnswlib_list_bytes(header.most_links)));
    for (int l = 0; l < top; ++l) {
      const auto number = static_cast<size_t>(l);
      write_list(sink, levels[number].edges, next[number]++, &levels[number].rows, header.most_links);
    }
  }
  sink.commit();
}

}  // namespace kith
