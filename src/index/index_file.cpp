#include "index/index_file.hpp"

#include <kith/error.hpp>

#include "core/reservation.hpp"
#include "graph/search/graph/walk_coder.hpp"
#include "index/index_about.hpp"
#include "index/index_parts_check.hpp"
#include "io/atomic_file_writer.hpp"
#include "io/container/container_file.hpp"
#include "io/container/xxh3.hpp"
#include "io/file_mapping.hpp"
#include "quantize/additive/code_norms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <type_traits>

namespace kith {
namespace {

constexpr int64_t kMostAboutBytes = 1 << 20;

// --- saving

template <typename T>
void add_array(ContainerWriter& writer, std::string_view name, SectionType type, const PartArray<T>& values) {
  writer.add(name, type, {values.size()}, {values.bytes()});
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

// Rows of equal width in blocks; a block with gaps between rows is written row by row.
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
    const auto add = [&](std::string_view what, std::vector<int64_t> shape, const std::vector<float>& values) {
      if (values.empty()) return;
      writer.add(transform_section(i, what), SectionType::f32, std::move(shape), {std::as_bytes(std::span(values))});
    };
    add("matrix", {transform.out, transform.in}, transform.matrix);
    add("offset", {transform.out}, transform.offset);
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
    writer.add("rows", SectionType::u32, {rows}, {lists.rows.bytes()});
  }
  add_codes(writer, "codes", lists.codes, rows, lists.codec.format);
}

void add_graph(ContainerWriter& writer, const IndexParts& parts) {
  const GraphParts& graph = *parts.graph;
  const auto vector = [&](std::string_view name, std::vector<int64_t> shape, const std::vector<float>& values) {
    if (!values.empty()) writer.add(name, SectionType::f32, std::move(shape), {std::as_bytes(std::span(values))});
  };
  const WalkCoder coder = walk_coder_of(parts);
  vector("graph.scale", {std::ssize(graph.scale)}, graph.scale);
  writer.add("graph.codes", SectionType::u8, {graph.places, coder.place_bytes()}, {graph.codes.bytes()});
  writer.add("graph.edges", SectionType::u32, {graph.places, graph.degree}, {graph.edges.bytes()});
  add_array(writer, "graph.place_offsets", SectionType::u32, graph.place_offsets);
  add_array(writer, "graph.place_rows", SectionType::u32, graph.place_rows);
  writer.add("graph.centres", SectionType::u8, {graph.cells, coder.centre_bytes()}, {graph.centres.bytes()});
  add_array(writer, "graph.entry_offsets", SectionType::u32, graph.entry_offsets);
  add_array(writer, "graph.entries", SectionType::u32, graph.entries);
  vector("graph.table", {graph.beams, 2}, graph.table);
}

// Writes a file of one kind: the text about its parts, and the sections that add(writer) adds.
template <typename Parts, typename Add>
void save(std::string_view kind, const Parts& parts, const std::string& path, const Resources& resources,
          const Add& add, const ProducedFile& produced = {}) {
  const AboutText about = about_parts(parts);
  ContainerWriter writer(kind, about.version);
  for (const auto& [name, bytes] : produced.sections) writer.produce(name, bytes);
  writer.add("about", SectionType::text, {static_cast<int64_t>(about.text.size())},
             {std::as_bytes(std::span(about.text))});
  add(writer);
  if (produced.into != nullptr) {
    writer.write_to(*produced.into, resources);
  } else if (produced.synced) {
    writer.write(path, resources);
  } else {
    writer.write_unsynced(path, resources);
  }
}

// --- loading

// A kind of file in users' words.
std::string_view kind_in_words(std::string_view kind) {
  if (kind == "codec") return "a quantizer";
  if (kind == "index") return "an index";
  return kind;
}

class PartsReader {
 public:
  // From a path, or a file that a disk has opened.
  template <typename From>
  PartsReader(const From& from, std::string_view kind, const Resources& resources, const LoadMode& mode = {})
      : file_(from), resources_(resources), mode_(mode) {
    if (file_.kind() != kind) {
      throw InvalidArgument(fmt::format("'{}' holds {}; give a .kith file of {}", file_.path(),
                                        kind_in_words(file_.kind()), kind_in_words(kind)));
    }
  }

