#include "index/index_file.hpp"

#include <kith/error.hpp>

#include "core/reservation.hpp"
#include "index/index_about.hpp"
#include "index/index_parts_check.hpp"
#include "io/container/container_file.hpp"
#include "quantize/additive/code_norms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

namespace kith {
namespace {

constexpr int64_t kMostAboutBytes = 1 << 20;

// --- saving

ContainerWriter::Piece piece_of(std::string_view text) { return std::as_bytes(std::span(text)); }

template <typename T>
void add_array(ContainerWriter& writer, std::string_view name, SectionType type, const PartArray<T>& values) {
  writer.add(name, type, {values.size()}, {values.bytes()});
}

void add_floats(ContainerWriter& writer, std::string_view name, std::vector<int64_t> shape,
                const std::vector<float>& values) {
  writer.add(name, SectionType::f32, std::move(shape), {std::as_bytes(std::span(values))});
}

std::string norm_section(std::string_view codec) { return fmt::format("{}.norms", codec); }

void add_codec(ContainerWriter& writer, std::string_view name, const CodecParts& codec) {
  const std::vector<int64_t> shape = codec.recipe().code->shape(codec.format);
  if (shape.empty()) return;
  const std::span<const float> values(codec.values);
  const auto norms = static_cast<size_t>(norm_value_count(codec.format.norm));
  writer.add(name, SectionType::f32, shape, {std::as_bytes(values.first(values.size() - norms))});
  if (norms == 0) return;
  writer.add(norm_section(name), SectionType::f32, {static_cast<int64_t>(norms)}, {std::as_bytes(values.last(norms))});
}

int64_t table_bytes(const CodecParts& codec) { return codec.recipe().code->tables_footprint(codec.format).host; }

void add_codes(ContainerWriter& writer, std::string_view name, const PartArray<uint8_t>& codes, int64_t rows,
               const CodeFormat& format) {
  writer.add(name, SectionType::u8, {rows, format.bytes()}, {codes.bytes()});
}

// Rows of one width in blocks; a block whose rows are apart is given row by row.
void add_blocks(ContainerWriter& writer, std::string_view name, DType dtype, int64_t cols,
                std::span<const PartMatrix> blocks) {
  std::vector<ContainerWriter::Piece> pieces;
  int64_t rows = 0;
  for (const PartMatrix& block : blocks) {
    const MatrixView& view = block.view();
    if (view.empty()) continue;
    rows += view.rows();
    const auto row_bytes = static_cast<size_t>(view.cols() * size_of(view.dtype()));
    if (view.row_stride() == view.cols()) {
      pieces.emplace_back(view.row(0), row_bytes * static_cast<size_t>(view.rows()));
      continue;
    }
    for (int64_t i = 0; i < view.rows(); ++i) pieces.emplace_back(view.row(i), row_bytes);
  }
  writer.add(name, section_type(dtype), {rows, cols}, std::move(pieces));
}

void add_transforms(ContainerWriter& writer, const std::vector<TransformParts>& transforms) {
  for (size_t i = 0; i < transforms.size(); ++i) {
    const TransformParts& transform = transforms[i];
    if (!transform.matrix.empty()) {
      add_floats(writer, transform_section(i, "matrix"), {transform.out, transform.in}, transform.matrix);
    }
    if (!transform.offset.empty()) {
      add_floats(writer, transform_section(i, "offset"), {transform.out}, transform.offset);
    }
  }
}

void add_lists(ContainerWriter& writer, const ListParts& lists, int64_t rows) {
  if (lists.centres.rows() > 0) {
    add_blocks(writer, "centres", DType::f32, lists.centres.cols(), std::span(&lists.centres, 1));
  }
  add_codec(writer, "codec", lists.codec);
  // A single list holds the rows in their order.
  if (lists.lists > 1) {
    add_array(writer, "offsets", SectionType::i64, lists.offsets);
    add_array(writer, "rows", SectionType::u32, lists.rows);
  }
  add_codes(writer, "codes", lists.codes, rows, lists.codec.format);
}

// --- loading

// A kind of file as users call it.
std::string_view kind_in_words(std::string_view kind) {
  if (kind == "codec") return "a quantizer";
  if (kind == "index") return "an index";
  return kind;
}

class PartsReader {
 public:
  PartsReader(const std::string& path, std::string_view kind, const Resources& resources)
      : file_(path), resources_(resources) {
    if (file_.kind() != kind) {
      throw InvalidArgument(fmt::format("'{}' holds {}; give a .kith file of {}", path, kind_in_words(file_.kind()),
                                        kind_in_words(kind)));
    }
  }

