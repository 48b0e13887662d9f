#include "index_files.hpp"

#include <kith/byte_size.hpp>
#include <kith/error.hpp>
#include <kith/faiss_file.hpp>
#include <kith/file_info.hpp>
#include <kith/vector_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace kith::cli {
namespace {

// Whether the extension is one of vectors or ids; FAISS's files have any.
bool is_matrix_file(const std::string& path) {
  try {
    static_cast<void>(content_of(path));
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

double highest_recall(const TuneTable& table) {
  double highest = 0;
  for (const TunedSearch& one : table.searches) highest = std::max(highest, one.recall);
  return highest;
}

}  // namespace

bool is_kith_file(const std::string& path) { return path.ends_with(".kith"); }

Index open_index(const std::string& path, const Resources& resources, const LoadParams& params) {
  if (is_kith_file(path)) return Index::load(path, params, resources);
  if (params.mmap || params.lists == ListsPlace::disk) {
    throw InvalidArgument(fmt::format(
        "'{}' is read into memory: --mmap and --lists disk are for .kith files, which kith index convert makes", path));
  }
  if (is_matrix_file(path)) {
    throw InvalidArgument(
        fmt::format("'{}' is a file of vectors or ids, not an index; kith index build makes one of vectors", path));
  }
  return read_faiss_index(path, resources);
}

void check_index_name(const std::string& path) {
  if (is_kith_file(path) || path.ends_with(".faiss") || path.ends_with(".index")) return;
  throw InvalidArgument(fmt::format(
      "'{0}' names no format of indexes: write '{0}.kith' for Kith's, '{0}.faiss' or '{0}.index' for FAISS's", path));
}

void write_index(const Index& index, const std::string& path, const Resources& resources) {
  if (is_kith_file(path)) {
    index.save(path, resources);
  } else {
    write_faiss_index(index, path, resources);
  }
}

std::string index_text(const IndexInfo& info, bool with_memory) {
  std::string text = fmt::format("{}, metric {}: {} vectors of {} values ({}){}\n", info.factory, name_of(info.metric),
                                 info.size, info.dimension, name_of(info.dtype), info.trained ? "" : ", not trained");
  if (info.lists > 1) {
    const std::string filled =
        info.size > 0 && info.filled < info.lists ? fmt::format(" ({} filled)", info.filled) : "";
    text += fmt::format("{} lists{}, imbalance {:.3f}, the longest of {} vectors\n", info.lists, filled, info.imbalance,
                        info.longest);
  }
  if (info.lists > 0) text += fmt::format("{} bytes a vector\n", info.code_bytes);
  if (info.beam > 0) {
    text += fmt::format(
        "graph of up to {} neighbours, walked by {}, {} vectors not linked, {} not found by a short walk, {} values "
        "clipped\n",
        info.degree, info.walk_bits > 0 ? fmt::format("codes of {} bits", info.walk_bits) : "the vectors", info.unlinked,
        info.lost, info.clipped);
    text += "recall by beam:";
    for (const auto& [beam, recall] : info.recalls) {
      text += fmt::format(" {} {:.4f}{}", beam, recall, beam == info.beam ? " (default)" : "");
    }
    text += "\n";
  }
  if (!info.tuned.searches.empty()) {
    text += fmt::format("tuned for k = {} with {} vectors: {} searches, recall {:.4f} to {:.4f}\n", info.tuned.k,
                        info.tuned.rows, info.tuned.searches.size(), info.tuned.searches.front().recall,
                        highest_recall(info.tuned));
  }
  if (!with_memory) return text;
  text += fmt::format("{} of memory", format_bytes(info.bytes.host + info.bytes.device));
  const char* mark = ": ";
  for (const auto& [name, bytes] : info.parts) {
    text += fmt::format("{}{} {}", mark, name, format_bytes(bytes));
    mark = ", ";
  }
  return text + "\n";
}

JsonObject index_json(const IndexInfo& info) {
  JsonObject parts;
  for (const auto& [name, bytes] : info.parts) parts.number(name, bytes);
  JsonObject json;
  json.text("factory", info.factory).text("metric", name_of(info.metric)).flag("trained", info.trained);
  json.number("size", info.size).number("dimension", info.dimension).text("dtype", name_of(info.dtype));
  json.number("lists", info.lists).real("imbalance", info.imbalance).number("longest_list", info.longest);
  json.number("filled_lists", info.filled);
  if (info.degree > 0) {
    JsonObject recalls;
    for (const auto& [beam, recall] : info.recalls) recalls.real(std::to_string(beam), recall);
    json.number("degree", info.degree).number("walk_bits", info.walk_bits);
    json.number("unlinked", info.unlinked).number("clipped", info.clipped);
    json.number("lost", info.lost).number("beam", info.beam).object("recalls", std::move(recalls));
  }
  if (!info.tuned.searches.empty()) {
    json.number("tuned_k", info.tuned.k).number("tuned_searches", std::ssize(info.tuned.searches));
  }
  json.number("code_bytes", info.code_bytes).number("host_bytes", info.bytes.host);
  json.number("device_bytes", info.bytes.device).object("parts", std::move(parts));
  return json;
}

HostArray<int64_t> read_index_ids(const std::string& path, int64_t rows, const Resources& resources) {
  if (path.empty()) return {};
  const IdFile file(path);
  if (std::min(file.rows(), file.cols()) > 1 || file.rows() * file.cols() != rows) {
    throw InvalidArgument(fmt::format("--ids {} holds {} x {} ids; one for each of the {} vectors is needed", path,
                                      file.rows(), file.cols(), rows));
  }
  const ReadMemory memory = file.reserve_memory(resources);
  HostArray<int64_t> ids(rows, "the ids", resources);
  file.read(0, file.rows(), ids.data());
  return ids;
}

}  // namespace kith::cli
