// kith index merge: merges two indexes of the same training.
#include "index_commands.hpp"
#include "index_files.hpp"
#include "output_paths.hpp"
#include "process_memory.hpp"
#include "stopwatch.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace kith::cli {
namespace {

// Rephrases errors in terms of the program's options.
template <typename Merge>
void in_words_of_the_program(const Merge& merge) {
  try {
    merge();
  } catch (const InvalidArgument& error) {
    constexpr std::string_view kName = "shift_ids";
    std::string text = error.what();
    if (const size_t at = text.find(kName); at != std::string::npos) text.replace(at, kName.size(), "--shift-ids");
    throw InvalidArgument(text);
  }
}

}  // namespace

Report run_index_merge(const IndexMergeOptions& options, const RunOptions& run) {
  const Stopwatch total;
  check_outputs({{"--out", options.out}}, {{"INDEX", options.index}, {"OTHER", options.other}});
  check_index_name(options.out);
  IndexInfo info;
  int64_t added = 0;
  const std::vector<std::string> log = with_resources(run, [&](const Resources& resources) {
    // Under a limit the vectors go from file to file.
    const bool all_kith = is_kith_file(options.index) && is_kith_file(options.other) && is_kith_file(options.out);
    if (run.memory_limit && all_kith) {
      const Index other = Index::load(options.other, {.mmap = true}, resources);
      if (other.info().degree == 0) {
        added = other.size();
        in_words_of_the_program([&] {
          Index::merge_files({options.index, options.other}, options.out, options.params, resources);
        });
        info = Index::load(options.out, {.mmap = true}, resources).info();
        return;
      }
    }
    Index index = open_index(options.index, resources);
    {
      const Index other = open_index(options.other, resources);
      added = other.size();
      in_words_of_the_program([&] { index.merge(other, options.params, resources); });
    }
    info = index.info();
    write_index(index, options.out, resources);
  });
  const double seconds = total.seconds();
  Report report;
  report.text = index_text(info) + fmt::format("{} vectors of {} came to {} of {} in {:.3f} s\nwrote {}\n", added,
                                               options.other, info.size - added, options.index, seconds, options.out);
  for (const std::string& line : log) report.text += line + "\n";
  JsonObject result;
  result.text("index_file", options.index).text("other", options.other).number("added", added);
  result.object("index", index_json(info)).text("out", options.out);
  JsonObject memory;
  if (run.memory_limit) memory.number("limit_bytes", *run.memory_limit);
  memory.number("peak_resident_bytes", peak_resident_bytes());
  JsonObject timings;
  timings.real("total_seconds", seconds);
  report.json.text("command", "index merge").object("result", std::move(result));
  report.json.object("memory", std::move(memory)).object("timings", std::move(timings)).texts("log", log);
  return report;
}

}  // namespace kith::cli