  int64_t bytes() const {
    int64_t all = 0;
    for (const Section& section : file_.sections()) all += section.bytes;
    return all;
  }
  bool has(std::string_view name) const { return file_.find(name) != nullptr; }
  uint32_t version() const { return file_.version(); }
  const Resources& resources() const { return resources_; }

  std::string about() {
    const Section* const section = file_.find("about");
    if (section == nullptr || section->type != SectionType::text || section->bytes > kMostAboutBytes) {
      file_.corrupt("there is no proper section 'about'");
    }
    std::string text(static_cast<size_t>(section->bytes), '\0');
    file_.read(*section, text.data(), resources_);
    ++used_;
    return text;
  }

  template <typename T>
  HostArray<T> array(std::string_view name, SectionType type, const std::vector<int64_t>& shape) {
    const Section& section = expect(name, type, shape);
    HostArray<T> values(section.bytes / static_cast<int64_t>(sizeof(T)), purpose(name), resources_);
    file_.read(section, values.data(), resources_);
    return values;
  }
  // Small and kept in a vector; too small a limit is found before it is made.
  std::vector<float> floats(std::string_view name, const std::vector<int64_t>& shape) {
    const Section& section = expect(name, SectionType::f32, shape);
    const Reservation room(section.bytes, 0, resources_);
    std::vector<float> values(static_cast<size_t>(section.bytes) / sizeof(float));
    file_.read(section, values.data(), resources_);
    return values;
  }
  std::vector<double> doubles(std::string_view name, int64_t count) {
    const Section& section = expect(name, SectionType::f64, {count});
    const Reservation room(section.bytes, 0, resources_);
    std::vector<double> values(static_cast<size_t>(count));
    file_.read(section, values.data(), resources_);
    return values;
  }
  MatrixBuffer matrix(std::string_view name, DType dtype, int64_t rows, int64_t cols) {
    const Section& section = expect(name, section_type(dtype), {rows, cols});
    MatrixBuffer values(dtype, rows, cols, purpose(name), resources_);
    file_.read(section, values.mutable_view().data(), resources_);
    return values;
  }

  void finish() const {
    if (used_ != file_.sections().size()) file_.corrupt("there are sections that do not belong to what it holds");
  }
  // Does the work; what it finds wrong is said of this file.
  template <typename Work>
  void naming_the_file(const Work& work) const {
    try {
      work();
    } catch (const AboutProblem& problem) {
      fail("about", problem.what());
    } catch (const PartsProblem& problem) {
      fail(problem.section(), problem.reason());
    }
  }

 private:
  static std::string purpose(std::string_view name) { return fmt::format("'{}' of the file", name); }

  const Section& expect(std::string_view name, SectionType type, const std::vector<int64_t>& shape) {
    const Section* const section = file_.find(name);
    if (section == nullptr) file_.corrupt(fmt::format("section '{}' is missing", name));
    if (section->type != type || section->shape != shape) {
      file_.corrupt(*section, fmt::format("it must be {} of {}, and is {} of {}", fmt::join(shape, " x "),
                                          name_of(type), fmt::join(section->shape, " x "), name_of(section->type)));
    }
    ++used_;
    return *section;
  }

  [[noreturn]] void fail(const std::string& name, std::string_view reason) const {
    const Section* const section = file_.find(name);
    if (section == nullptr) file_.corrupt(fmt::format("section '{}': {}", name, reason));
    file_.corrupt(*section, reason);
  }

