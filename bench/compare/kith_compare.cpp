// Times of Kith's main calls on one device, a line of JSON for each; compare.py says what became slower (README.md).
//
//   kith_compare --device cpu|cuda [--table NAME] [--repeat N] [--threads N]     all cases, or those of one table
//   kith_compare --device cpu|cuda --list                                        their names
//   kith_compare --device cpu|cuda --serve                                       for each line TABLE/CASE of the
//                                                                                standard input one measurement
#include "compare/cases.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
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
  int threads = 0;
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

double seconds_of(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Calls at least `repeat` times and for 0.3 s, after one call that does not count; calls that take a second, twice.
std::vector<double> measure(const std::function<void()>& call, int repeat) {
  std::vector<double> times;
  double spent = 0;
  const int least = seconds_of(call) > kLongSeconds ? std::min(2, repeat) : repeat;
  while (static_cast<int>(times.size()) < least || spent < kEnoughSeconds) {
    times.push_back(seconds_of(call));
    spent += times.back();
  }
  std::sort(times.begin(), times.end());
  return times;
}

void print(const Case& one, const std::vector<double>& times, bool cuda) {
  std::printf(
      "{\"table\": \"%s\", \"case\": \"%s\", \"ms\": %.5f, \"median_ms\": %.5f, \"runs\": %zu, \"device\": \"%s\"}\n",
      one.table.c_str(), one.name.c_str(), times.front() * 1e3, times[times.size() / 2] * 1e3, times.size(),
      cuda ? "cuda" : "cpu");
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
    print(*found, measure(call, options.repeat), options.cuda);
  }
}

void run(const Options& options) {
  const Machine machine(options.cuda, options.threads);
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
      print(one, measure(one.prepare(), options.repeat), options.cuda);
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
