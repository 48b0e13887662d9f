// Times of Kith's main calls on one device, a line of JSON for each; compare.py says what became slower (README.md).
//
//   kith_compare --device cpu|cuda [--table NAME] [--repeat N] [--threads N]   all cases, or those of one table
//   kith_compare --device cpu|cuda --list                                      their names
//   kith_compare --device cpu|cuda --serve                                     for each line TABLE/CASE of the standard
//                                                                              input one measurement
//
// On a CPU one thread works, unless --threads says another number (0: all), and its time is the processor's: other work
// on the machine disturbs that less. All other times are of the wall clock.
#include "compare/cases.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <iostream>
#include <string_view>

namespace {

constexpr double kEnoughSeconds = 0.3;
constexpr double kLongSeconds = 1;

struct Options {
  bool cuda = false;
  bool list = false;
  bool serve = false;
  int threads = 1;  // of the CPU
  int repeat = 3;
  std::string table;

  Options(int argc, char** argv) {
    const auto value = [&](int& i) -> std::string {
      if (i + 1 == argc) throw std::runtime_error(std::string("no value of ") + argv[i]);
      return argv[++i];
    };
    for (int i = 1; i < argc; ++i) {
      const std::string_view name = argv[i];
      if (name == "--device") {
        const std::string device = value(i);
        if (device != "cpu" && device != "cuda") throw std::runtime_error("--device is cpu or cuda");
        cuda = device == "cuda";
      } else if (name == "--table") {
        table = value(i);
      } else if (name == "--repeat") {
        repeat = std::max(1, std::atoi(value(i).c_str()));
      } else if (name == "--threads") {
        threads = std::atoi(value(i).c_str());
      } else if (name == "--list") {
        list = true;
      } else if (name == "--serve") {
        serve = true;
      } else {
        throw std::runtime_error("unknown option " + std::string(name));
      }
    }
  }
};

bool by_processor_time(const Options& options) { return !options.cuda && options.threads == 1; }

double now(bool processor) {
  timespec time{};
  clock_gettime(processor ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(const std::function<void()>& call, bool processor) {
  const double start = now(processor);
  call();
  return now(processor) - start;
}

// Calls at least `repeat` times and for 0.3 s, after one call that does not count; calls that take a second, twice.
std::vector<double> measure(const std::function<void()>& call, const Options& options) {
  const bool processor = by_processor_time(options);
  std::vector<double> times;
  double spent = 0;
  const int least = seconds_of(call, processor) > kLongSeconds ? std::min(2, options.repeat) : options.repeat;
  while (static_cast<int>(times.size()) < least || spent < kEnoughSeconds) {
    times.push_back(seconds_of(call, processor));
    spent += times.back();
  }
  std::sort(times.begin(), times.end());
  return times;
}

void print(const Case& one, const std::vector<double>& times, const Options& options) {
  std::printf(
      "{\"table\": \"%s\", \"case\": \"%s\", \"ms\": %.5f, \"median_ms\": %.5f, \"runs\": %zu, \"device\": \"%s\", "
      "\"clock\": \"%s\"}\n",
      one.table.c_str(), one.name.c_str(), times.front() * 1e3, times[times.size() / 2] * 1e3, times.size(),
      options.cuda ? "cuda" : "cpu", by_processor_time(options) ? "processor" : "wall");
  std::fflush(stdout);
}

void serve(const std::vector<Case>& cases, const Options& options) {
  std::string asked;
  std::string prepared;
  std::function<void()> call;
  while (std::getline(std::cin, asked)) {
    const auto found =
        std::find_if(cases.begin(), cases.end(), [&](const Case& one) { return one.table + "/" + one.name == asked; });
    if (found == cases.end()) throw std::runtime_error("no case " + asked);
    if (asked != prepared) {
      call = nullptr;  // before the next takes memory
      call = found->prepare();
      prepared = asked;
    }
    print(*found, measure(call, options), options);
  }
}

void run(const Options& options) {
  const Machine machine(options.cuda, options.cuda ? 0 : options.threads);
  std::vector<Case> cases;
  add_search_cases(machine, cases);
  add_training_cases(machine, cases);
  add_graph_cases(machine, cases);
  if (options.serve) return serve(cases, options);
  bool any = false;
  for (const Case& one : cases) {
    if (!options.table.empty() && one.table != options.table) continue;
    any = true;
    if (options.list) {
      std::printf("%s/%s\n", one.table.c_str(), one.name.c_str());
    } else {
      print(one, measure(one.prepare(), options), options);
    }
  }
  if (!any) throw std::runtime_error("no table " + options.table);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(Options(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kith_compare: %s\n", error.what());
    return 1;
  }
}
