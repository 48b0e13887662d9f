#include "fuzz/visit_parts.hpp"

#include <kith/error.hpp>

#include "io/temporary_directory.hpp"

#include <stdexcept>

namespace kith::fuzz {
namespace {

constexpr int64_t kMemoryLimit = int64_t{256} << 20;

volatile float seen;  // so that nothing is left out as useless

void visit_codes(const CodecParts& codec, const PartArray<uint8_t>& codes, int64_t count) {
  const CodeFormat& format = codec.format;
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* const code = codes.data() + i * format.bytes();
    if (format.kind == CodeKind::stored) {
      sum += static_cast<float>(code[0]) + static_cast<float>(code[format.bytes() - 1]);
      continue;
    }
    const int64_t values = format.kind == CodeKind::scalar ? format.cols : format.parts;
    for (int64_t j = 0; j < values; ++j) {
      const int64_t number = sub_code(code, j, format.bits);
      const int64_t at =
          format.kind == CodeKind::scalar ? j : ((j * format.codewords() + number) + 1) * format.part_cols() - 1;
      sum += codec.values.at(static_cast<size_t>(at)) + static_cast<float>(number);
    }
  }
  seen = sum;
}

void visit_rows(const MatrixView& rows) {
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const auto* const row = reinterpret_cast<const uint8_t*>(rows.row(i));
    seen = static_cast<float>(row[0]) + static_cast<float>(row[rows.cols() * size_of(rows.dtype()) - 1]);
  }
}

}  // namespace

void visit(const IndexParts& parts) {
  for (const PartMatrix& block : parts.flat) visit_rows(block.view());
  if (parts.lists) {
    const ListParts& lists = *parts.lists;
    visit_codes(lists.codec, lists.codes, parts.rows);
    visit_rows(lists.centres.view());
    for (int64_t list = 0; list < lists.lists; ++list) {
      for (int64_t i = lists.offsets[list]; i < lists.offsets[list + 1]; ++i) {
        if (lists.rows[i] >= parts.rows) throw std::logic_error("a row that there is not");
        if (!parts.ids.empty()) seen = static_cast<float>(parts.ids[lists.rows[i]]);
      }
    }
  }
  if (parts.graph) {
    const GraphParts& graph = *parts.graph;
    for (const uint32_t other : graph.edges) {
      if (other != UINT32_MAX && other >= graph.places) throw std::logic_error("a place that there is not");
    }
    for (const uint32_t entry : graph.entries) seen = static_cast<float>(graph.place_offsets[entry]);
    for (const uint32_t row : graph.place_rows) {
      if (row >= parts.rows) throw std::logic_error("a row that there is not");
    }
    seen = static_cast<float>(graph.codes.size() + graph.centres.size());
  }
  if (parts.refine) visit_codes(parts.refine->codec, parts.refine->codes, parts.rows);
}

void read_file(const std::string& name, Input bytes,
               void (*read)(const std::string& path, const Resources& resources)) {
  static const testing::TemporaryDirectory directory;
  static const Resources resources([] {
    ResourceOptions options;
    options.threads = 1;
    options.host_memory_limit = kMemoryLimit;
    return options;
  }());
  const std::string path = directory.overwrite(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  try {
    read(path, resources);
  } catch (const InvalidArgument&) {
  } catch (const Unsupported&) {
  } catch (const OutOfMemory&) {
  } catch (const CorruptFile& error) {
    const bool inside = error.offset() >= 0 && error.offset() <= static_cast<int64_t>(bytes.size());
    if (error.path() != path || !inside) throw std::logic_error("an error without its place");
  }
}

}  // namespace kith::fuzz
