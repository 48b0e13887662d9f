// A whole FAISS file: what its first index is, vectors and codes one after the other in the order of rows, and indexes
// over another one (transforms, ids, refining). They begin behind their tag.
#include "interop/faiss_file.hpp"

#include <kith/error.hpp>
#include <kith/faiss_file.hpp>

#include "core/divide.hpp"
#include "index/graph_edges.hpp"
#include "index/index_access.hpp"
#include "index/index_parts_check.hpp"
#include "interop/faiss_kinds.hpp"
#include "interop/faiss_own_code.hpp"
#include "interop/faiss_parts.hpp"
#include "io/container/section.hpp"
#include "io/file_error.hpp"
#include "io/file_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <utility>

namespace kith {
namespace {

constexpr int kMostNested = 50;  // FAISS's own limit

IndexParts read_any(FaissSource& source, int depth);

// A single list without a centre, in the order of rows.
void set_single_list(FaissSource& source, IndexParts& parts, CodecParts codec, HostArray<uint8_t> codes) {
  ListParts& lists = parts.lists.emplace();
  lists.put_in_one_list(parts.rows, source.resources());
  lists.codec = std::move(codec);
  lists.codes = std::move(codes);
  parts.factory = code_name(lists.codec);
}

IndexParts read_flat(FaissSource& source) {
  const FaissHeader header = read_faiss_header(source);
  IndexParts parts = begun_parts(source, header);
  parts.flat.emplace_back(read_faiss_rows(source, header));
  parts.factory = "Flat";
  return parts;
}

// The codes of a fast scan, which lie in blocks, one behind the other.
HostArray<uint8_t> read_fast_codes(FaissSource& source, const CodeFormat& format, int64_t rows) {
  source.skip(sizeof(int32_t), "how the index is searched");
  const auto block_rows = source.number<int32_t>("the vectors of a block");
  const FastScanLayout layout = fast_scan_layout(source, format, block_rows);
  source.skip(sizeof(int32_t), "how the index is searched");
  source.exactly(round_up(rows, block_rows), "the vectors with padding");
  source.skip(sizeof(uint64_t), "the parts with padding");
  const int64_t bytes = divide_up(rows, block_rows) * layout.block_bytes();
  const HostArray<uint8_t> blocks = source.array<uint8_t>(bytes, "codes");
  HostArray<uint8_t> codes(rows * format.bytes(), "the codes", source.resources());
  unpack_fast_scan(layout, blocks.data(), rows, codes.data());
  return codes;
}

// Codes one after the other, in the order of rows.
IndexParts read_codes(FaissSource& source, std::string_view tag) {
  const FaissHeader header = read_faiss_header(source);
  IndexParts parts = begun_parts(source, header);
  const bool fast = tag == "IPfs";
  const bool product = tag == "IxPq" || fast;
  const bool scalar = tag == "IxSQ";
  const FaissOwnCode* const own = own_code_of(tag);
  FaissCode code = product  ? read_product_quantizer(source, header.cols)
                   : scalar ? read_scalar_quantizer(source, header.cols)
                   : own    ? own->read(source, header.cols)
                            : read_additive_quantizer(source, header.cols, tag == "IxRq" ? kResidualCode : kLocalSearchCode);
  const CodeFormat& format = code.codec.format;
  if (format.adds_codewords()) source.exactly(code.code_bytes, "the bytes of a code");
  HostArray<uint8_t> codes = fast ? read_fast_codes(source, format, header.rows)
                                  : source.array<uint8_t>(saturating_multiply(header.rows, code.code_bytes), "codes");
  if (product && !fast) {
    source.skip(sizeof(int32_t), "how the index is searched");
    if (source.flag("whether codes are of signs")) source.unsupported("codes of signs, which Kith lacks");
    source.skip(sizeof(int32_t), "how the index is searched");
  }
  if (own != nullptr) {
    own->read_end(source, code);
    own->convert(source, code.codec, nullptr, header.rows, codes.data());
  }
  codes = code.known(std::move(codes), header.rows, source.resources());
  if (code.stores_bytes()) {  // flat rows
    MatrixBuffer rows(format.dtype, header.rows, header.cols, "the vectors", source.resources());
    std::copy(codes.begin(), codes.end(), static_cast<uint8_t*>(rows.mutable_view().data()));
    parts.dtype = format.dtype;
    parts.flat.emplace_back(std::move(rows));
    parts.factory = "Flat";
    return parts;
  }
  set_single_list(source, parts, std::move(code.codec), std::move(codes));
  return parts;
}

std::string transform_name(const TransformParts& transform, const IndexParts& parts) {
  if (transform.name == "OPQ") {  // FAISS's file has it as any linear map
    if (parts.lists && parts.lists->codec.format.copies_codewords()) {
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
  const FaissHeader header = read_faiss_header(source);
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
  if (parts.refine) source.unsupported("an IndexRefine behind transforms; Kith compares vectors as they were before them");
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
  const FaissHeader header = read_faiss_header(source);
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
    source.unsupported(fmt::format("an IndexRefine that refines with '{}'; Kith does with codes of vectors", parts.factory));
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
  const FaissHeader header = read_faiss_header(source);
  IndexParts parts = read_any(source, depth);
  IndexParts second = read_any(source, depth);
  const bool same = parts.cols == header.cols && parts.rows == header.rows && second.cols == header.cols &&
                    second.rows == header.rows;
  if (!same) source.corrupt("an index within another has another shape");
  if (parts.refine || !parts.ids.empty()) {
    source.unsupported("an IndexRefine over an index that is one too, or has ids of its own");
  }
  const auto factor = source.number<float>("the factor of an IndexRefine");
  if (!(factor >= 1 && factor <= 1000)) source.corrupt(fmt::format("the factor of an IndexRefine is {}", factor));
  parts.refine = refine_parts(source, std::move(second));
  parts.refine->factor = factor;
  const std::string name = code_name(parts.refine->codec);
  parts.factory += name == "Flat" ? ",RFlat" : fmt::format(",Refine({})", name);
  return parts;
}

// The vectors or codes that a graph is over; `header` is the graph's.
IndexParts read_storage(FaissSource& source, const FaissHeader& header, int depth) {
  IndexParts parts = read_any(source, depth);
  if (parts.cols != header.cols || parts.rows != header.rows)
    source.corrupt("the vectors of a graph are of another shape");
  return parts;
}

// HNSW: the lists of its lowest layer, where it is over vectors. Upper layers only help to find where to begin, which
// cells do here. Over codes it is read as those, which are searched without a graph.
IndexParts read_graph(FaissSource& source, int depth) {
  const FaissHeader header = read_faiss_header(source);
  source.skip_array(sizeof(double), "the shares of levels");
  const int64_t levels = source.count(sizeof(int32_t), "the lists of levels");
  if (levels < 2) source.corrupt("a graph without levels");
  const auto first = source.number<int32_t>("the lists of levels");
  const int64_t width = int64_t{source.number<int32_t>("the lists of levels")} - first;
  source.skip((levels - 2) * static_cast<int64_t>(sizeof(int32_t)), "the lists of levels");
  if (first != 0 || width < 1) source.corrupt(fmt::format("lists of {} neighbours", width));
  source.skip_array(sizeof(int32_t), "the levels of vectors");
  const HostArray<uint64_t> offsets = source.array<uint64_t>(header.rows + 1, "where lists begin");
  for (int64_t i = 0; i < header.rows; ++i) {
    const bool fits = offsets[i] <= offsets[i + 1] && offsets[i + 1] - offsets[i] >= static_cast<uint64_t>(width);
    if (!fits) source.corrupt(fmt::format("the list of vector {} is too short", i));
  }
  if (offsets[header.rows] > static_cast<uint64_t>(source.left())) source.corrupt("lists are longer than the file");
  const HostArray<int32_t> neighbors =
      source.array<int32_t>(static_cast<int64_t>(offsets[header.rows]), "the neighbours");
  source.skip(5 * sizeof(int32_t), "how the graph is searched");
  const int64_t degree = degree_for(width);  // 0: more neighbours than a Graph index has
  HostArray<uint32_t> lists(saturating_multiply(header.rows, degree), "the neighbours", source.resources());
  std::fill(lists.begin(), lists.end(), kNoEdge);
  for (int64_t i = 0; i < header.rows; ++i) {
    const int32_t* const list = neighbors.data() + offsets[i];
    for (int64_t n = 0; n < width && list[n] >= 0; ++n) {
      if (list[n] >= header.rows) source.corrupt(fmt::format("vector {} has a neighbour {}", i, list[n]));
      if (degree > 0) lists[i * degree + n] = static_cast<uint32_t>(list[n]);
    }
  }
  IndexParts parts = read_storage(source, header, depth);
  if (parts.rows > 0 && degree > 0 && parts.factory == "Flat" && parts.dtype == DType::f32) {
    join_parts(parts, lists, degree, source.resources());
  }
  return parts;
}

// NSG: its vectors or codes alone. The graph, which one entry serves, is built anew where one is wanted ("Graph32").
IndexParts read_nsg(FaissSource& source, int depth) {
  const FaissHeader header = read_faiss_header(source);
  source.skip(sizeof(int32_t) + sizeof(uint8_t) + 4 * sizeof(int32_t), "how the graph was built");
  if (source.number<int32_t>("the rows of the graph") != header.rows) source.corrupt("a graph of other rows");
  source.skip(5 * sizeof(int32_t), "how the graph is searched");  // R, L, C, search_L, the entry
  const bool built = source.flag("whether the graph is built");
  for (int64_t row = 0; built && row < header.rows; ++row) {
    while (source.number<int32_t>("the neighbours") >= 0) continue;
  }
  return read_storage(source, header, depth);
}

IndexParts read_any(FaissSource& source, int depth) {
  if (depth > kMostNested) source.corrupt(fmt::format("indexes within each other, {} deep", depth));
  const std::string tag = source.tag();
  if (is_flat_tag(tag)) return read_flat(source);
  if (is_inverted_tag(tag)) return read_faiss_inverted(source, tag);
  constexpr std::string_view kCodes[] = {"IxPq", "IPfs", "IxSQ", "IxLS", "IxRq"};
  if (own_code_of(tag) || std::find(std::begin(kCodes), std::end(kCodes), tag) != std::end(kCodes)) return read_codes(source, tag);
  if (tag == "IxPT") return read_transformed(source, depth + 1);
  if (tag == "IxMp" || tag == "IxM2") return read_with_ids(source, depth + 1);
  if (tag == "IxRF") return read_refined(source, depth + 1);
  if (tag == "IHNf" || tag == "IHNs" || tag == "IHNp") return read_graph(source, depth + 1);
  if (tag == "INSf" || tag == "INSs" || tag == "INSp") return read_nsg(source, depth + 1);
  if (tag.starts_with("IB")) {
    source.unsupported(fmt::format("FAISS's {}; Kith searches bits by Flat, of u8 vectors by hamming", faiss_kind(tag)));
  }
  if (tag[0] == 'I' || tag == "null") {
    source.unsupported(fmt::format("FAISS's {}, which Kith lacks; faiss.reconstruct_n gives its vectors", faiss_kind(tag)));
  }
  source.corrupt("this is no FAISS index: it does not begin as one");
}

// Asked only where a file was no index of FAISS's: what it is instead is worth more than what was wrong with it.
void refuse_other_file(const std::string& path) {
  std::string head(16, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  if (looks_like_faiss(head)) return;
  if (head.starts_with(kContainerMagic)) {
    throw InvalidArgument(fmt::format(
        "'{}' is a .kith file, not FAISS's; read it with kith.load, and name it *.kith for the program", path));
  }
  if (const FileKind kind = kind_of_file(path, head); !kind.name.empty()) {
    throw InvalidArgument(fmt::format("'{}' is {}, not an index of FAISS's: {}", path, kind.name, kind.hint));
  }
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

bool is_faiss_file(const std::string& path) { return looks_like_faiss(head_of_file(path)); }

Index read_faiss_index(const std::string& path, const Resources& resources) {
  try {
    return IndexAccess::from_parts(read_faiss(path, resources), resources);
  } catch (const CorruptFile&) {
    refuse_other_file(path);
    throw;
  }
}

}  // namespace kith