  int64_t bytes() const {
    int64_t all = 0;
    for (const Section& section : file_.sections()) all += section.bytes;
    return all;
  }
  // Bytes of the sections that are not read.
  int64_t bytes_elsewhere() const {
    int64_t all = 0;
    const auto count = [&](std::string_view name, RowArrays where) {
      const Section* const section = file_.find(name);
      if (section != nullptr && where != RowArrays::read) all += section->bytes;
    };
    for (const std::string_view name : {"rows", "codes"}) count(name, mode_.lists);
    for (const std::string_view name : {"flat", "refine.codes"}) count(name, mode_.vectors);
    return all;
  }
  const LoadMode& mode() const { return mode_; }
  const std::string& path() const { return file_.path(); }
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
  // The same for an array that may stay in the mapped file.
  template <typename T>
  PartArray<T> array(std::string_view name, SectionType type, const std::vector<int64_t>& shape, RowArrays where) {
    if (where == RowArrays::read) return array<T>(name, type, shape);
    const Section& section = expect(name, type, shape);
    if (where == RowArrays::left_out) return {};
    const auto* const values = reinterpret_cast<const T*>(mapped(section));
    return {{values, static_cast<size_t>(section.bytes) / sizeof(T)}, mapping_, true};
  }
  PartMatrix matrix(std::string_view name, DType dtype, int64_t rows, int64_t cols, RowArrays where) {
    if (where == RowArrays::read) return matrix(name, dtype, rows, cols);
    const Section& section = expect(name, section_type(dtype), {rows, cols});
    if (where == RowArrays::left_out) return {};
    return {MatrixView(mapped(section), dtype, {rows, cols, cols}), mapping_, true};
  }
  // Small and kept in a vector; too small a limit is found before it is made.
  template <typename T = float>
  std::vector<T> vector(std::string_view name, const std::vector<int64_t>& shape) {
    const Section& section = expect(name, std::is_same_v<T, double> ? SectionType::f64 : SectionType::f32, shape);
    const Reservation room(section.bytes, 0, resources_);
    std::vector<T> values(static_cast<size_t>(section.bytes) / sizeof(T));
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
  // Does the work, and attributes problems that it finds to this file.
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

  // The section in the file, which is mapped once.
  const std::byte* mapped(const Section& section) {
    if (mapping_ == nullptr) {
      mapping_ = std::make_shared<const FileMapping>(file_.descriptor(), file_.size(), file_.path());
    }
    const std::byte* const values = mapping_->data() + section.offset;
    if (mode_.verify) file_.verify(section, xxh3({values, static_cast<size_t>(section.bytes)}));
    return values;
  }

  [[noreturn]] void fail(const std::string& name, std::string_view reason) const {
    const Section* const section = file_.find(name);
    if (section == nullptr) file_.corrupt(fmt::format("section '{}': {}", name, reason));
    file_.corrupt(*section, reason);
  }

  ContainerFile file_;
  Resources resources_;
  const LoadMode mode_;
  std::shared_ptr<const FileMapping> mapping_;
  size_t used_ = 0;
};

CodecParts read_codec(PartsReader& reader, std::string_view name, CodecParts codec) {
  check_code_format(codec);
  const std::vector<int64_t> shape = codec.recipe().code->shape(codec.format);
  if (shape.empty()) return codec;
  codec.values = reader.vector(name, shape);
  if (const int64_t norms = norm_value_count(codec.format.norm); norms > 0) {
    const std::vector<float> values = reader.vector(norm_section(name), {norms});
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
      transform.matrix = reader.vector(matrix, {transform.out, transform.in});
    }
    if (reader.has(offset)) transform.offset = reader.vector(offset, {transform.out});
  }
}

PartArray<uint8_t> read_codes(PartsReader& reader, std::string_view name, int64_t rows, const CodeFormat& format,
                              RowArrays where) {
  return reader.array<uint8_t>(name, SectionType::u8, {rows, format.bytes()}, where);
}

void put_in_no_list(ListParts& lists, const Resources& resources) {
  HostArray<int64_t> begins(lists.lists + 1, "the lists", resources);
  std::fill(begins.begin(), begins.end(), int64_t{0});
  lists.offsets = std::move(begins);
}

void read_lists(PartsReader& reader, IndexParts& parts) {
  ListParts& lists = *parts.lists;
  const RowArrays where = reader.mode().lists;
  check_list_count(lists.lists);
  lists.codec = read_codec(reader, "codec", std::move(lists.codec));
  if (reader.has("centres")) lists.centres = reader.matrix("centres", DType::f32, lists.lists, parts.stored_cols());
  if (lists.lists > 1) {
    lists.offsets = reader.array<int64_t>("offsets", SectionType::i64, {lists.lists + 1});
    lists.rows = reader.array<uint32_t>("rows", SectionType::u32, {parts.rows}, where);
  }
  lists.codes = read_codes(reader, "codes", parts.rows, lists.codec.format, where);
  if (where == RowArrays::mapped) lists.path = reader.path();
  if (where == RowArrays::left_out) return put_in_no_list(lists, reader.resources());
  // Last, since now the file is known to have so many rows.
  if (lists.lists == 1) lists.put_in_one_list(parts.rows, reader.resources());
}

void read_graph(PartsReader& reader, IndexParts& parts) {
  GraphParts& graph = *parts.graph;
  check_graph_counts(parts);
  if (graph.beams == 0) throw PartsProblem("about", "a graph that was not measured");
  if (reader.has("graph.scale")) graph.scale = reader.vector("graph.scale", {parts.stored_cols() + 1});
  const WalkCoder coder = walk_coder_of(parts);
  graph.codes = reader.array<std::byte>("graph.codes", SectionType::u8, {graph.places, coder.place_bytes()});
  graph.edges = reader.array<uint32_t>("graph.edges", SectionType::u32, {graph.places, graph.degree});
  graph.place_offsets = reader.array<uint32_t>("graph.place_offsets", SectionType::u32, {graph.places + 1});
  graph.place_rows = reader.array<uint32_t>("graph.place_rows", SectionType::u32, {graph.rows});
  graph.centres = reader.array<std::byte>("graph.centres", SectionType::u8, {graph.cells, coder.centre_bytes()});
  graph.entry_offsets = reader.array<uint32_t>("graph.entry_offsets", SectionType::u32, {graph.cells + 1});
  graph.entries = reader.array<uint32_t>("graph.entries", SectionType::u32, {graph.entry_count});
  graph.table = reader.vector("graph.table", {graph.beams, 2});
}

// Reads a file of one kind: the text about its parts, and the sections that read(reader, parts) reads.
template <typename Parts, typename From, typename Read>
Parts load(const From& from, std::string_view kind, const Resources& resources, const Read& read,
           const LoadMode& mode = {}) {
  PartsReader reader(from, kind, resources, mode);
  Parts parts;
  reader.naming_the_file([&] {
    parts = parse_about<Parts>(reader.about());
    if (const uint32_t version = about_parts(parts).version; reader.version() != version) {
      throw AboutProblem(
          fmt::format("what it says is of version {}, and the file of version {}", version, reader.version()));
    }
    read(reader, parts);
  });
  return parts;
}

void read_index(PartsReader& reader, IndexParts& parts) {
  read_transforms(reader, parts.transforms);
  if (parts.lists) {
    read_lists(reader, parts);
  } else {
    const DType dtype = parts.transforms.empty() ? parts.dtype : DType::f32;
    parts.flat.emplace_back(reader.matrix("flat", dtype, parts.rows, parts.stored_cols(), reader.mode().vectors));
  }
  if (parts.graph) read_graph(reader, parts);
  if (reader.has("ids")) parts.ids = reader.array<int64_t>("ids", SectionType::i64, {parts.rows});
  if (parts.refine) {
    parts.refine->codec = read_codec(reader, "refine.codec", std::move(parts.refine->codec));
    parts.refine->codes =
        read_codes(reader, "refine.codes", parts.rows, parts.refine->codec.format, reader.mode().vectors);
  }
  if (parts.tuned) {
    check_tuned_counts(*parts.tuned);
    parts.tuned->values = reader.vector<double>("tuned", {parts.tuned->count, TunedParts::kValues});
  }
  if (reader.has("subtracted")) parts.subtracted = reader.vector<double>("subtracted", {parts.cols});
  reader.finish();
  if (reader.mode().lists == RowArrays::left_out) {
    parts.rows = 0;
    parts.next_id = 0;
    parts.ids = {};
    parts.flat.clear();
  }
  check_parts(parts, reader.resources());
}

}  // namespace

