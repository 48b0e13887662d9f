#include "explore_command.hpp"

#include <kith/error.hpp>

#include "python_program.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace kith::cli {
namespace {

// Like `python -m kith.explore`, but with a one-line error if the package is missing.
constexpr const char* kStart = R"(
import sys
try:
    from kith._explore.command import main
except ImportError as error:
    sys.exit(f"kith: explore needs the Python package kithnn, which {sys.executable} does not have ({error}); install it "
             "there, or name another Python in KITH_PYTHON")
sys.exit(main())
)";

// Does not return unless it fails.
Report run_explore(const ExploreOptions& options) {
  if (options.vectors.empty() && options.collection.empty()) {
    throw InvalidArgument("say what to look at: --vectors FILE, or the directory of a collection");
  }
  const std::string python = python_program();
  std::vector<std::string> arguments = explore_arguments(options, python);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execvp(pointers.front(), pointers.data());
  const int failed = errno;
  throw Unsupported(fmt::format(
      "explore needs Python with the package kithnn, and {} cannot be started: {}; name another in KITH_PYTHON", python,
      std::strerror(failed)));
}

}  // namespace

std::vector<std::string> explore_arguments(const ExploreOptions& options, const std::string& python) {
  std::vector<std::string> arguments{python, "-c", kStart};
  const auto give = [&arguments](const char* name, const std::string& value) {
    // With an equals sign, so that a value that begins with a dash stays one.
    if (!value.empty()) arguments.push_back(fmt::format("{}={}", name, value));
  };
  give("--vectors", options.vectors);
  give("--items", options.items);
  give("--labels", options.labels);
  give("--text", options.text);
  give("--xy", options.xy);
  give("--shape", options.shape);
  give("--metric", options.metric);
  give("--device", options.device);
  give("--host", options.host);
  if (options.port != 0) give("--port", fmt::format("{}", options.port));
  if (options.no_browser) arguments.emplace_back("--no-browser");
  if (!options.graph.empty()) {
    arguments.emplace_back("--graph");
    arguments.insert(arguments.end(), options.graph.begin(), options.graph.end());
  }
  if (!options.collection.empty()) {
    arguments.emplace_back("--");
    arguments.push_back(options.collection);
  }
  return arguments;
}

void offer_explore(Commands& commands) {
  const auto options = std::make_shared<ExploreOptions>();
  OfferedCommand command =
      commands.offer("explore", "Look at vectors in the browser: neighbours, search, clusters, paths, a map",
                     [options](const RunOptions&) { return run_explore(*options); });
  command.text("collection", options->collection, "The directory of a collection to look at", "DIR").without_default();
  command.file("--vectors", options->vectors,
               "Or vectors, in any format, or one that kith convert takes: .npz, .csv, .parquet, .npy of float64");
  command.file("--items", options->items,
               "What they stand for: a folder of images, in the order of names, or a .txt or .jsonl file of texts");
  command.file("--labels", options->labels, "The label of each row: a .txt file of a label a line, .npy or idx1-ubyte; or a column");
  command.text("--text", options->text, "The column of a collection that is shown (default: its payloads)", "COLUMN");
  command.files("--graph", options->graph, "A k-NN graph of them: its folder, or its files of ids and of distances");
  command.file("--xy", options->xy, "Where to draw each row on the map, two columns");
  command.text("--shape", options->shape, "Vectors are the pixels of images: height,width or height,width,3", "H,W");
  command.text("--metric", options->metric, "By which rows are near: l2, cosine, inner_product, ...", "NAME");
  command.text("--device", options->device, "Where to compute: auto, cpu, cuda, cuda:N", "NAME");
  command.text("--host", options->host, "Where to listen, if not on this machine alone", "NAME");
  command.count("--port", options->port, "Where to listen; 0: a free one");
  command.flag("--no-browser", options->no_browser, "Print the address and open nothing");
}

}  // namespace kith::cli
