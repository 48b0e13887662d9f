#include "driver/report.hpp"

#include <kith/error.hpp>

#include <cerrno>
#include <cmath>
#include <stdexcept>

namespace kith::bench {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char one : text) {
    if (one == '"' || one == '\\') out += '\\';
    out += static_cast<unsigned char>(one) < ' ' ? ' ' : one;
  }
  return out + "\"";
}

// With as many digits as a measurement has.
std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.7g", value);
  return std::isfinite(value) ? text : "null";
}

template <typename Value, typename Write>
std::string object(const std::vector<std::pair<std::string, Value>>& members, const Write& write) {
  std::string out;
  for (const auto& [name, value] : members) out += (out.empty() ? "{" : ", ") + quoted(name) + ": " + write(value);
  return out + "}";
}

}  // namespace

std::string json_line(const std::string& benchmark, const Row& row) {
  std::string line = "{\"table\": " + quoted(benchmark) + ", \"case\": " + quoted(row.name);
  const auto add = [&](const char* name, const std::string& value) {
    line += std::string(", \"") + name + "\": " + value;
  };
  if (!row.shape.empty()) add("shape", quoted(row.shape));
  if (row.ms) add("ms", number(*row.ms));
  if (row.median_ms) add("median_ms", number(*row.median_ms));
  if (row.runs > 0) add("runs", std::to_string(row.runs));
  if (!row.clock.empty()) add("clock", quoted(row.clock));
  if (row.floor_ms) add("floor_ms", number(*row.floor_ms));
  if (!row.peers.empty()) add("peers_ms", object(row.peers, number));
  if (!row.figures.empty()) add("figures", object(row.figures, number));
  if (!row.labels.empty()) add("labels", object(row.labels, quoted));
  return line + "}";
}

Report::Report(std::string benchmark, const std::string& path)
    : benchmark_(std::move(benchmark)), file_(path.empty() ? nullptr : std::fopen(path.c_str(), "w")) {
  if (!path.empty() && file_ == nullptr) throw IoError("cannot write " + path, path, errno);
}

Report::~Report() {
  if (file_ != nullptr) std::fclose(file_);
}

void Report::write(const std::string& line) {
  if (file_ == nullptr) return;
  std::fprintf(file_, "%s\n", line.c_str());
  std::fflush(file_);
}

void Report::note(const std::string& text) {
  std::printf("# %s\n", text.c_str());
  std::fflush(stdout);
  write("{\"table\": " + quoted(benchmark_) + ", \"note\": " + quoted(text) + "}");
}

void Report::row(const Row& row) {
  std::printf("%-40s", row.name.c_str());
  if (row.ms) std::printf(" %11.4f ms", *row.ms);
  if (row.median_ms) std::printf("  median %.4f", *row.median_ms);
  if (row.floor_ms)
    std::printf("  floor %.4f (%.1fx)", *row.floor_ms, row.median_ms.value_or(row.ms.value_or(0)) / *row.floor_ms);
  for (const auto& [name, value] : row.peers) std::printf("  %s %.4g ms", name.c_str(), value);
  for (const auto& [name, value] : row.figures) std::printf("  %s %.6g", name.c_str(), value);
  for (const auto& [name, value] : row.labels) std::printf("  %s %s", name.c_str(), value.c_str());
  std::printf("\n");
  std::fflush(stdout);
  write(json_line(benchmark_, row));
  for (const auto& [name, value] : row.labels) {
    if (name == "results" && value == kOtherBytes) throw std::runtime_error(row.name + ": the results have other bytes");
  }
}

}  // namespace kith::bench
