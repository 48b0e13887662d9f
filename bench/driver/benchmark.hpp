// What kith_bench runs. A benchmark registers itself under a name. It gives cases, which the driver lists, chooses from
// and times; or it measures by itself and reports rows.
#pragma once

#include "driver/options.hpp"
#include "driver/report.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kith::bench {

// A call that is repeated on data that was prepared once.
struct Case {
  std::string table;
  std::string name;
  // Makes what the call needs; the call keeps it alive.
  std::function<std::function<void()>()> prepare;
};

// The device that cases are timed on.
struct Place {
  bool cuda = false;
  int threads = 1;  // of the CPU; 0: all
};

struct Benchmark {
  std::string name;
  std::string about;                 // a line
  std::vector<std::string> options = {};  // of `run`; those of cases are the driver's
  bool needs_gpu = false;
  std::function<void(const Options&, Report&)> run = nullptr;
  // What it returns is kept while its cases run.
  std::function<std::shared_ptr<void>(const Place&, std::vector<Case>&)> cases = nullptr;
};

// At namespace scope: `const bench::Registered known({...});`
struct Registered {
  explicit Registered(Benchmark benchmark);
};

// By name.
std::vector<Benchmark> benchmarks();

// Throws Unsupported where there is no usable GPU.
void require_gpu();

}  // namespace kith::bench
