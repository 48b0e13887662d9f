#include <kith/graph_file.hpp>

#include <kith/error.hpp>
#include <kith/file_info.hpp>
#include <kith/vector_file.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "graph/handle/graph_access.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/lists/counted_work.hpp"
#include "io/file_mapping.hpp"
#include "io/matrix_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kPieceBytes = int64_t{4} << 20;

// The two arrays of a graph, each mapped or read.
struct GraphArrays {
  MappedMatrix mapped_ids;
  MappedMatrix mapped_distances;
  HostBuffer ids;
  HostBuffer distances;
};

bool lies_as(const MatrixFile& file, ElementType element, const Resources& resources) {
  const FileLayout& layout = file.layout();
  const int64_t begin = layout.data_offset + layout.row_header_bytes;
  return resources.options().host_memory_limit == kNoLimit && layout.element == element &&
         layout.row_header_bytes == 0 && begin % layout.element_bytes() == 0 && file.values().mappable() != nullptr;
}

int64_t rows_at_once(int64_t k, int64_t bytes_each) {
  return std::max<int64_t>(kPieceBytes / std::max<int64_t>(k * bytes_each, 1), 1);
}

template <typename Read>
void read_in_pieces(int64_t rows, int64_t piece, const Resources& resources, const Read& read) {
  if (only_counts(resources)) return;
  ProgressMeter meter("read", rows, resources);
  for (int64_t first = 0; first < rows; first += piece) {
    const int64_t count = std::min(piece, rows - first);
    read(first, count);
    meter.add(count);
    meter.poll();
  }
  meter.finish();
}

const int64_t* ids_of(const std::string& path, const IdFile& file, GraphArrays& arrays, const Resources& resources) {
  const MatrixFile matrix(path);
  if (lies_as(matrix, ElementType::i64, resources)) {
    arrays.mapped_ids = map_matrix(matrix);
    return reinterpret_cast<const int64_t*>(arrays.mapped_ids.values);
  }
  const ReadMemory memory = file.reserve_memory(resources);
  arrays.ids = HostBuffer(array_bytes<int64_t>(file.rows() * file.cols()), "the graph's ids", resources);
  auto* const ids = arrays.ids.as<int64_t>();
  read_in_pieces(file.rows(), rows_at_once(file.cols(), 8), resources,
                 [&](int64_t first, int64_t count) { file.read(first, count, ids + first * file.cols()); });
  return ids;
}

const float* distances_of(const std::string& path, const VectorFile& file, GraphArrays& arrays,
                          const Resources& resources) {
  const MatrixFile matrix(path);
  if (lies_as(matrix, ElementType::f32, resources)) {
    arrays.mapped_distances = map_matrix(matrix);
    return reinterpret_cast<const float*>(arrays.mapped_distances.values);
  }
  const ReadMemory memory = file.reserve_memory(resources);
  arrays.distances = HostBuffer(array_bytes<float>(file.rows() * file.cols()), "the graph's distances", resources);
  auto* const distances = arrays.distances.as<float>();
  read_in_pieces(file.rows(), rows_at_once(file.cols(), 4), resources, [&](int64_t first, int64_t count) {
    file.read(first, MutableMatrixView(distances + first * file.cols(), count, file.cols()));
  });
  return distances;
}

}  // namespace

KnnGraph load_graph(const std::string& ids, const std::string& distances, Metric metric, const Resources& resources) {
  if (name_of(metric) == "?") throw InvalidArgument(fmt::format("metric {} is none", static_cast<int>(metric)));
  const IdFile id_file(ids);
  const VectorFile distance_file(distances);
  if (id_file.rows() != distance_file.rows() || id_file.cols() != distance_file.cols()) {
    throw InvalidArgument(
        fmt::format("'{}' is {} x {} and '{}' {} x {}; a graph's ids and distances are both rows x k", ids,
                    id_file.rows(), id_file.cols(), distances, distance_file.rows(), distance_file.cols()));
  }
  KnnGraph graph = within_limits("the graph", resources, [&](const Resources& used) {
    const auto arrays = std::make_shared<GraphArrays>();
    NeighborsView view;
    view.ids = const_cast<int64_t*>(ids_of(ids, id_file, *arrays, used));  // which KnnGraph never writes to
    view.distances = const_cast<float*>(distances_of(distances, distance_file, *arrays, used));
    view.queries = id_file.rows();
    view.k = id_file.cols();
    return GraphAccess::make(view, arrays, metric, {});
  });
  try {
    check_graph(graph, resources);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("'{}' and '{}' are no graph: {}", ids, distances, error.what()));
  }
  return graph;
}

void save_graph(const KnnGraph& graph, const std::string& ids, const std::string& distances,
                const Resources& resources) {
  if (file_of(ids) == file_of(distances)) {
    throw InvalidArgument(fmt::format("ids and distances would both go to '{}'; give two files", file_of(ids)));
  }
  const KnnGraph here = graph.to(MemorySpace::host(), resources);
  check_graph(here, resources);  // what is written can be loaded again
  IdFileWriter id_file(ids, here.rows(), here.k());
  VectorFileWriter distance_file(distances, DType::f32, here.rows(), here.k());
  ProgressMeter meter("write", here.rows(), resources);
  const int64_t piece = rows_at_once(here.k(), 12);
  for (int64_t first = 0; first < here.rows(); first += piece) {
    const int64_t count = std::min(piece, here.rows() - first);
    id_file.append(here.ids(first), count);
    distance_file.append(MatrixView(here.distances(first), count, here.k()));
    meter.add(count);
    meter.poll();
  }
  meter.finish();
  // First everything that can fail, a full disk for instance.
  id_file.sync();
  distance_file.sync();
  id_file.commit();
  distance_file.commit();
}

}  // namespace kith
