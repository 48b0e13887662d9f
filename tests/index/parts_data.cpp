#include "index/parts_data.hpp"

#include "core/half.hpp"
#include "core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace kith::testing {
namespace {

using Kind = TransformParts::Kind;

constexpr int64_t kPartsCols = 6;
constexpr int64_t kPartsRows = 23;

const Resources& no_limits() {
  static const Resources shared;
  return shared;
}

std::vector<float> numbers(int64_t count, uint64_t stream) {
  const CounterRng random(7, stream);
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = random.uniform(i) - 0.5F;
  return values;
}

template <typename T>
HostArray<T> array(const std::vector<T>& values) {
  HostArray<T> made(static_cast<int64_t>(values.size()), "a test", no_limits());
  std::copy(values.begin(), values.end(), made.begin());
  return made;
}

MatrixBuffer matrix(int64_t rows, int64_t cols, uint64_t stream) {
  MatrixBuffer made(DType::f32, rows, cols, "a test", no_limits());
  const std::vector<float> values = numbers(rows * cols, stream);
  std::copy(values.begin(), values.end(), static_cast<float*>(made.mutable_view().data()));
  return made;
}

MatrixBuffer byte_matrix(DType dtype, int64_t rows, int64_t cols) {
  MatrixBuffer made(dtype, rows, cols, "a test", no_limits());
  const CounterRng random(7, 1);
  auto* const to = static_cast<uint8_t*>(made.mutable_view().data());
  for (int64_t i = 0; i < rows * cols; ++i) to[i] = static_cast<uint8_t>(random.below(static_cast<uint64_t>(i), 100));
  return made;
}

CodecParts codec_of(const std::string& kind, int64_t cols) {
  CodecParts codec;
  CodeFormat& format = codec.format;
  format.cols = cols;
  if (kind.starts_with("sq")) {
    format.kind = CodeKind::scalar;
    format.bits = kind.back() - '0';
    codec.values = numbers(2 * cols, 2);
    for (size_t i = static_cast<size_t>(cols); i < codec.values.size(); ++i)
      codec.values[i] = std::abs(codec.values[i]);
  } else if (kind.starts_with("pq")) {
    format.kind = CodeKind::product;
    format.bits = kind.back() - '0';
    format.parts = cols / 2;
    codec.values = numbers(format.codewords() * cols, 2);
  } else if (kind.starts_with("lsq") || kind == "rq") {
    format.kind = CodeKind::additive;
    format.bits = 5;
    format.parts = 3;
    codec.code = kind == "rq" ? kResidualCode : kLocalSearchCode;
    codec.effort = kind == "rq" ? 4 : 16;
    codec.values = numbers(format.parts * format.codewords() * cols, 2);
    if (kind.ends_with("_cqint8")) {
      format.norm = CodeNorm::cqint8;
      for (int64_t i = 0; i < kNormLevels; ++i) codec.values.push_back(static_cast<float>(i) / 64);
    }
  } else {
    format.dtype = parse_dtype(kind);
  }
  return codec;
}

HostArray<uint8_t> codes_of(const CodecParts& codec, int64_t rows) {
  const CodeFormat& format = codec.format;
  const CounterRng random(7, 3);
  HostArray<uint8_t> codes(rows * format.bytes(), "a test", no_limits());
  if (format.kind == CodeKind::stored && format.dtype == DType::f32) {
    const std::vector<float> values = numbers(rows * format.cols, 3);
    std::memcpy(codes.data(), values.data(), static_cast<size_t>(codes.bytes()));
    return codes;
  }
  for (int64_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<uint8_t>(random.below(static_cast<uint64_t>(i), 256));
  if (format.kind == CodeKind::stored && size_of(format.dtype) == 2) {
    for (int64_t i = 1; i < codes.size(); i += 2) codes[i] &= 0x3f;  // no infinities
  }
  const bool parted = format.kind == CodeKind::product || format.kind == CodeKind::additive;
  const int64_t bits = (parted ? format.parts : format.cols) * format.bits + format.norm_bits();
  if (format.kind != CodeKind::stored && bits % 8 != 0) {
    for (int64_t i = format.bytes() - 1; i < codes.size(); i += format.bytes())
      codes[i] &= static_cast<uint8_t>((1 << bits % 8) - 1);
  }
  return codes;
}

void set_lists(IndexParts& parts, const std::string& code, int64_t count, bool residual) {
  ListParts& lists = parts.lists.emplace();
  lists.lists = count;
  lists.residual = residual;
  lists.codec = codec_of(code, parts.stored_cols());
  if (count > 1) lists.centres = matrix(count, parts.stored_cols(), 4);
  std::vector<int64_t> offsets{0};
  std::vector<uint32_t> rows;
  for (int64_t list = 0; list < count; ++list) {
    for (int64_t row = 0; row < parts.rows; ++row) {  // list 1 is empty
      const int64_t home = count == 1 ? 0 : row * 5 % count == 1 ? 0 : row * 5 % count;
      if (home == list) rows.push_back(static_cast<uint32_t>(row));
    }
    offsets.push_back(static_cast<int64_t>(rows.size()));
  }
  lists.offsets = array(offsets);
  lists.rows = array(rows);
  lists.codes = codes_of(lists.codec, parts.rows);
}

TransformParts transform(Kind kind, const char* name, int64_t in, int64_t out, bool moved) {
  TransformParts made{kind, name, in, out, {}, {}};
  if (kind == Kind::linear) made.matrix = numbers(in * out, 5);
  if (moved) made.offset = numbers(out, 6);
  return made;
}

void set_ids(IndexParts& parts) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < parts.rows; ++i) ids.push_back(i * 37 % 101 + (int64_t{1} << 40));
  parts.next_id = *std::max_element(ids.begin(), ids.end()) + 5;
  parts.ids = array(ids);
}