  ContainerFile file_;
  Resources resources_;
  size_t used_ = 0;
};

CodecParts read_codec(PartsReader& reader, std::string_view name, CodecParts codec) {
  check_code_format(codec);
  const std::vector<int64_t> shape = codec.recipe().code->shape(codec.format);
  if (shape.empty()) return codec;
  codec.values = reader.floats(name, shape);
  if (const int64_t norms = norm_value_count(codec.format.norm); norms > 0) {
    const std::vector<float> values = reader.floats(norm_section(name), {norms});
    codec.values.insert(codec.values.end(), values.begin(), values.end());
  }
  return codec;
}

void read_transforms(PartsReader& reader, std::vector<TransformParts>& transforms) {
  for (size_t i = 0; i < transforms.size(); ++i) {
    TransformParts& transform = transforms[i];
    const std::string matrix = transform_section(i, "matrix");
    const std::string offset = transform_section(i, "offset");
    if (transform.kind == TransformParts::Kind::linear) {
      transform.matrix = reader.floats(matrix, {transform.out, transform.in});
    }
    if (reader.has(offset)) transform.offset = reader.floats(offset, {transform.out});
  }
}

PartArray<uint8_t> read_codes(PartsReader& reader, std::string_view name, int64_t rows, const CodeFormat& format) {
  return reader.array<uint8_t>(name, SectionType::u8, {rows, format.bytes()});
}

void read_lists(PartsReader& reader, IndexParts& parts) {
  ListParts& lists = *parts.lists;
  check_list_count(lists.lists);
  lists.codec = read_codec(reader, "codec", std::move(lists.codec));
  if (reader.has("centres")) lists.centres = reader.matrix("centres", DType::f32, lists.lists, parts.stored_cols());
  if (lists.lists > 1) {
    lists.offsets = reader.array<int64_t>("offsets", SectionType::i64, {lists.lists + 1});
    lists.rows = reader.array<uint32_t>("rows", SectionType::u32, {parts.rows});
  }
  lists.codes = read_codes(reader, "codes", parts.rows, lists.codec.format);
  if (lists.lists == 1) {  // last, since now the file is known to have so many rows
    HostArray<int64_t> offsets(2, "the list", reader.resources());
    HostArray<uint32_t> rows(parts.rows, "the rows of the list", reader.resources());
    offsets[0] = 0;
    offsets[1] = parts.rows;
    std::iota(rows.begin(), rows.end(), 0U);
    lists.offsets = std::move(offsets);
    lists.rows = std::move(rows);
  }
}

void require_version(const PartsReader& reader, uint32_t version) {
  if (reader.version() == version) return;
  throw AboutProblem(
      fmt::format("what it says is of version {}, and the file of version {}", version, reader.version()));
}

void read_index(PartsReader& reader, IndexParts& parts) {
  parts = parse_about_index(reader.about());
  require_version(reader, about_version(parts));
  read_transforms(reader, parts.transforms);
  if (parts.lists) {
    read_lists(reader, parts);
  } else {
    const DType dtype = parts.transforms.empty() ? parts.dtype : DType::f32;
    parts.flat.emplace_back(reader.matrix("flat", dtype, parts.rows, parts.stored_cols()));
  }
  if (reader.has("ids")) parts.ids = reader.array<int64_t>("ids", SectionType::i64, {parts.rows});
  if (parts.refine) {
    parts.refine->codec = read_codec(reader, "refine.codec", std::move(parts.refine->codec));
    parts.refine->codes = read_codes(reader, "refine.codes", parts.rows, parts.refine->codec.format);
  }
  if (reader.has("subtracted")) parts.subtracted = reader.doubles("subtracted", parts.cols);
  reader.finish();
  check_parts(parts, reader.resources());
}

}  // namespace

void save_parts(const IndexParts& parts, const std::string& path, const Resources& resources) {
  check_parts(parts, resources);
  const std::string about = about_index(parts);
  ContainerWriter writer("index", about_version(parts));
  writer.add("about", SectionType::text, {static_cast<int64_t>(about.size())}, {piece_of(about)});
  add_transforms(writer, parts.transforms);
  if (parts.lists) {
    add_lists(writer, *parts.lists, parts.rows);
  } else {
    const DType dtype = parts.transforms.empty() ? parts.dtype : DType::f32;
    add_blocks(writer, "flat", dtype, parts.stored_cols(), parts.flat);
  }
  if (!parts.ids.empty()) add_array(writer, "ids", SectionType::i64, parts.ids);
  if (parts.refine) {
    add_codec(writer, "refine.codec", parts.refine->codec);
    add_codes(writer, "refine.codes", parts.refine->codes, parts.rows, parts.refine->codec.format);
  }
  if (!parts.subtracted.empty()) {
    writer.add("subtracted", SectionType::f64, {parts.cols}, {std::as_bytes(std::span(parts.subtracted))});
  }
  writer.write(path, resources);
}

IndexParts load_parts(const std::string& path, const Resources& resources) {
  PartsReader reader(path, "index", resources);
  IndexParts parts;
  reader.naming_the_file([&] { read_index(reader, parts); });
  return parts;
}

int64_t load_bytes(const std::string& path, const Resources& resources) {
  PartsReader reader(path, "index", resources);
  const IndexParts parts = parse_about_index(reader.about());
  // Row numbers of a single list, ids by number, and the checks of both.
  int64_t bytes = reader.bytes() + parts.rows / 8 + 64;
  if (parts.lists && parts.lists->lists <= 1) bytes += array_bytes<uint32_t>(parts.rows);
  if (reader.has("ids")) bytes += parts.rows * (12 + 8);
  for (const TransformParts& transform : parts.transforms) {  // kept in another form, made from the file's
    bytes += 2 * array_bytes<double>((transform.in + 1) * transform.out);
  }
  constexpr int64_t kScratch = 1 << 20;  // of a thread that multiplies
  if (!parts.transforms.empty()) bytes += (resources.threads() + 3) * kScratch;
  if (parts.lists) bytes += table_bytes(parts.lists->codec);
  if (parts.refine) bytes += table_bytes(parts.refine->codec);
  return bytes;
}

void save_codec(const QuantizerParts& parts, const std::string& path, const Resources& resources) {
  check_codec(parts.codec, "codec");
  const std::string about = about_codec(parts);
  ContainerWriter writer("codec", about_version(parts));
  writer.add("about", SectionType::text, {static_cast<int64_t>(about.size())}, {piece_of(about)});
  add_codec(writer, "codec", parts.codec);
  writer.write(path, resources);
}

QuantizerParts load_codec(const std::string& path, const Resources& resources) {
  PartsReader reader(path, "codec", resources);
  QuantizerParts parts;
  reader.naming_the_file([&] {
    parts = parse_about_codec(reader.about());
    require_version(reader, about_version(parts));
    parts.codec = read_codec(reader, "codec", std::move(parts.codec));
    reader.finish();
    check_codec(parts.codec, "codec");
  });
  return parts;
}

void save_transforms(const SavedTransforms& parts, const std::string& path, const Resources& resources) {
  check_transforms(parts.transforms);
  const std::string about = about_transforms(parts);
  ContainerWriter writer("transforms", about_version(parts));
  writer.add("about", SectionType::text, {static_cast<int64_t>(about.size())}, {piece_of(about)});
  add_transforms(writer, parts.transforms);
  writer.write(path, resources);
}

SavedTransforms load_transforms(const std::string& path, const Resources& resources) {
  PartsReader reader(path, "transforms", resources);
  SavedTransforms parts;
  reader.naming_the_file([&] {
    parts = parse_about_transforms(reader.about());
    require_version(reader, about_version(parts));
    read_transforms(reader, parts.transforms);
    reader.finish();
    check_transforms(parts.transforms);
  });
  return parts;
}

}  // namespace kith
