#include "interop/faiss_inverted.hpp"

#include "interop/faiss_additive.hpp"
#include "interop/faiss_codes.hpp"
#include "interop/faiss_flat.hpp"
#include "interop/faiss_header.hpp"
#include "interop/faiss_lists.hpp"
#include "interop/fast_scan_codes.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

namespace kith {
namespace {

void skip_hnsw(FaissSource& source) {
  constexpr std::string_view kWhat = "a graph over the centres";
  source.skip_array(sizeof(double), kWhat);    // assign_probas
  source.skip_array(sizeof(int32_t), kWhat);   // cum_nneighbor_per_level
  source.skip_array(sizeof(int32_t), kWhat);   // levels
  source.skip_array(sizeof(uint64_t), kWhat);  // offsets
  source.skip_array(sizeof(int32_t), kWhat);   // neighbors
  source.skip(5 * sizeof(int32_t), kWhat);     // entry_point, max_level, efConstruction, efSearch, upper_beam
}

// The vectors of a flat index, or those that an HNSW graph is over: Kith finds the nearest centres exactly.
MatrixBuffer read_centres(FaissSource& source, const FaissHeader& index, int64_t lists) {
  std::string tag = source.tag();
  if (tag == "IHNf") {
    read_faiss_header(source);
    skip_hnsw(source);
    tag = source.tag();
  }
  if (!is_flat_tag(tag)) {
    source.unsupported(
        fmt::format("a coarse quantizer of the kind '{}'; Kith takes flat ones, and HNSW over them", tag));
  }
  const FaissHeader header = read_faiss_header(source);
  if (header.cols != index.cols) source.corrupt(fmt::format("centres of {} columns, not {}", header.cols, index.cols));
  if (header.metric != index.metric) {
    source.refused("lists are chosen by another metric than vectors; Kith has one for both: build the index anew");
  }
  if (header.rows != lists) source.corrupt(fmt::format("{} centres for {} lists", header.rows, lists));
  return read_faiss_rows(source, header);
}

void skip_direct_map(FaissSource& source) {
  const auto type = source.number<uint8_t>("the kind of a direct map");
  if (type > 2) source.corrupt(fmt::format("a direct map of the kind {}", type));
  source.skip_array(sizeof(int64_t), "a direct map");
  if (type == 2) source.skip_array(2 * sizeof(int64_t), "a direct map");
}

IndexParts read_inverted_header(FaissSource& source, FaissHeader& header) {
  header = read_faiss_header(source);
  IndexParts parts = begun_parts(source, header);
  ListParts& lists = parts.lists.emplace();
  lists.lists = source.bounded(1, static_cast<uint64_t>(kMostFaissRows), "the number of lists");
  parts.probes = source.bounded(1, std::numeric_limits<int64_t>::max(), "the number of probes");
  lists.centres = read_centres(source, header, lists.lists);
  skip_direct_map(source);
  return parts;
}

void finish_inverted(FaissSource& source, IndexParts& parts, FaissLists lists) {
  if (lists.ids.size() != parts.rows) {
    source.corrupt(fmt::format("lists of {} vectors in an index of {}", lists.ids.size(), parts.rows));
  }
  number_rows(source, std::move(lists), parts);
  parts.factory = fmt::format("IVF{},{}", parts.lists->lists, code_name(parts.lists->codec));
}

}  // namespace

IndexParts read_faiss_inverted_flat(FaissSource& source) {
  FaissHeader header;
  IndexParts parts = read_inverted_header(source, header);
  parts.lists->codec.format = {.cols = header.cols};
  const int64_t bytes = parts.lists->codec.format.bytes();
  finish_inverted(source, parts, read_inverted_lists(source, parts.lists->lists, bytes, {}, parts.rows));
  return parts;
}

IndexParts read_faiss_inverted_product(FaissSource& source, bool fast) {
  FaissHeader header;
  IndexParts parts = read_inverted_header(source, header);
  ListParts& lists = *parts.lists;
  lists.residual = source.flag("whether codes are residual");
  const auto code_bytes = source.number<uint64_t>("the bytes of a code");
  int32_t block_rows = 0;
  if (fast) {
    block_rows = source.number<int32_t>("the vectors of a block");
    source.skip(2 * sizeof(uint64_t) + sizeof(int32_t), "how the index is searched");
  }
  lists.codec = read_product_quantizer(source, header.cols);
  const int64_t bytes = lists.codec.format.bytes();
  if (code_bytes != static_cast<uint64_t>(bytes))
    source.corrupt(fmt::format("codes of {} bytes, not {}", code_bytes, bytes));
  std::optional<FastScanLayout> blocked;
  if (fast) {
    require_fast_bits(source, lists.codec.format);
    blocked = fast_scan_layout(source, lists.codec.format.parts, block_rows);
  }
  finish_inverted(source, parts, read_inverted_lists(source, lists.lists, bytes, blocked, parts.rows));
  return parts;
}

IndexParts read_faiss_inverted_scalar(FaissSource& source) {
  FaissHeader header;
  IndexParts parts = read_inverted_header(source, header);
  ListParts& lists = *parts.lists;
  FaissScalarCodec scalar = read_scalar_quantizer(source, header.cols);
  lists.codec = std::move(scalar.codec);
  const CodeFormat& format = lists.codec.format;
  const auto bytes = static_cast<uint64_t>(format.bytes());
  source.bounded(bytes, bytes, "the bytes of a code");
  lists.residual = source.flag("whether codes are residual");
  const bool stores_bytes = format.kind == CodeKind::stored && size_of(format.dtype) == 1;
  if (stores_bytes && lists.residual) source.unsupported("bytes of vectors less their centres, which Kith lacks");
  if (stores_bytes) parts.dtype = format.dtype;
  FaissLists found = read_inverted_lists(source, lists.lists, format.bytes(), {}, parts.rows);
  if (scalar.offset_bytes) undo_offset(found.codes);
  finish_inverted(source, parts, std::move(found));
  return parts;
}

IndexParts read_faiss_inverted_additive(FaissSource& source, const CodeEncoder* code) {
  FaissHeader header;
  IndexParts parts = read_inverted_header(source, header);
  ListParts& lists = *parts.lists;
  const auto code_bytes = source.number<uint64_t>("the bytes of a code");
  FaissAdditive additive = read_additive_quantizer(source, header.cols, code);
  if (code_bytes != static_cast<uint64_t>(additive.code_bytes)) {
    source.corrupt(fmt::format("codes of {} bytes, not {}", code_bytes, additive.code_bytes));
  }
  lists.residual = source.flag("whether codes are residual");
  source.skip(sizeof(int32_t), "how the index is searched");
  if (lists.residual) additive.codec = without_norms(additive.codec);
  FaissLists found = read_inverted_lists(source, lists.lists, additive.code_bytes, {}, parts.rows);
  found.codes = known_codes(additive, found.codes, found.ids.size(), source.resources());
  lists.codec = std::move(additive.codec);
  finish_inverted(source, parts, std::move(found));
  return parts;
}

}  // namespace kith