void set_refine(IndexParts& parts, const std::string& code) {
  RefineParts& refine = parts.refine.emplace();
  refine.codec = codec_of(code, parts.cols);
  refine.codes = codes_of(refine.codec, parts.rows);
  refine.factor = 2.5F;
}

void expect_same(const CodecParts& a, const CodecParts& b) {
  EXPECT_EQ(a.format.kind, b.format.kind);
  EXPECT_EQ(a.format.cols, b.format.cols);
  EXPECT_EQ(a.format.dtype, b.format.dtype);
  EXPECT_EQ(a.format.bytes(), b.format.bytes());
  EXPECT_EQ(a.recipe().code, b.recipe().code);
  EXPECT_EQ(a.effort, b.effort);
  EXPECT_EQ(a.format.norm, b.format.norm);
  EXPECT_EQ(a.values, b.values);
}

template <typename T>
void expect_same(const PartArray<T>& a, const PartArray<T>& b) {
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
}

std::vector<uint8_t> bytes_of(const std::vector<PartMatrix>& blocks) {
  std::vector<uint8_t> bytes;
  for (const PartMatrix& block : blocks) {
    for (int64_t i = 0; i < block.rows(); ++i) {
      const auto* row = reinterpret_cast<const uint8_t*>(block.view().row(i));
      bytes.insert(bytes.end(), row, row + block.cols() * size_of(block.dtype()));
    }
  }
  return bytes;
}

float value_at(DType dtype, const uint8_t* from) {
  switch (dtype) {
    case DType::f32: {
      float value = 0;
      std::memcpy(&value, from, sizeof(value));
      return value;
    }
    case DType::u8: return from[0];
    case DType::i8: return static_cast<int8_t>(from[0]);
    default: break;
  }
  const auto bits = static_cast<uint16_t>(from[0] | from[1] << 8);
  return dtype == DType::f16 ? static_cast<float>(Half{bits}) : static_cast<float>(BFloat16{bits});
}

