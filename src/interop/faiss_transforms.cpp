#include "interop/faiss_kinds.hpp"
#include "interop/faiss_parts.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

namespace kith {
namespace {

using Kind = TransformParts::Kind;

constexpr float kEuclidean = 2;

std::vector<float> any_floats(FaissSource& source, std::string_view what) {
  const int64_t start = source.count(sizeof(float), what);
  std::vector<float> values(static_cast<size_t>(start));
  source.read(values.data(), array_bytes<float>(start), what);
  return values;
}

// What stands before the shape, which comes last in the file.
TransformParts read_linear(FaissSource& source, std::string_view name) {
  TransformParts body;
  body.kind = Kind::linear;
  body.name = name;
  const bool has_offset = source.flag("whether a transform has an offset");
  body.matrix = any_floats(source, "the matrix of a transform");
  body.offset = any_floats(source, "the offset of a transform");
  if (!has_offset) body.offset.clear();
  return body;
}

// PCA keeps beside its matrix what it was trained from; three tags have more and more of it.
TransformParts read_pca(FaissSource& source, std::string_view tag) {
  source.skip(sizeof(float), "a PCA transform");                       // eigen_power
  if (tag == "Pcam") source.skip(sizeof(float), "a PCA transform");    // epsilon
  source.skip(1, "a PCA transform");                                   // random_rotation
  if (tag != "PCAm") source.skip(sizeof(int32_t), "a PCA transform");  // balanced_bins
  source.skip_array(sizeof(float), "the mean of a PCA transform");
  source.skip_array(sizeof(float), "the eigenvalues of a PCA transform");
  source.skip_array(sizeof(float), "the axes of a PCA transform");
  return read_linear(source, "PCA");
}

// `map`: of padding, which column each one is, or -1.
TransformParts read_body(FaissSource& source, std::vector<int32_t>& map) {
  const std::string tag = source.tag();
  if (tag == "LTra") return read_linear(source, "OPQ");
  if (tag == "rrot") return read_linear(source, "RR");
  if (tag == "Pcam" || tag == "PcAm" || tag == "PCAm") return read_pca(source, tag);
  TransformParts body;
  if (tag == "VNrm") {
    body.kind = Kind::unit_length;
    body.name = "L2norm";
    const auto norm = source.number<float>("the norm of a transform");
    if (norm != kEuclidean)
      source.unsupported(fmt::format("a transform to unit norm {}, where Kith has 2 alone", norm));
    return body;
  }
  if (tag == "VCnt") {
    body.kind = Kind::shift;
    body.name = "Centre";
    body.offset = any_floats(source, "the mean of a transform");
    for (float& value : body.offset) value = -value;
    return body;
  }
  if (tag == "RmDT") {
    body.kind = Kind::padding;
    body.name = "Pad";
    const int64_t size = source.count(sizeof(int32_t), "the columns of a transform");
    map.resize(static_cast<size_t>(size));
    source.read(map.data(), array_bytes<int32_t>(size), "the columns of a transform");
    return body;
  }
  source.unsupported(fmt::format("FAISS's {}, which Kith lacks", faiss_kind(tag)));
}

bool is_padding(const std::vector<int32_t>& map, int64_t in) {
  for (size_t i = 0; i < map.size(); ++i) {
    const auto column = static_cast<int64_t>(i);
    if (map[i] != (column < in ? column : -1)) return false;
  }
  return true;
}

}  // namespace

TransformParts read_transform(FaissSource& source) {
  std::vector<int32_t> map;
  TransformParts transform = read_body(source, map);
  const auto in = source.number<uint32_t>("the columns of a transform");
  const auto out = source.number<uint32_t>("the columns of a transform");
  if (in < 1 || out < 1 || in > kMostFaissCols || out > kMostFaissCols)
    source.corrupt(fmt::format("a transform of {} to {} columns", in, out));
  if (!source.flag("whether a transform is trained")) {
    source.refused("a transform is not trained; train the index in FAISS first");
  }
  transform.in = in;
  transform.out = out;
  const auto fits = [](const auto& values, int64_t wanted) { return static_cast<int64_t>(values.size()) == wanted; };
  bool sound = in == out;
  if (transform.kind == Kind::linear) {
    sound = fits(transform.matrix, int64_t{in} * out) && (transform.offset.empty() || fits(transform.offset, out));
  } else if (transform.kind == Kind::shift) {
    sound = sound && fits(transform.offset, out);
  } else if (transform.kind == Kind::padding) {
    sound = fits(map, out);
    if (sound && (out < in || !is_padding(map, in))) {
      source.unsupported("the transform 'RmDT' of FAISS with other than zeros behind the columns, which Kith lacks");
    }
  }
  if (!sound) source.corrupt("the values of a transform are not those of its shape");
  return transform;
}

void write_transform(FaissSink& sink, const TransformParts& transform) {
  switch (transform.kind) {
    case Kind::linear:
      sink.tag("LTra");
      sink.flag(!transform.offset.empty());
      sink.values<float>(transform.matrix);
      sink.values<float>(transform.offset);
      break;
    case Kind::shift: {
      std::vector<float> mean = transform.offset;
      for (float& value : mean) value = -value;
      sink.tag("VCnt");
      sink.values<float>(mean);
      break;
    }
    case Kind::unit_length:
      sink.tag("VNrm");
      sink.number(kEuclidean);
      break;
    case Kind::padding: {
      std::vector<int32_t> map(static_cast<size_t>(transform.out), -1);
      for (int32_t i = 0; i < transform.in; ++i) map[static_cast<size_t>(i)] = i;
      sink.tag("RmDT");
      sink.values<int32_t>(map);
      break;
    }
  }
  sink.number(static_cast<int32_t>(transform.in));
  sink.number(static_cast<int32_t>(transform.out));
  sink.flag(true);
}

}  // namespace kith
