// A whole FAISS file: what its first index is, and indexes over another one (transforms, ids, refining).
#include "interop/faiss_file.hpp"

#include <kith/error.hpp>

#include "index/index_parts_check.hpp"
#include "interop/faiss_codes.hpp"
#include "interop/faiss_flat.hpp"
#include "interop/faiss_header.hpp"
#include "interop/faiss_inverted.hpp"
#include "interop/faiss_source.hpp"
#include "interop/faiss_transforms.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace kith {
namespace {

constexpr int kMostNested = 50;  // FAISS's own limit

IndexParts read_any(FaissSource& source, int depth);

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
  const FaissHeader header = read_faiss_header(source);
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
  const std::string name = code_name(parts.refine->codec);
  parts.factory += name == "Flat" ? ",RFlat" : fmt::format(",Refine({})", name);
  return parts;
}

IndexParts read_any(FaissSource& source, int depth) {
  if (depth > kMostNested) source.corrupt(fmt::format("indexes within each other, {} deep", depth));
  const std::string tag = source.tag();
  if (is_flat_tag(tag)) return read_faiss_flat(source);
  if (tag == "IxPq") return read_faiss_product(source);
  if (tag == "IPfs") return read_faiss_fast_product(source);
  if (tag == "IxSQ") return read_faiss_scalar(source);
  if (tag == "IwFl") return read_faiss_inverted_flat(source);
  if (tag == "IwPQ" || tag == "IwPf") return read_faiss_inverted_product(source, tag == "IwPf");
  if (tag == "IwSq") return read_faiss_inverted_scalar(source);
  if (tag == "IxLS") return read_faiss_additive(source, kLocalSearchCode);
  if (tag == "IxRq") return read_faiss_additive(source, kResidualCode);
  if (tag == "IwLS") return read_faiss_inverted_additive(source, kLocalSearchCode);
  if (tag == "IwRQ") return read_faiss_inverted_additive(source, kResidualCode);
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