// A ring of 19 places, the first with two rows, in two cells; the last three rows came later.
void set_graph(IndexParts& parts, int64_t bits) {
  const bool coded = bits > 0;
  constexpr int64_t kPlaces = 19;
  const Resources resources;
  GraphParts graph;
  graph.degree = 16;
  if (coded) graph.bits = bits;
  graph.places = kPlaces;
  graph.rows = kPlaces + 1;
  graph.cells = 2;
  graph.entry_count = 3;
  graph.beams = 2;
  graph.clipped = coded ? 4 : 0;
  graph.connected = 1;
  graph.lost = 1;
  if (coded) graph.scale = {0.125F, 0, 1, -1, 0.5F, 2, -3};
  // Codes of four bits are 16 bytes for 32 columns; centres have a byte for each.
  const int64_t code_bytes = coded ? 16 : kPartsCols * 4;
  const int64_t centre_bytes = bits == 4 ? 32 : code_bytes;
  const auto bytes = [&](int64_t count, int64_t place_bytes) {
    HostArray<std::byte> values(count * place_bytes, "codes", resources);
    for (int64_t i = 0; i < values.size(); ++i) {
      const bool padding = coded && i % place_bytes >= kPartsCols;
      const int64_t most = bits == 4 && place_bytes == code_bytes ? 16 : 251;  // column i is in the lower half
      values[i] =
          padding ? std::byte{0} : static_cast<std::byte>(coded ? i * 7 % most : (i % 4 == 3 ? 63 : i * 7 % 128));
    }
    return values;
  };
  const auto numbers = [&](const std::vector<uint32_t>& values) {
    HostArray<uint32_t> array(std::ssize(values), "numbers", resources);
    std::copy(values.begin(), values.end(), array.begin());
    return array;
  };
  graph.codes = bytes(kPlaces, code_bytes);
  graph.centres = bytes(graph.cells, centre_bytes);
  std::vector<uint32_t> edges(static_cast<size_t>(kPlaces * graph.degree), UINT32_MAX);
  std::vector<uint32_t> offsets = {0};
  std::vector<uint32_t> rows = {0, 7};
  for (uint32_t place = 0; place < kPlaces; ++place) {
    edges[place * 16] = (place + 1) % kPlaces;
    edges[place * 16 + 1] = (place + kPlaces - 1) % kPlaces;
    offsets.push_back(place + 2);
    if (place > 0) rows.push_back(place < 7 ? place : place + 1);
  }
  graph.edges = numbers(edges);
  graph.place_offsets = numbers(offsets);
  graph.place_rows = numbers(rows);
  graph.entry_offsets = numbers({0, 1, 3});
  graph.entries = numbers({0, 9, 18});
  graph.table = {16, 0.75F, 32, 1};
  parts.graph = std::move(graph);
}

}  // namespace

std::vector<std::string> kinds_of_codecs() {
  return {"f32", "f16", "u8", "sq8", "sq6", "sq4", "pq8", "pq5", "pq4", "lsq", "rq"};
}

CodecParts make_codec(const std::string& kind) { return codec_of(kind, kPartsCols); }

std::vector<std::string> kinds_of_parts() {
  return {"empty",
          "flat",
          "flat_u8",
          "flat_blocks",
          "transformed_flat",
          "codes_sq6",
          "codes_pq4",
          "lists_f32",
          "lists_f16",
          "lists_u8",
          "lists_sq8",
          "lists_sq4",
          "lists_pq8",
          "lists_pq5",
          "residual",
          "ids",
          "refined",
          "everything",
          "no_rows",
          "parameters",
          "lists_lsq",
          "lists_lsq_cqint8",
          "lists_rq",
          "graph",
          "graph_l1",
          "graph_x4",
          "tuned"};
}

IndexParts make_parts(const std::string& kind) {
  IndexParts parts;
  parts.factory = kind;  // a name like any other here
  parts.metric = Metric::sqeuclidean;
  if (kind == "empty") return parts;
  parts.cols = kPartsCols;
  parts.rows = kind == "no_rows" ? 0 : kPartsRows;
  parts.next_id = kPartsRows;
  if (kind == "flat") {
    parts.metric = Metric::cosine;
    parts.flat.emplace_back(matrix(kPartsRows, kPartsCols, 1));
  } else if (kind == "flat_u8") {
    parts.metric = Metric::hamming;
    parts.dtype = DType::u8;
    parts.flat.emplace_back(byte_matrix(DType::u8, kPartsRows, kPartsCols));
  } else if (kind == "flat_blocks") {
    parts.metric = Metric::l1;
    parts.check_finite = false;
    parts.flat.emplace_back(matrix(kPartsRows - 5, kPartsCols, 1));
    const auto apart = std::make_shared<MatrixBuffer>(matrix(5, kPartsCols + 2, 2));
    parts.flat.emplace_back(MatrixView(apart->view().data(), DType::f32, {5, kPartsCols, kPartsCols + 2}), apart);
  } else if (kind == "transformed_flat") {
    parts.transforms = {transform(Kind::shift, "Centre", kPartsCols, kPartsCols, true),
                        transform(Kind::unit_length, "L2norm", kPartsCols, kPartsCols, false),
                        transform(Kind::padding, "Pad", kPartsCols, 8, false), transform(Kind::linear, "PCA", 8, 4, true)};
    parts.flat.emplace_back(matrix(kPartsRows, 4, 1));
  } else if (kind.starts_with("codes_")) {
    set_lists(parts, kind.substr(6), 1, false);
  } else if (kind.starts_with("lists_")) {
    set_lists(parts, kind.substr(6), 4, false);
    parts.probes = 2;
    if (kind == "lists_u8") parts.dtype = DType::u8;
  } else if (kind == "residual" || kind == "no_rows") {
    parts.metric = Metric::inner_product;
    set_lists(parts, "pq4", 4, true);
  } else if (kind == "ids") {
    set_lists(parts, "f32", 4, false);
    set_ids(parts);
  } else if (kind == "refined") {
    set_lists(parts, "pq4", 4, false);
    set_refine(parts, "f32");
  } else if (kind == "parameters") {
    parts.check_finite = false;
    parts.prepare = false;
    parts.expected_rows = 12345;
    parts.seed = UINT64_MAX;
    set_lists(parts, "sq8", 4, false);
  } else if (kind == "everything") {
    parts.transforms = {transform(Kind::linear, "OPQ", kPartsCols, 4, false)};
    set_lists(parts, "pq4", 4, true);
    set_ids(parts);
    set_refine(parts, "sq8");
  } else if (kind == "tuned") {
    set_lists(parts, "f32", 4, false);
    parts.tuned = TunedParts{2, 10, kPartsRows, {0, 0, 1, 0, 0.75, 0.125, 9.5, 0, 0, 4, 0, 1, 0, 25}};
  } else if (kind == "graph" || kind == "graph_x4") {
    parts.flat.emplace_back(matrix(kPartsRows, kPartsCols, 1));
    set_graph(parts, kind == "graph" ? 8 : 4);
  } else if (kind == "graph_l1") {
    parts.metric = Metric::l1;
    parts.flat.emplace_back(matrix(kPartsRows, kPartsCols, 1));
    set_graph(parts, 0);
  }
  return parts;
}

