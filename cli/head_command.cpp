// Reads only the rows that it shows.
#include "head_command.hpp"

#include <kith/error.hpp>
#include <kith/host_buffer.hpp>
#include <kith/vector_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>
#include <vector>

namespace kith::cli {
namespace {

struct Shown {
  int64_t first;
  int64_t end;
};

int64_t parse_bound(std::string_view text, int64_t missing, const std::string& whole) {
  if (text.empty()) return missing;
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end || value < 0) {
    throw InvalidArgument(
        fmt::format("--rows {}; it must be FIRST:END, such as 0:3 for the first three rows, 100: or :10", whole));
  }
  return value;
}

// Parses a range as Python does: the end is exclusive, and clamped to the file's rows.
Shown parse_rows(const std::string& text, int64_t rows) {
  const size_t colon = text.find(':');
  const std::string_view all = text;
  const std::string_view before = all.substr(0, colon);
  const int64_t first = parse_bound(before, 0, text);
  const int64_t end = colon == std::string::npos ? first + 1 : parse_bound(all.substr(colon + 1), rows, text);
  if (first > end) throw InvalidArgument(fmt::format("--rows {}: the end comes before the first row", text));
  if (first >= rows && first < end) {
    throw InvalidArgument(fmt::format("--rows {} is out of range: the file has {} rows", text, rows));
  }
  return {first, std::min(end, rows)};
}

// Rows of a matrix, aligned in columns.
std::string table(Shown shown, const std::vector<std::vector<std::string>>& values, int64_t cols) {
  size_t width = 1;
  for (const auto& row : values) {
    for (const std::string& value : row) width = std::max(width, value.size());
  }
  const size_t label = fmt::formatted_size("{}", std::max<int64_t>(shown.end - 1, 0));
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("{:>{}}:", shown.first + static_cast<int64_t>(i), label);
    for (const std::string& value : values[i]) text += fmt::format(" {:>{}}", value, width);
    if (static_cast<int64_t>(values[i].size()) < cols) text += " ...";
    text += '\n';
  }
  return text;
}

}  // namespace

Report run_head(const HeadOptions& options, const RunOptions& run) {
  if (options.columns < 0) {
    throw InvalidArgument(
        fmt::format("--columns {}; give how many values of a row to show, or 0 for all", options.columns));
  }
  const FileInfo info = file_info(options.file);
  const Shown shown = parse_rows(options.rows, info.rows);
  const int64_t count = shown.end - shown.first;
  const int64_t columns = options.columns == 0 ? info.cols : std::min(options.columns, info.cols);
  std::vector<std::vector<std::string>> texts(static_cast<size_t>(count));
  std::vector<JsonObject> rows;
  with_resources(run, [&](const Resources& resources) {
    // Collects the text of a row, and its values for JSON.
    const auto show = [&](int64_t row, const auto* values) -> JsonObject& {
      for (int64_t column = 0; column < columns; ++column) {
        texts[static_cast<size_t>(row)].push_back(fmt::format("{}", values[column]));
      }
      return rows.emplace_back().number("row", shown.first + row);
    };
    if (info.content == FileContent::ids) {
      const IdFile file(options.file);
      const ReadMemory memory = file.reserve_memory(resources);
      const HostArray<int64_t> ids(count * info.cols, "the rows to show", resources);
      file.read(shown.first, count, ids.data());
      for (int64_t row = 0; row < count; ++row) {
        const int64_t* const values = ids.data() + row * info.cols;
        show(row, values).numbers("values", {values, values + columns});
      }
    } else {
      const VectorFile file(options.file);
      const ReadMemory memory = file.reserve_memory(resources);
      MatrixBuffer values(DType::f32, count, info.cols, "the rows to show", resources);
      file.read(shown.first, values.mutable_view());
      const auto* const data = static_cast<const float*>(values.view().data());
      for (int64_t row = 0; row < count; ++row) {
        const float* const shown_row = data + row * info.cols;
        show(row, shown_row).reals("values", {shown_row, shown_row + columns});
      }
    }
  });

  Report report;
  report.text = fmt::format("{}: {} x {} {}, rows {} to {}\n", options.file, info.rows, info.cols, info.dtype,
                            shown.first, shown.end - 1);
  if (count == 0)
    report.text = fmt::format("{}: {} x {} {}, no row shown\n", options.file, info.rows, info.cols, info.dtype);
  report.text += table(shown, texts, info.cols);
  JsonObject result;
  result.text("path", options.file).text("dtype", info.dtype).number("rows", info.rows).number("cols", info.cols);
  result.list("shown", std::move(rows));
  report.json.text("command", "head").object("result", std::move(result));
  return report;
}

void offer_head(Commands& commands) {
  const auto options = std::make_shared<HeadOptions>();
  OfferedCommand command = commands.offer("head", "Show some rows of a file as numbers",
                                          [options](const RunOptions& run) { return run_head(*options, run); });
  command.file("FILE", options->file, "File of vectors or ids, in any format").required();
  command.text("--rows", options->rows, "FIRST:END, the end left out; 7 is row 7 alone", "RANGE");
  command.number("--columns", options->columns, "Values of a row to show; 0: all");
  command.memory_limit();
  command.output();
}

}  // namespace kith::cli