void save_parts(const IndexParts& parts, const std::string& path, const Resources& resources) {
  check_parts(parts, resources);
  save_parts(parts, ProducedFile(), path, resources);
}

void save_parts(const IndexParts& parts, const ProducedFile& produced, const std::string& path,
                const Resources& resources) {
  if (produced.synced && produced.into == nullptr) remove_left_beside(path);
  const auto add_sections = [&](ContainerWriter& writer) {
    add_transforms(writer, parts.transforms);
    if (parts.lists) {
      add_lists(writer, *parts.lists, parts.rows);
    } else {
      const DType dtype = parts.transforms.empty() ? parts.dtype : DType::f32;
      if (produced.sections.contains("flat")) {
        writer.add("flat", section_type(dtype), {parts.rows, parts.stored_cols()}, {});
      } else {
        add_blocks(writer, "flat", dtype, parts.stored_cols(), parts.flat);
      }
    }
    if (parts.graph) add_graph(writer, parts);
    if (!parts.ids.empty() || produced.sections.contains("ids")) {
      writer.add("ids", SectionType::i64, {parts.rows}, {parts.ids.bytes()});
    }
    if (parts.refine) {
      add_codec(writer, "refine.codec", parts.refine->codec);
      add_codes(writer, "refine.codes", parts.refine->codes, parts.rows, parts.refine->codec.format);
    }
    if (parts.tuned) {
      writer.add("tuned", SectionType::f64, {parts.tuned->count, TunedParts::kValues},
                 {std::as_bytes(std::span(parts.tuned->values))});
    }
    if (!parts.subtracted.empty()) {
      writer.add("subtracted", SectionType::f64, {parts.cols}, {std::as_bytes(std::span(parts.subtracted))});
    }
  };
  save("index", parts, path, resources, add_sections, produced);
}