std::vector<float> decoded(const CodecParts& codec, const uint8_t* codes, int64_t count) {
  const CodeFormat& format = codec.format;
  std::vector<float> out(static_cast<size_t>(count * format.cols));
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* const code = codes + i * format.bytes();
    for (int64_t j = 0; j < format.cols; ++j) {
      float& to = out[static_cast<size_t>(i * format.cols + j)];
      if (format.kind == CodeKind::stored) {
        to = value_at(format.dtype, code + j * size_of(format.dtype));
      } else if (format.kind == CodeKind::scalar) {
        const double least = codec.values[static_cast<size_t>(j)];
        const double span = codec.values[static_cast<size_t>(format.cols + j)];
        to = static_cast<float>(least + span * (sub_code(code, j, format.bits) + 0.5) /
                                            static_cast<double>(format.codewords() - 1));
      } else if (format.kind == CodeKind::signs) {
        float step = 0;
        std::memcpy(&step, code + (format.cols + 7) / 8 + 4, sizeof step);
        to = codec.values[static_cast<size_t>(j)] + (sub_code(code, j, 1) != 0 ? step : -step);
      } else if (format.kind == CodeKind::additive) {
        for (int64_t p = 0; p < format.parts; ++p) {
          const int64_t word = p * format.codewords() + sub_code(code, p, format.bits);
          to += codec.values[static_cast<size_t>(word * format.cols + j)];
        }
      } else {
        const int64_t part = j / format.part_cols();
        const int64_t word = part * format.codewords() + sub_code(code, part, format.bits);
        to = codec.values[static_cast<size_t>(word * format.part_cols() + j % format.part_cols())];
      }
    }
  }
  return out;
}

std::vector<float> decoded(const IndexParts& parts) {
  const int64_t cols = parts.stored_cols();
  std::vector<float> out(static_cast<size_t>(parts.rows * cols));
  if (!parts.lists) {
    const std::vector<uint8_t> bytes = bytes_of(parts.flat);
    const DType dtype = parts.transforms.empty() ? parts.dtype : DType::f32;
    for (size_t i = 0; i < out.size(); ++i) out[i] = value_at(dtype, &bytes[i * static_cast<size_t>(size_of(dtype))]);
    return out;
  }
  const ListParts& lists = *parts.lists;
  const std::vector<float> values = decoded(lists.codec, lists.codes.data(), parts.rows);
  for (int64_t list = 0; list < lists.lists; ++list) {
    for (int64_t i = lists.offsets[list]; i < lists.offsets[list + 1]; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        const auto* centre = lists.residual ? reinterpret_cast<const float*>(lists.centres.view().row(list)) : nullptr;
        out[static_cast<size_t>(lists.rows[i] * cols + j)] =
            values[static_cast<size_t>(i * cols + j)] + (centre != nullptr ? centre[j] : 0.0F);
      }
    }
  }
  return out;
}

