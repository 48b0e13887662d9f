// What a benchmark has measured: a line on the terminal for each case, and a line of JSON in a file (README.md).
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kith::bench {

// The result of one case. What was not measured is left out.
struct Row {
  std::string name;
  std::string shape = {};
  std::optional<double> ms = {};  // the shortest time
  std::optional<double> median_ms = {};
  int64_t runs = 0;
  std::string clock = {};            // wall, processor (all threads together) or cuda (events on a stream)
  std::optional<double> floor_ms = {};  // what the hardware needs at least
  std::vector<std::pair<std::string, double>> peers = {};    // milliseconds of others: of other libraries, of a goal
  std::vector<std::pair<std::string, double>> figures = {};  // recall, rates, parts of the time
  std::vector<std::pair<std::string, std::string>> labels = {};
};

inline constexpr const char* kSameBytes = "the same bytes";
inline constexpr const char* kOtherBytes = "OTHER BYTES";

class Report {
 public:
  // Rows go to the terminal and, where a path is given, to that file. IoError.
  Report(std::string benchmark, const std::string& path);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  // Throws once the row is told if its label "results" is kOtherBytes: what computes something else is no measurement.
  void row(const Row& row);
  // Text that is no result: what was measured, and how.
  void note(const std::string& text);

 private:
  void write(const std::string& line);

  std::string benchmark_;
  std::FILE* file_ = nullptr;
};

std::string json_line(const std::string& benchmark, const Row& row);

}  // namespace kith::bench
