#include "io/work_manifest.hpp"

#include <kith/error.hpp>

#include "io/container/xxh3.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace kith {
namespace {

constexpr std::string_view kFirstLine = "kith work folder, version ";
constexpr int kWorkVersion = 1;
constexpr std::string_view kHashKey = "hash = ";

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

void WorkManifest::set(std::string_view key, std::string_view value) {
  std::string line(value);
  std::replace(line.begin(), line.end(), '\n', ' ');  // of a path; the lines stay lines
  lines_.emplace_back(key, std::move(line));
}

const std::string* WorkManifest::find(std::string_view key) const {
  const auto at = std::find_if(lines_.begin(), lines_.end(), [&](const auto& line) { return line.first == key; });
  return at == lines_.end() ? nullptr : &at->second;
}

std::string WorkManifest::text() const {
  std::string text = fmt::format("{}{}\n", kFirstLine, kWorkVersion);
  for (const auto& [key, value] : lines_) text += fmt::format("{} = {}\n", key, value);
  return text + fmt::format("{}{:016x}\n", kHashKey, xxh3(bytes_of(text)));
}

uint64_t WorkManifest::hash() const {
  const std::string whole = text();
  return xxh3(bytes_of(whole));
}

WorkManifest WorkManifest::parse(std::string_view text, const std::string& path) {
  constexpr std::string_view kWayOut = "remove the folder to begin anew";
  if (!text.starts_with(kFirstLine)) {
    throw_corrupt(path, 0, fmt::format("this is no work folder's manifest; {}", kWayOut));
  }
  const std::string version(text.substr(kFirstLine.size(), text.find('\n') - kFirstLine.size()));
  if (version != std::to_string(kWorkVersion)) {
    throw Unsupported(
        fmt::format("'{}' is of version {} of work folders, and this Kith knows version {}; go on with the "
                    "Kith that began it, or {}",
                    path, printable(version), kWorkVersion, kWayOut));
  }
  const size_t last = text.rfind(kHashKey);
  const bool whole = last != std::string_view::npos && text[last - 1] == '\n' &&
                     text.substr(last) == fmt::format("{}{:016x}\n", kHashKey, xxh3(bytes_of(text.substr(0, last))));
  if (!whole) {
    throw_corrupt(path, 0, fmt::format("the manifest is damaged: its hash is not that of its lines; {}", kWayOut));
  }
  WorkManifest manifest;
  size_t at = text.find('\n') + 1;
  while (at < last) {
    const size_t end = text.find('\n', at);
    const std::string_view line = text.substr(at, end - at);
    const size_t mark = line.find(" = ");
    if (mark == std::string_view::npos) throw_corrupt(path, static_cast<int64_t>(at), "a line without a value");
    manifest.lines_.emplace_back(line.substr(0, mark), line.substr(mark + 3));
    at = end + 1;
  }
  return manifest;
}

}  // namespace kith