std::vector<double> transformed(const std::vector<TransformParts>& transforms, const float* vector) {
  if (transforms.empty()) return {};
  std::vector<double> x(vector, vector + transforms.front().in);
  for (const TransformParts& step : transforms) {
    std::vector<double> y(static_cast<size_t>(step.out));
    const double norm = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
    for (size_t i = 0; i < y.size(); ++i) {
      const double offset = step.offset.empty() ? 0 : step.offset[i];
      switch (step.kind) {
        case Kind::linear:
          y[i] = offset;
          for (size_t j = 0; j < x.size(); ++j) y[i] += static_cast<double>(step.matrix[i * x.size() + j]) * x[j];
          break;
        case Kind::shift: y[i] = x[i] + offset; break;
        case Kind::unit_length: y[i] = norm > 0 ? x[i] / norm : x[i]; break;
        case Kind::padding: y[i] = i < x.size() ? x[i] : 0; break;
      }
    }
    x = std::move(y);
  }
  return x;
}

void expect_same(const std::vector<TransformParts>& a, const std::vector<TransformParts>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].kind, b[i].kind);
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].in, b[i].in);
    EXPECT_EQ(a[i].out, b[i].out);
    EXPECT_EQ(a[i].matrix, b[i].matrix);
    EXPECT_EQ(a[i].offset, b[i].offset);
  }
}

void expect_same(const IndexParts& a, const IndexParts& b) {
  EXPECT_EQ(a.factory, b.factory);
  EXPECT_EQ(a.metric, b.metric);
  EXPECT_EQ(a.check_finite, b.check_finite);
  EXPECT_EQ(a.prepare, b.prepare);
  EXPECT_EQ(a.expected_rows, b.expected_rows);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.cols, b.cols);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.next_id, b.next_id);
  EXPECT_EQ(a.probes, b.probes);
  expect_same(a.transforms, b.transforms);
  EXPECT_EQ(bytes_of(a.flat), bytes_of(b.flat));
  expect_same(a.ids, b.ids);
  ASSERT_EQ(a.lists.has_value(), b.lists.has_value());
  if (a.lists) {
    EXPECT_EQ(a.lists->lists, b.lists->lists);
    EXPECT_EQ(a.lists->residual, b.lists->residual);
    std::vector<PartMatrix> centres_a;
    std::vector<PartMatrix> centres_b;
    centres_a.emplace_back(a.lists->centres.view(), nullptr);
    centres_b.emplace_back(b.lists->centres.view(), nullptr);
    EXPECT_EQ(bytes_of(centres_a), bytes_of(centres_b));
    expect_same(a.lists->codec, b.lists->codec);
    expect_same(a.lists->offsets, b.lists->offsets);
    expect_same(a.lists->codes, b.lists->codes);
    expect_same(a.lists->rows, b.lists->rows);
  }
  ASSERT_EQ(a.graph.has_value(), b.graph.has_value());
  if (a.graph) {
    const auto counts = [](const GraphParts& of) {
      return std::vector<int64_t>{of.degree,      of.bits,  of.places,  of.rows,      of.cells,
                                  of.entry_count, of.beams, of.clipped, of.connected, of.lost};
    };
    EXPECT_EQ(counts(*a.graph), counts(*b.graph));
    EXPECT_EQ(a.graph->scale, b.graph->scale);
    EXPECT_EQ(a.graph->table, b.graph->table);
    expect_same(a.graph->codes, b.graph->codes);
    expect_same(a.graph->centres, b.graph->centres);
    expect_same(a.graph->edges, b.graph->edges);
    expect_same(a.graph->place_offsets, b.graph->place_offsets);
    expect_same(a.graph->place_rows, b.graph->place_rows);
    expect_same(a.graph->entry_offsets, b.graph->entry_offsets);
    expect_same(a.graph->entries, b.graph->entries);
  }
  ASSERT_EQ(a.tuned.has_value(), b.tuned.has_value());
  if (a.tuned) {
    EXPECT_EQ(a.tuned->table(), b.tuned->table());
  }
  ASSERT_EQ(a.refine.has_value(), b.refine.has_value());
  if (a.refine) {
    expect_same(a.refine->codec, b.refine->codec);
    expect_same(a.refine->codes, b.refine->codes);
    EXPECT_EQ(a.refine->factor, b.refine->factor);
  }
}

}  // namespace kith::testing
