// The benchmarks of Kith, each under its name (README.md).
//
//   kith_bench                         their names
//   kith_bench NAME --help             what NAME measures, and its options
//   kith_bench NAME [--option VALUE]   runs it; with --out FILE results are written there, too, as lines of JSON
//   NAME_bench [...]                   the same, by a link, which the benchmarks of a GPU have, or as a program of its own
//
// Benchmarks of cases, and `compare` where no name is given, take these options instead:
//
//   [--device cpu|cuda] [--table NAME] [--repeat N] [--threads N]   all cases, or those of one table, as lines of JSON
//   --list                                                          their names
//   --serve                                                         for each line TABLE/CASE of the standard input one
//                                                                   measurement
//
// On a CPU one thread works on a case, unless --threads says another number (0: all), and its time is the processor's:
// other work on the machine disturbs that less. All other times of cases are of the wall clock.
#include <kith/device.hpp>
#include <kith/error.hpp>

#include "driver/benchmark.hpp"
#include "driver/timing.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace kith::bench {
namespace {

constexpr double kEnoughSeconds = 0.3;
constexpr double kLongSeconds = 1;

std::vector<Benchmark>& registry() {
  static std::vector<Benchmark> known;
  return known;
}

struct CaseOptions {
  Place place;
  bool list = false;
  bool serve = false;
  int64_t repeat = 3;
  std::string table;

  explicit CaseOptions(const std::vector<std::string>& given) {
    std::vector<std::string> pairs;
    for (const std::string& one : given) {
      if (one == "--list") {
        list = true;
      } else if (one == "--serve") {
        serve = true;
      } else {
        pairs.push_back(one);
      }
    }
    const Options options(pairs, {"--device", "--table", "--repeat", "--threads"});
    const std::string device = options.text("--device", "cpu");
    if (device != "cpu" && device != "cuda") throw InvalidArgument("--device is cpu or cuda");
    place.cuda = device == "cuda";
    place.threads = place.cuda ? 0 : static_cast<int>(options.number("--threads", 1));
    repeat = std::max<int64_t>(1, options.number("--repeat", repeat));
    table = options.text("--table");
  }

  bool by_processor_time() const { return !place.cuda && place.threads == 1; }
};

// Calls at least `repeat` times and for 0.3 s, after one call that does not count; calls that take a second, twice.
Row measured(const Case& one, const std::function<void()>& call, const CaseOptions& options) {
  const auto seconds = [&] {
    const Seconds both = seconds_of(call);
    return options.by_processor_time() ? both.processor : both.wall;
  };
  std::vector<double> times;
  double spent = 0;
  const int64_t least = seconds() > kLongSeconds ? std::min<int64_t>(2, options.repeat) : options.repeat;
  while (static_cast<int64_t>(times.size()) < least || spent < kEnoughSeconds) {
    times.push_back(seconds());
    spent += times.back();
  }
  std::sort(times.begin(), times.end());
  Row row;
  row.name = one.name;
  row.ms = 1e3 * times.front();
  row.median_ms = 1e3 * times[times.size() / 2];
  row.runs = static_cast<int64_t>(times.size());
  row.clock = options.by_processor_time() ? "processor" : "wall";
  row.labels = {{"device", options.place.cuda ? "cuda" : "cpu"}};
  return row;
}

void print(const Case& one, const Row& row) {
  std::puts(json_line(one.table, row).c_str());
  std::fflush(stdout);
}

void serve(const std::vector<Case>& cases, const CaseOptions& options) {
  std::string asked;
  std::string prepared;
  std::function<void()> call;
  while (std::getline(std::cin, asked)) {
    const auto found =
        std::find_if(cases.begin(), cases.end(), [&](const Case& one) { return one.table + "/" + one.name == asked; });
    if (found == cases.end()) throw InvalidArgument("no case " + asked);
    if (asked != prepared) {
      call = nullptr;  // before the next takes memory
      call = found->prepare();
      prepared = asked;
    }
    print(*found, measured(*found, call, options));
  }
}

void run_cases(const Benchmark& benchmark, const CaseOptions& options) {
  std::vector<Case> cases;
  const std::shared_ptr<void> data = benchmark.cases(options.place, cases);
  if (options.serve) return serve(cases, options);
  bool any = false;
  for (const Case& one : cases) {
    if (!options.table.empty() && one.table != options.table) continue;
    any = true;
    if (options.list) {
      std::printf("%s/%s\n", one.table.c_str(), one.name.c_str());
    } else {
      print(one, measured(one, one.prepare(), options));
    }
  }
  if (!any) throw InvalidArgument("no table " + options.table);
}

void explain(const Benchmark& benchmark) {
  std::printf("%s: %s\n", benchmark.name.c_str(), benchmark.about.c_str());
  if (benchmark.cases) {
    std::puts("options: --device cpu|cuda --table NAME --repeat N --threads N --list --serve");
    return;
  }
  std::printf("options: --out FILE");
  for (const std::string& option : benchmark.options) std::printf(" %s", option.c_str());
  std::puts("");
}

std::string command_line(const std::string& program, const std::vector<std::string>& arguments) {
  std::string line = program;
  for (const std::string& one : arguments) line += " " + one;
  return line;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

// NAME if the program is called NAME_bench and there is such a benchmark; otherwise empty.
std::string benchmark_called(const std::string& program) {
  for (const Benchmark& one : registry()) {
    if (program == one.name + "_bench") return one.name;
  }
  return "";
}

int run(const std::string& program, std::vector<std::string> arguments) {
  std::string name = benchmark_called(program);
  const bool is_link = !name.empty();
  if (!is_link && (arguments.empty() || arguments[0] == "--help")) {
    for (const Benchmark& one : benchmarks()) std::printf("%-20s %s\n", one.name.c_str(), one.about.c_str());
    return 0;
  }
  if (!is_link) {
    name = "compare";
    if (arguments[0].rfind("--", 0) != 0) {
      name = arguments[0];
      arguments.erase(arguments.begin());
    }
  }
  const std::vector<Benchmark> all = benchmarks();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Benchmark& one) { return one.name == name; });
  if (found == all.end()) throw InvalidArgument("no benchmark " + name + "; without arguments all are listed");
  if (std::find(arguments.begin(), arguments.end(), "--help") != arguments.end()) {
    explain(*found);
    return 0;
  }
  if (found->cases) {
    run_cases(*found, CaseOptions(arguments));
    return 0;
  }
  std::vector<std::string> known = found->options;
  known.emplace_back("--out");
  const Options options(arguments, known);
  if (found->needs_gpu) require_gpu();
  Report report(name, options.text("--out"));
  report.note(command_line(is_link ? program : program + " " + name, arguments) + "; " + today() + ", " +
              cpu_info().name);
  found->run(options, report);
  return 0;
}

}  // namespace

Registered::Registered(Benchmark benchmark) { registry().push_back(std::move(benchmark)); }

std::vector<Benchmark> benchmarks() {
  std::vector<Benchmark> all = registry();
  std::sort(all.begin(), all.end(), [](const Benchmark& a, const Benchmark& b) { return a.name < b.name; });
  return all;
}

void require_gpu() {
  if (cuda_devices().empty()) throw Unsupported("no CUDA device here, or a build without CUDA");
}

}  // namespace kith::bench

int main(int argc, char** argv) {
  const std::string started_as = argc > 0 ? argv[0] : "kith_bench";
  const std::string program = started_as.substr(started_as.rfind('/') + 1);
  try {
    return kith::bench::run(program, {argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), error.what());
    return 1;
  }
}
