#include <kith/graph_file.hpp>

#include <kith/error.hpp>
#include <kith/file_info.hpp>
#include <kith/vector_file.hpp>

#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "graph/handle/graph_access.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/handle/graph_files.hpp"
#include "io/file_mapping.hpp"
#include "io/matrix_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

namespace kith {
namespace {

constexpr int64_t kPieceBytes = int64_t{4} << 20;

// An array of a graph, mapped or read.
struct GraphArray {
  MappedMatrix mapped;
  HostBuffer memory;
};

bool can_be_mapped(const MatrixFile& file, ElementType element, GraphMapping mapping, const Resources& resources) {
  const FileLayout& layout = file.layout();
  const int64_t begin = layout.data_offset + layout.row_header_bytes;
  const bool may = mapping == GraphMapping::always || resources.options().host_memory_limit == kNoLimit;
  return may && layout.element == element && layout.row_header_bytes == 0 &&
         begin % layout.element_bytes() == 0 && file.values().mappable() != nullptr;
}

int64_t rows_at_once(int64_t k, int64_t bytes_each) {
  return std::max<int64_t>(kPieceBytes / std::max<int64_t>(k * bytes_each, 1), 1);
}

template <typename Read>
void read_in_pieces(int64_t rows, int64_t piece, const Resources& resources, const Read& read) {
  if (counts_only(resources)) return;
  ProgressMeter meter("read", rows, resources);
  for (int64_t first = 0; first < rows; first += piece) {
    const int64_t count = std::min(piece, rows - first);
    read(first, count);
    meter.add(count);
    meter.poll();
  }
  meter.finish();
}

// read(first, count, out) brings rows of the file.
template <typename T, typename File, typename Read>
T* array_of(const std::string& path, const File& file, ElementType element, std::string_view purpose, GraphArray& array,
            GraphMapping mapping, const Resources& resources, const Read& read) {
  const MatrixFile matrix(path);
  if (can_be_mapped(matrix, element, mapping, resources)) {
    array.mapped = map_matrix(matrix);
    return reinterpret_cast<T*>(const_cast<std::byte*>(array.mapped.values));  // which KnnGraph never writes to
  }
  const ReadMemory memory = file.reserve_memory(resources);
  array.memory = HostBuffer(array_bytes<T>(file.rows() * file.cols()), purpose, resources);
  T* const values = array.memory.as<T>();
  read_in_pieces(file.rows(), rows_at_once(file.cols(), sizeof(T)), resources,
                 [&](int64_t first, int64_t count) { read(first, count, values + first * file.cols()); });
  return values;
}

}  // namespace

KnnGraph load_graph(const std::string& ids, const std::string& distances, Metric metric, const Resources& resources) {
  return load_graph_files(ids, distances, metric, GraphMapping::without_limit, resources);
}

KnnGraph load_graph_files(const std::string& ids, const std::string& distances, Metric metric, GraphMapping mapping,
                          const Resources& resources) {
  if (name_of(metric) == "?") throw InvalidArgument(fmt::format("metric {} is none", static_cast<int>(metric)));
  const IdFile id_file(ids);
  const VectorFile distance_file(distances);
  if (id_file.rows() != distance_file.rows() || id_file.cols() != distance_file.cols()) {
    throw InvalidArgument(fmt::format("'{}' is {} x {} and '{}' {} x {}; a graph's ids and distances are both rows x k",
                                      ids, id_file.rows(), id_file.cols(), distances, distance_file.rows(),
                                      distance_file.cols()));
  }
  bool ids_mapped = false;
  bool distances_mapped = false;
  KnnGraph graph = within_limits("the graph", resources, [&](const Resources& used) {
    const auto arrays = std::make_shared<std::array<GraphArray, 2>>();
    NeighborsView view;
    view.ids = array_of<int64_t>(ids, id_file, ElementType::i64, "the graph's ids", (*arrays)[0], mapping, used,
                                 [&](int64_t first, int64_t count, int64_t* out) { id_file.read(first, count, out); });
    view.distances = array_of<float>(distances, distance_file, ElementType::f32, "the graph's distances", (*arrays)[1],
                                     mapping, used, [&](int64_t first, int64_t count, float* out) {
                                       distance_file.read(first, MutableMatrixView(out, count, distance_file.cols()));
                                     });
    view.queries = id_file.rows();
    view.k = id_file.cols();
    ids_mapped = (*arrays)[0].mapped.values != nullptr;
    distances_mapped = (*arrays)[1].mapped.values != nullptr;
    return GraphAccess::make(view, arrays, metric, {});
  });
  try {
    // Under a limit what is mapped does not stay in the process's memory for having been checked.
    const bool limited = resources.options().host_memory_limit != kNoLimit;
    check_graph(graph, resources, [&](int64_t first, int64_t end) {
      // Reading what follows has brought some of what was released before it back.
      constexpr int64_t kBroughtBack = int64_t{2} << 20;  // values
      const int64_t from = std::max<int64_t>(first * graph.k() - kBroughtBack, 0);
      const int64_t count = end * graph.k() - from;
      if (limited && ids_mapped) release_mapped(graph.ids(0) + from, array_bytes<int64_t>(count));
      if (limited && distances_mapped) release_mapped(graph.distances(0) + from, array_bytes<float>(count));
    });
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
