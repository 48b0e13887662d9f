// A JSON object whose members keep the order in which they were set. Hides the JSON library from all other files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kith::cli {

class JsonObject {
 public:
  JsonObject();
  ~JsonObject();
  JsonObject(JsonObject&&) noexcept;
  JsonObject& operator=(JsonObject&&) noexcept;

  // One name for each kind of value: an overloaded set() would take a literal for a bool.
  JsonObject& text(std::string_view key, std::string_view value);
  JsonObject& number(std::string_view key, int64_t value);
  JsonObject& real(std::string_view key, double value);
  JsonObject& flag(std::string_view key, bool value);
  JsonObject& object(std::string_view key, JsonObject value);
  JsonObject& numbers(std::string_view key, const std::vector<int64_t>& values);
  JsonObject& reals(std::string_view key, const std::vector<double>& values);
  JsonObject& texts(std::string_view key, const std::vector<std::string>& values);
  JsonObject& list(std::string_view key, std::vector<JsonObject> values);

  // Indented, without a final newline. Replaces bytes that are not UTF-8, which paths may contain.
  std::string dump() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith::cli