IndexParts load_parts(const std::string& path, const Resources& resources, const LoadMode& mode) {
  return load<IndexParts>(path, "index", resources, read_index, mode);
}

IndexParts load_parts(const std::shared_ptr<const DiskFile>& file, const Resources& resources, const LoadMode& mode) {
  return load<IndexParts>(file, "index", resources, read_index, mode);
}

int64_t load_bytes(const std::string& path, const Resources& resources, const LoadMode& mode) {
  PartsReader reader(path, "index", resources, mode);
  const IndexParts parts = parse_about<IndexParts>(reader.about());
  // Row numbers of a single list, ids by number, and the checks of both.
  int64_t bytes = reader.bytes() - reader.bytes_elsewhere() + parts.rows / 8 + 64;
  if (parts.lists && parts.lists->lists <= 1) bytes += array_bytes<uint32_t>(parts.rows);
  if (reader.has("ids")) bytes += parts.rows * (12 + 8);
  for (const TransformParts& transform : parts.transforms) {  // kept in another form, made from the file's
    bytes += 2 * array_bytes<double>((transform.in + 1) * transform.out);
  }
  constexpr int64_t kScratch = 1 << 20;  // of a thread that multiplies
  if (!parts.transforms.empty()) bytes += (resources.threads() + 3) * kScratch;
  if (parts.lists) bytes += table_bytes(parts.lists->codec);
  if (parts.refine) bytes += table_bytes(parts.refine->codec);
  if (parts.graph) {  // codes of the rows behind it, and the check of row numbers
    const WalkCoder coder = walk_coder_of(parts);
    bytes += parts.rows / 8 + (parts.rows - parts.graph->rows) * (coder.place_bytes() + 4 * parts.stored_cols()) +
             resources.threads() * 4 * coder.row_room() + 64;
  }
  return bytes;
}

void save_codec(const QuantizerParts& parts, const std::string& path, const Resources& resources) {
  check_codec(parts.codec, "codec");
  save("codec", parts, path, resources, [&](ContainerWriter& writer) { add_codec(writer, "codec", parts.codec); });
}

QuantizerParts load_codec(const std::string& path, const Resources& resources) {
  return load<QuantizerParts>(path, "codec", resources, [](PartsReader& reader, QuantizerParts& parts) {
    parts.codec = read_codec(reader, "codec", std::move(parts.codec));
    reader.finish();
    check_codec(parts.codec, "codec");
  });
}

void save_transforms(const SavedTransforms& parts, const std::string& path, const Resources& resources) {
  check_transforms(parts.transforms);
  save("transforms", parts, path, resources,
       [&](ContainerWriter& writer) { add_transforms(writer, parts.transforms); });
}

SavedTransforms load_transforms(const std::string& path, const Resources& resources) {
  return load<SavedTransforms>(path, "transforms", resources, [](PartsReader& reader, SavedTransforms& parts) {
    read_transforms(reader, parts.transforms);
    reader.finish();
    check_transforms(parts.transforms);
  });
}

}  // namespace kith
