// hnswlib's lowest layer as a Graph index. Upper layers only help to find where to begin, which cells do here.
#include <kith/error.hpp>
#include <kith/hnswlib_file.hpp>

#include "index/graph_edges.hpp"
#include "index/index_access.hpp"
#include "index/index_parts_check.hpp"
#include "interop/faiss_source.hpp"
#include "interop/hnswlib_layout.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr uint64_t kMostElementBytes = uint64_t{1} << 24;

HnswlibHeader read_header(FaissSource& source) {
  HnswlibHeader header;
  header.visit([&](auto& field) { field = source.number<std::remove_reference_t<decltype(field)>>("the header"); });
  const uint64_t lists = hnswlib_list_bytes(header.most_links_below);
  const bool fits = header.level_offset == 0 && header.count <= static_cast<uint64_t>(kMostFaissRows) &&
                    header.most_links_below <= kMostElementBytes && header.most_links <= kMostElementBytes &&
                    header.vector_offset == lists && header.element_bytes <= kMostElementBytes &&
                    header.label_offset <= kMostElementBytes && header.label_offset > lists &&
                    header.label_offset + 8 == header.element_bytes && (header.label_offset - lists) % 4 == 0;
  if (!fits) source.corrupt("this is no index of floats that hnswlib has saved: its sizes do not fit each other");
  const auto bytes = static_cast<int64_t>(header.count * header.element_bytes);
  if (bytes > source.left()) source.corrupt("the file ends within the vectors; it was cut or damaged");
  return header;
}

// What the elements of level 0 hold.
struct Elements {
  MatrixBuffer rows;
  HostArray<int64_t> labels;
  HostArray<uint32_t> lists;
  std::vector<int64_t> deleted;  // labels
};

Elements read_elements(FaissSource& source, const HnswlibHeader& header, int64_t degree) {
  const Resources& resources = source.resources();
  const auto count = static_cast<int64_t>(header.count);
  const auto vector_bytes = static_cast<int64_t>(header.label_offset - header.vector_offset);
  Elements elements{MatrixBuffer(DType::f32, count, vector_bytes / 4, "the vectors", resources),
                    HostArray<int64_t>(count, "the ids", resources),
                    HostArray<uint32_t>(count * degree, "the edges", resources),
                    {}};
  std::fill(elements.lists.begin(), elements.lists.end(), kNoEdge);
  std::vector<std::byte> element(header.element_bytes);
  for (int64_t i = 0; i < count; ++i) {
    source.read(element.data(), std::ssize(element), "the vectors");
    uint16_t links = 0;
    std::memcpy(&links, element.data(), sizeof(links));
    if (links > header.most_links_below) source.corrupt(fmt::format("element {} has {} links", i, links));
    uint32_t* const list = elements.lists.data() + i * degree;
    std::memcpy(list, element.data() + 4, links * sizeof(uint32_t));
    for (int64_t l = 0; l < links; ++l) {
      if (list[l] >= header.count) source.corrupt(fmt::format("element {} is linked to {}", i, list[l]));
    }
    std::memcpy(elements.rows.mutable_view().row(i), element.data() + header.vector_offset,
                static_cast<size_t>(vector_bytes));
    uint64_t label = 0;
    std::memcpy(&label, element.data() + header.label_offset, sizeof(label));
    if (label >= static_cast<uint64_t>(INT64_MAX)) source.refused(fmt::format("label {} is too large", label));
    elements.labels[i] = static_cast<int64_t>(label);
    const bool deleted = (std::to_integer<uint8_t>(element[2]) & kHnswlibDeleted) != 0;
    if (deleted) elements.deleted.push_back(elements.labels[i]);
  }
  return elements;
}

void skip_upper_levels(FaissSource& source, const HnswlibHeader& header) {
  const uint64_t level_bytes = hnswlib_list_bytes(header.most_links);
  for (uint64_t i = 0; i < header.count; ++i) {
    const auto bytes = source.number<uint32_t>("the upper levels");
    if (bytes % level_bytes != 0) source.corrupt(fmt::format("element {} has broken upper levels", i));
    source.skip(bytes, "the upper levels");
  }
  if (source.left() != 0) source.corrupt(fmt::format("{} bytes follow the index", source.left()));
}

}  // namespace

Index read_hnswlib(const std::string& path, Metric metric, const Resources& resources) {
  if (metric != Metric::l2 && metric != Metric::sqeuclidean && metric != Metric::inner_product &&
      metric != Metric::cosine) {
    throw InvalidArgument(
        fmt::format("hnswlib has no metric '{}'; its files are of l2, sqeuclidean, inner_product or "
                    "cosine",
                    name_of(metric)));
  }
  FaissSource source(path, resources);
  const HnswlibHeader header = read_header(source);
  const int64_t degree = degree_for(static_cast<int64_t>(header.most_links_below));
  if (degree == 0) {
    source.unsupported(fmt::format("lists of {} links; a Graph index has up to 128", header.most_links_below));
  }
  Elements elements = read_elements(source, header, degree);
  skip_upper_levels(source, header);
  IndexParts parts;
  parts.metric = metric;
  parts.cols = elements.rows.cols();
  parts.rows = elements.rows.rows();
  bool plain = true;
  for (int64_t i = 0; i < parts.rows; ++i) {
    plain = plain && elements.labels[i] == i;
    parts.next_id = std::max(parts.next_id, elements.labels[i] + 1);
  }
  if (!plain) parts.ids = std::move(elements.labels);
  parts.flat.emplace_back(std::move(elements.rows));
  if (parts.rows == 0) {
    parts.factory = fmt::format("Graph{}", degree);
  } else {
    join_parts(parts, elements.lists, degree, resources);
  }
  try {
    check_parts(parts, resources);
  } catch (const PartsProblem& problem) {
    if (problem.section() == "ids") throw_refused(path, source.at(), problem.reason());  // repeated ones
    throw_corrupt(path, source.at(), fmt::format("{} ({})", problem.reason(), problem.section()));
  }
  Index index = IndexAccess::from_parts(std::move(parts), resources);
  if (!elements.deleted.empty()) {
    index.remove({elements.deleted.data(), std::ssize(elements.deleted), {}}, resources);
  }
  return index;
}

}  // namespace kith
