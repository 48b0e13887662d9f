#include "interop/faiss_file.hpp"

#include <kith/error.hpp>

#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "index/index_parts_check.hpp"
#include "interop/faiss_additive.hpp"
#include "interop/faiss_codes.hpp"
#include "interop/faiss_lists.hpp"
#include "interop/faiss_source.hpp"
#include "interop/faiss_tags.hpp"
#include "interop/faiss_transforms.hpp"
#include "interop/fast_scan_codes.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kith {
namespace {

constexpr int kMostNested = 50;  // FAISS's own limit, as that of the columns
constexpr uint32_t kMostCols = 1 << 20;
constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();

// What every index begins with.
struct Header {
  int64_t cols = 0;
  int64_t rows = 0;
  FaissMetric metric = FaissMetric::l2;
};

Metric metric_of(FaissSource& source, FaissMetric metric) {
  switch (metric) {
    case FaissMetric::inner_product: return Metric::inner_product;
    case FaissMetric::l2: return Metric::sqeuclidean;
    case FaissMetric::l1: return Metric::l1;
    case FaissMetric::linf: return Metric::linf;
  }
  source.unsupported(fmt::format("FAISS's metric {}, which Kith lacks", static_cast<int>(metric)));
}

Header read_header(FaissSource& source) {
  Header header;
  const auto cols = source.number<uint32_t>("an index's header");
  if (cols < 1 || cols > kMostCols) source.corrupt(fmt::format("an index of {} columns", static_cast<int32_t>(cols)));
  header.cols = cols;
  header.rows = source.number<int64_t>("an index's header");
  if (header.rows < 0) source.corrupt(fmt::format("an index of {} vectors", header.rows));
  if (header.rows > kMostRows) {
    source.unsupported(fmt::format("an index of {} vectors; Kith's have up to {}", header.rows, kMostRows));
  }
  source.skip(2 * sizeof(int64_t), "an index's header");
  if (!source.flag("whether the index is trained")) {
    source.refused("the index is not trained; train it in FAISS, or anew in Kith");
  }
  header.metric = static_cast<FaissMetric>(source.number<int32_t>("an index's metric"));
  if (static_cast<int32_t>(header.metric) > 1) source.skip(sizeof(float), "an index's metric");
  metric_of(source, header.metric);
  return header;
}

IndexParts begun(FaissSource& source, const Header& header) {
  IndexParts parts;
  parts.metric = metric_of(source, header.metric);
  parts.cols = header.cols;
  parts.rows = header.rows;
  parts.next_id = header.rows;
  return parts;
}

MatrixBuffer read_flat_rows(FaissSource& source, const Header& header) {
  source.expect_count(sizeof(float), header.rows * header.cols, "vectors");
  MatrixBuffer rows(DType::f32, header.rows, header.cols, "the vectors", source.resources());
  source.read(rows.mutable_view().data(), header.rows * header.cols * size_of(DType::f32), "vectors");
  return rows;
}

IndexParts read_flat(FaissSource& source) {
  const Header header = read_header(source);
  IndexParts parts = begun(source, header);
  parts.flat.emplace_back(read_flat_rows(source, header));
  parts.factory = "Flat";
  return parts;
}

// A single list without a centre, in the order of rows.
void set_single_list(FaissSource& source, IndexParts& parts, CodecParts codec, HostArray<uint8_t> codes) {
  ListParts& lists = parts.lists.emplace();
  HostArray<int64_t> offsets(2, "the list", source.resources());
  HostArray<uint32_t> rows(parts.rows, "the rows of the list", source.resources());
  offsets[0] = 0;
  offsets[1] = parts.rows;
  std::iota(rows.begin(), rows.end(), 0U);
  lists.codec = std::move(codec);
  lists.offsets = std::move(offsets);
  lists.rows = std::move(rows);
  lists.codes = std::move(codes);
  parts.factory = code_name(lists.codec.format);
}

IndexParts read_product(FaissSource& source) {
  const Header header = read_header(source);
  IndexParts parts = begun(source, header);
  CodecParts codec = read_product_quantizer(source, header.cols);
  const int64_t bytes = codec.format.bytes();
  HostArray<uint8_t> codes = source.array<uint8_t>(saturating_multiply(header.rows, bytes), "codes");
  source.skip(sizeof(int32_t), "how the index is searched");
  if (source.flag("whether codes are of signs")) source.unsupported("codes of signs, which Kith lacks");
  source.skip(sizeof(int32_t), "how the index is searched");
  set_single_list(source, parts, std::move(codec), std::move(codes));
  return parts;
}

FastScanLayout fast_scan_layout(FaissSource& source, int64_t parts, int32_t block_rows) {
  constexpr int32_t kGroup = 32;
  constexpr int32_t kMostBlockRows = 1 << 16;
  if (block_rows < kGroup || block_rows > kMostBlockRows || block_rows % kGroup != 0) {
    source.corrupt(fmt::format("blocks of {} vectors", block_rows));
  }
  return {parts, block_rows};
}

void require_fast_bits(FaissSource& source, const CodeFormat& format) {
  if (format.bits != 4) source.corrupt(fmt::format("fast-scan codes of {} bits", format.bits));
}

IndexParts read_fast_product(FaissSource& source) {
  const Header header = read_header(source);
  IndexParts parts = begun(source, header);
  CodecParts codec = read_product_quantizer(source, header.cols);
  require_fast_bits(source, codec.format);
  source.skip(sizeof(int32_t), "how the index is searched");
  const auto block_rows = source.number<int32_t>("the vectors of a block");
  const FastScanLayout layout = fast_scan_layout(source, codec.format.parts, block_rows);
  source.skip(sizeof(int32_t), "how the index is searched");
  const auto padded = static_cast<uint64_t>(round_up(header.rows, block_rows));
  source.bounded(padded, padded, "the vectors with padding");
  source.skip(sizeof(uint64_t), "the parts with padding");
  const int64_t bytes = divide_up(header.rows, block_rows) * layout.block_bytes();
  const HostArray<uint8_t> blocks = source.array<uint8_t>(bytes, "codes");
  HostArray<uint8_t> codes(header.rows * codec.format.bytes(), "the codes", source.resources());
  unpack_fast_scan(layout, blocks.data(), header.rows, codes.data());
  set_single_list(source, parts, std::move(codec), std::move(codes));
  return parts;
}

void undo_offset(const HostArray<uint8_t>& codes) {
  for (uint8_t& code : codes) code ^= 0x80;
}

IndexParts read_scalar(FaissSource& source) {
  const Header header = read_header(source);
  IndexParts parts = begun(source, header);
  FaissScalarCodec scalar = read_scalar_quantizer(source, header.cols);
  const CodeFormat& format = scalar.codec.format;
  HostArray<uint8_t> codes = source.array<uint8_t>(saturating_multiply(header.rows, format.bytes()), "codes");
  if (scalar.offset_bytes) undo_offset(codes);
  if (format.kind == CodeKind::stored && size_of(format.dtype) == 1) {  // bytes as they are: flat rows
    MatrixBuffer rows(format.dtype, header.rows, header.cols, "the vectors", source.resources());
    std::copy(codes.begin(), codes.end(), static_cast<uint8_t*>(rows.mutable_view().data()));
    parts.dtype = format.dtype;
    parts.flat.emplace_back(std::move(rows));
    parts.factory = "Flat";
    return parts;
  }
  set_single_list(source, parts, std::move(scalar.codec), std::move(codes));
  return parts;
}

IndexParts read_additive(FaissSource& source, AdditiveSearch search) {
  const Header header = read_header(source);
  IndexParts parts = begun(source, header);
  FaissAdditive additive = read_additive_quantizer(source, header.cols, search);
  const auto bytes = static_cast<uint64_t>(additive.code_bytes);
  source.bounded(bytes, bytes, "the bytes of a code");
  const HostArray<uint8_t> codes =
      source.array<uint8_t>(saturating_multiply(header.rows, additive.code_bytes), "codes");
  HostArray<uint8_t> kept = without_norms(additive, codes, header.rows, source.resources());
  set_single_list(source, parts, std::move(additive.codec), std::move(kept));
  return parts;
}

// --- inverted files

void skip_hnsw(FaissSource& source) {
  constexpr std::string_view kWhat = "a graph over the centres";
  source.skip_array(sizeof(double), kWhat);    // assign_probas
  source.skip_array(sizeof(int32_t), kWhat);   // cum_nneighbor_per_level
  source.skip_array(sizeof(int32_t), kWhat);   // levels
  source.skip_array(sizeof(uint64_t), kWhat);  // offsets
  source.skip_array(sizeof(int32_t), kWhat);   // neighbors
  source.skip(5 * sizeof(int32_t), kWhat);     // entry_point, max_level, efConstruction, efSearch, upper_beam
}

bool is_flat(std::string_view tag) { return tag == "IxF2" || tag == "IxFI" || tag == "IxFl"; }

// The vectors of a flat index, or those that an HNSW graph is over: Kith finds the nearest centres exactly.
MatrixBuffer read_centres(FaissSource& source, const Header& index, int64_t lists) {
  std::string tag = source.tag();
  if (tag == "IHNf") {
    read_header(source);
    skip_hnsw(source);
    tag = source.tag();
  }
  if (!is_flat(tag)) {
    source.unsupported(
        fmt::format("a coarse quantizer of the kind '{}'; Kith takes flat ones, and HNSW over them", tag));
  }
  const Header header = read_header(source);
  if (header.cols != index.cols) source.corrupt(fmt::format("centres of {} columns, not {}", header.cols, index.cols));
  if (header.metric != index.metric) {
    source.refused("lists are chosen by another metric than vectors; Kith has one for both: build the index anew");
  }
  if (header.rows != lists) source.corrupt(fmt::format("{} centres for {} lists", header.rows, lists));
  return read_flat_rows(source, header);
}

void skip_direct_map(FaissSource& source) {
  const auto type = source.number<uint8_t>("the kind of a direct map");
  if (type > 2) source.corrupt(fmt::format("a direct map of the kind {}", type));
  source.skip_array(sizeof(int64_t), "a direct map");
  if (type == 2) source.skip_array(2 * sizeof(int64_t), "a direct map");
}

IndexParts read_inverted_header(FaissSource& source, Header& header) {
  header = read_header(source);
  IndexParts parts = begun(source, header);
  ListParts& lists = parts.lists.emplace();
  lists.lists = source.bounded(1, static_cast<uint64_t>(kMostRows), "the number of lists");
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
  parts.factory = fmt::format("IVF{},{}", parts.lists->lists, code_name(parts.lists->codec.format));
}

IndexParts read_inverted_flat(FaissSource& source) {
  Header header;
  IndexParts parts = read_inverted_header(source, header);
  parts.lists->codec.format = {.cols = header.cols};
  const int64_t bytes = parts.lists->codec.format.bytes();
  finish_inverted(source, parts, read_inverted_lists(source, parts.lists->lists, bytes, {}, parts.rows));
  return parts;
}

IndexParts read_inverted_product(FaissSource& source, bool fast) {
  Header header;
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

IndexParts read_inverted_scalar(FaissSource& source) {
  Header header;
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

IndexParts read_inverted_additive(FaissSource& source, AdditiveSearch search) {
  Header header;
  IndexParts parts = read_inverted_header(source, header);
  ListParts& lists = *parts.lists;
  const auto code_bytes = source.number<uint64_t>("the bytes of a code");
  FaissAdditive additive = read_additive_quantizer(source, header.cols, search);
  if (code_bytes != static_cast<uint64_t>(additive.code_bytes)) {
    source.corrupt(fmt::format("codes of {} bytes, not {}", code_bytes, additive.code_bytes));
  }
  lists.residual = source.flag("whether codes are residual");
  source.skip(sizeof(int32_t), "how the index is searched");
  FaissLists found = read_inverted_lists(source, lists.lists, additive.code_bytes, {}, parts.rows);
  found.codes = without_norms(additive, found.codes, found.ids.size(), source.resources());
  lists.codec = std::move(additive.codec);
  finish_inverted(source, parts, std::move(found));
  return parts;
}

// --- indexes over another index

IndexParts read_any(FaissSource& source, int depth);

std::string transform_name(const TransformParts& transform, const IndexParts& parts) {
  if (transform.name == "OPQ") {  // FAISS's file has it as any linear map
    if (parts.lists && parts.lists->codec.format.kind == CodeKind::product) {
      return fmt::format("OPQ{}_{}", parts.lists->codec.format.parts, transform.out);
    }
    return fmt::format("RR{}", transform.out);
  }
  const bool numbered =
      transform.kind == TransformParts::Kind::linear || transform.kind == TransformParts::Kind::padding;
  return numbered ? fmt::format("{}{}", transform.name, transform.out) : transform.name;
}

IndexParts read_transformed(FaissSource& source, int depth) {
  constexpr int32_t kMostTransforms = 100;
  const Header header = read_header(source);
  const auto count = source.number<int32_t>("the number of transforms");
  if (count < 0 || count > kMostTransforms) source.corrupt(fmt::format("{} transforms", count));
  std::vector<TransformParts> transforms;
  int64_t cols = header.cols;
  for (int32_t i = 0; i < count; ++i) {
    transforms.push_back(read_transform(source));
    if (transforms.back().in != cols) source.corrupt("a transform does not take what the one before it gives");
    cols = transforms.back().out;
  }
  IndexParts parts = read_any(source, depth);
  if (parts.cols != cols || parts.rows != header.rows) source.corrupt("an index within another has another shape");
  if (parts.refine) source.unsupported("an 'IxRF' behind transforms; Kith compares vectors as they were before them");
  if (parts.dtype != DType::f32) source.unsupported("bytes behind transforms, which Kith lacks");
  std::string names;
  for (const TransformParts& transform : transforms) names += transform_name(transform, parts) + ",";
  parts.factory = names + parts.factory;
  parts.cols = header.cols;
  parts.transforms.insert(parts.transforms.begin(), std::make_move_iterator(transforms.begin()),
                          std::make_move_iterator(transforms.end()));
  return parts;
}

IndexParts read_with_ids(FaissSource& source, int depth) {
  const Header header = read_header(source);
  IndexParts parts = read_any(source, depth);
  if (parts.cols != header.cols || parts.rows != header.rows)
    source.corrupt("an index within another has another shape");
  const HostArray<int64_t> map = source.array<int64_t>(parts.rows, "the ids");
  HostArray<int64_t> ids(parts.rows, "the ids", source.resources());
  int64_t most = -1;
  for (int64_t row = 0; row < parts.rows; ++row) {
    const int64_t place = parts.ids.empty() ? row : parts.ids[row];
    if (place >= parts.rows) source.corrupt(fmt::format("there is no id for vector {}", place));
    ids[row] = map[place];
    if (ids[row] < 0) source.refused(fmt::format("the id {} is negative; Kith's ids are 0 and above", ids[row]));
    most = std::max(most, ids[row]);
  }
  parts.next_id = std::max(parts.rows, most == INT64_MAX ? most : most + 1);
  bool plain = true;
  for (int64_t row = 0; row < parts.rows && plain; ++row) plain = ids[row] == row;
  parts.ids = plain ? PartArray<int64_t>() : PartArray<int64_t>(std::move(ids));
  return parts;
}

// The vectors of a refining index as codes in the order of rows.
RefineParts refine_parts(FaissSource& source, IndexParts parts) {
  RefineParts refine;
  const bool single = parts.lists && parts.lists->lists == 1 && parts.lists->centres.rows() == 0;
  if (!parts.transforms.empty() || !parts.ids.empty() || parts.refine || (parts.lists && !single)) {
    source.unsupported(fmt::format("an 'IxRF' that refines with '{}'; Kith does with codes of vectors", parts.factory));
  }
  if (single) {
    refine.codec = std::move(parts.lists->codec);
    refine.codes = std::move(parts.lists->codes);
    return refine;
  }
  refine.codec.format = {.cols = parts.cols, .dtype = parts.dtype};
  const MatrixView& rows = parts.flat.front().view();
  HostArray<uint8_t> codes(rows.rows() * rows.cols() * size_of(rows.dtype()), "the vectors", source.resources());
  const auto* const bytes = static_cast<const uint8_t*>(rows.data());
  std::copy(bytes, bytes + codes.size(), codes.begin());
  refine.codes = std::move(codes);
  return refine;
}

IndexParts read_refined(FaissSource& source, int depth) {
  const Header header = read_header(source);
  IndexParts parts = read_any(source, depth);
  IndexParts second = read_any(source, depth);
  const bool same = parts.cols == header.cols && parts.rows == header.rows && second.cols == header.cols &&
                    second.rows == header.rows;
  if (!same) source.corrupt("an index within another has another shape");
  if (parts.refine || !parts.ids.empty()) {
    source.unsupported("an 'IxRF' over an index that is one too, or has ids of its own");
  }
  const auto factor = source.number<float>("the factor of an 'IxRF'");
  if (!(factor >= 1 && factor <= 1000)) source.corrupt(fmt::format("the factor of an 'IxRF' is {}", factor));
  parts.refine = refine_parts(source, std::move(second));
  parts.refine->factor = factor;
  const std::string name = code_name(parts.refine->codec.format);
  parts.factory += name == "Flat" ? ",RFlat" : fmt::format(",Refine({})", name);
  return parts;
}

IndexParts read_any(FaissSource& source, int depth) {
  if (depth > kMostNested) source.corrupt(fmt::format("indexes within each other, {} deep", depth));
  const std::string tag = source.tag();
  if (is_flat(tag)) return read_flat(source);
  if (tag == "IxPq") return read_product(source);
  if (tag == "IPfs") return read_fast_product(source);
  if (tag == "IxSQ") return read_scalar(source);
  if (tag == "IwFl") return read_inverted_flat(source);
  if (tag == "IwPQ" || tag == "IwPf") return read_inverted_product(source, tag == "IwPf");
  if (tag == "IwSq") return read_inverted_scalar(source);
  if (tag == "IxLS" || tag == "IxRq") {
    return read_additive(source, tag == "IxLS" ? AdditiveSearch::local : AdditiveSearch::beam);
  }
  if (tag == "IwLS" || tag == "IwRQ") {
    return read_inverted_additive(source, tag == "IwLS" ? AdditiveSearch::local : AdditiveSearch::beam);
  }
  if (tag == "IxPT") return read_transformed(source, depth + 1);
  if (tag == "IxMp" || tag == "IxM2") return read_with_ids(source, depth + 1);
  if (tag == "IxRF") return read_refined(source, depth + 1);
  if (tag[0] == 'I' || tag == "null")
    source.unsupported(fmt::format("an index of FAISS's kind '{}', which Kith lacks", tag));
  source.corrupt("this is no FAISS index: it does not begin as one");
}

}  // namespace

IndexParts read_faiss(const std::string& path, const Resources& resources) {
  FaissSource source(path, resources);
  IndexParts parts = read_any(source, 0);
  if (source.left() != 0) source.corrupt(fmt::format("{} bytes follow the index", source.left()));
  try {
    check_parts(parts, resources);
  } catch (const PartsProblem& problem) {
    if (problem.section() == "ids") throw_refused(path, source.at(), problem.reason());  // repeated ones
    throw_corrupt(path, source.at(), fmt::format("{} ({})", problem.reason(), problem.section()));
  }
  return parts;
}

}  // namespace kith
