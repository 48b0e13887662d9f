#include "capi/arguments.hpp"

#include <fmt/format.h>

#include <type_traits>

namespace kith::capi {
namespace {

static_assert(static_cast<int>(DType::f32) == KITH_F32 && static_cast<int>(DType::f16) == KITH_F16 &&
              static_cast<int>(DType::bf16) == KITH_BF16 && static_cast<int>(DType::u8) == KITH_U8 &&
              static_cast<int>(DType::i8) == KITH_I8 && static_cast<int>(DType::f64) == KITH_F64);
static_assert(static_cast<int>(MemoryKind::host) == KITH_HOST && static_cast<int>(MemoryKind::pinned) == KITH_PINNED &&
              static_cast<int>(MemoryKind::managed) == KITH_MANAGED && static_cast<int>(MemoryKind::cuda) == KITH_CUDA);

// Structs have no padding: a field that is added later must not be in bytes that are undefined in old programs.
static_assert(std::has_unique_object_representations_v<kith_matrix> &&
              std::has_unique_object_representations_v<kith_mutable_matrix> &&
              std::has_unique_object_representations_v<kith_neighbors> &&
              std::has_unique_object_representations_v<kith_filter> &&
              std::has_unique_object_representations_v<kith_resource_options> &&
              std::has_unique_object_representations_v<kith_knn_params> &&
              std::has_unique_object_representations_v<kith_index_params>);
static_assert(sizeof(kith_search_params) == 8 * 8 && sizeof(kith_kmeans_params) == 10 * 8 &&
              sizeof(kith_graph_params) == 7 * 8);

// A larger size is certainly wrong, and reading so far would crash.
constexpr size_t kLargestStruct = 4096;

MatrixShape shape_of(int64_t rows, int64_t cols, int64_t row_stride) {
  return {rows, cols, row_stride == 0 ? cols : row_stride};
}

DType dtype_of(int32_t dtype, const char* name) {
  if (dtype < KITH_F32 || dtype > KITH_F64) {
    throw InvalidArgument(fmt::format("{}: dtype = {} is none; they are KITH_F32 ({}) to KITH_F64 ({})", name, dtype,
                                      static_cast<int>(KITH_F32), static_cast<int>(KITH_F64)));
  }
  return static_cast<DType>(dtype);
}

}  // namespace

void refuse_null(const char* name) { throw InvalidArgument(fmt::format("{} is NULL", name)); }

void check_struct_size(size_t given, size_t least, const char* type) {
  if (given >= least && given <= kLargestStruct) return;
  throw InvalidArgument(
      fmt::format("{}.struct_size is {}; set it to sizeof({}), here {} or more", type, given, type, least));
}

void check_unknown_fields(const void* given, size_t known, size_t size, const char* type) {
  const auto* bytes = static_cast<const unsigned char*>(given);
  for (size_t i = known; i < size; ++i) {
    if (bytes[i] == 0) continue;
    throw InvalidArgument(
        fmt::format("{} has a field that this version of Kith does not know, at byte {}; set it to 0 or "
                    "use a newer library",
                    type, i));
  }
}

Metric metric_of(const char* name) { return name == nullptr ? Metric::l2 : parse_metric(name); }

bool is_on(int32_t given, bool by_default, const char* name) {
  if (given == 0) return by_default;
  if (given != KITH_ON && given != KITH_OFF) {
    throw InvalidArgument(fmt::format("{} = {}; allowed are 0 (the default), KITH_ON and KITH_OFF", name, given));
  }
  return given == KITH_ON;
}

MemorySpace space_of(int32_t space, int32_t cuda_index, const char* name) {
  if (space < KITH_HOST || space > KITH_CUDA || cuda_index < 0) {
    throw InvalidArgument(
        fmt::format("{}: space = {}, cuda_index = {}; spaces are KITH_HOST (0) to KITH_CUDA (3), and "
                    "GPUs are counted from 0",
                    name, space, cuda_index));
  }
  return {static_cast<MemoryKind>(space), cuda_index};
}

kith_space space_of(MemorySpace space) { return static_cast<kith_space>(space.kind); }

MatrixView view_of(const kith_matrix* matrix, const char* name) {
  required(matrix, name);
  const kith_matrix given = taken(matrix, "kith_matrix");
  return {given.data, dtype_of(given.dtype, name), shape_of(given.rows, given.cols, given.row_stride),
          space_of(given.space, given.cuda_index, name)};
}

MutableMatrixView view_of(const kith_mutable_matrix* matrix, const char* name) {
  required(matrix, name);
  const kith_mutable_matrix given = taken(matrix, "kith_mutable_matrix");
  return {given.data, dtype_of(given.dtype, name), shape_of(given.rows, given.cols, given.row_stride),
          space_of(given.space, given.cuda_index, name)};
}

NeighborsView view_of(const kith_neighbors* neighbors) {
  required(neighbors, "out");
  const kith_neighbors given = taken(neighbors, "kith_neighbors");
  if (given.queries < 0 || given.k < 1) {
    throw InvalidArgument(
        fmt::format("kith_neighbors: {} queries x k = {}; k must be at least 1", given.queries, given.k));
  }
  if (given.queries > 0) {
    required(given.ids, "kith_neighbors.ids");
    required(given.distances, "kith_neighbors.distances");
  }
  return {given.ids, given.distances, given.queries, given.k,
          space_of(given.space, given.cuda_index, "kith_neighbors")};
}

RowFilter filter_of(const kith_filter* filter) {
  const kith_filter given = taken(filter, "kith_filter");
  if (given.form == KITH_FILTER_NONE) return {};
  if (given.size < 0) throw InvalidArgument(fmt::format("kith_filter.size = {}; it must not be negative", given.size));
  // An empty list has no address, and is a filter still.
  static constexpr int64_t kNothing = 0;
  if (given.size > 0 && given.data == nullptr) refuse_null("kith_filter.data");
  const void* data = given.size == 0 ? &kNothing : given.data;
  switch (given.form) {
    case KITH_FILTER_MASK: return RowFilter::mask(static_cast<const uint8_t*>(data), given.size);
    case KITH_FILTER_BITS: return RowFilter::bits(static_cast<const uint8_t*>(data), given.size);
    case KITH_FILTER_ROWS: return RowFilter::rows(static_cast<const int64_t*>(data), given.size);
    default: throw InvalidArgument(fmt::format("kith_filter.form = {} is none; they are 0 to 3", given.form));
  }
}

}  // namespace kith::capi
