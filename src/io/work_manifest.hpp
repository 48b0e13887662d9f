// The text file that says what the work in a folder is: lines "key = value", and their hash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {

// What work is: everything that its result depends on, in an order of its own.
class WorkManifest {
 public:
  // Neither a line break, nor " = " in the key.
  void set(std::string_view key, std::string_view value);
  void set(std::string_view key, int64_t value) { set(key, std::string_view(std::to_string(value))); }

  const std::vector<std::pair<std::string, std::string>>& lines() const { return lines_; }
  const std::string* find(std::string_view key) const;

  std::string text() const;  // as it stands in the file
  uint64_t hash() const;     // of the lines
  // CorruptFile for what is damaged, Unsupported for a newer version.
  static WorkManifest parse(std::string_view text, const std::string& path);

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

}  // namespace kith
