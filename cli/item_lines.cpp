#include "item_lines.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

namespace kith::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

[[noreturn]] void throw_io(const std::string& what, const std::string& path) {
  const int code = errno;
  throw IoError(fmt::format("{} '{}': {}", what, path, std::strerror(code)), path, code);
}

// None if the value has another type.
std::optional<ColumnValue> value_of(const Json& json, ColumnType type) {
  if (json.is_null()) return ColumnValue();
  switch (type) {
    case ColumnType::integer:
      if (json.is_number_integer()) return json.get<int64_t>();
      return std::nullopt;
    case ColumnType::real:
      if (json.is_number()) return json.get<double>();
      return std::nullopt;
    case ColumnType::text:
      if (json.is_string()) return json.get<std::string>();
      return std::nullopt;
    case ColumnType::boolean:
      if (json.is_boolean()) return json.get<bool>();
      return std::nullopt;
    case ColumnType::json: return json.dump();
  }
  return std::nullopt;
}

Json json_of(const ColumnValue& value, ColumnType type) {
  if (std::holds_alternative<std::monostate>(value)) return nullptr;
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  const auto& text = std::get<std::string>(value);
  return type == ColumnType::json ? Json::parse(text) : Json(text);
}

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string base64(const std::string& bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = 0; j < 3; ++j) {
      three = three << 8 | (i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += i + j <= bytes.size() ? kDigits[three >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::string> from_base64(const std::string& text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t padding = i + 4 < text.size() ? 0 : static_cast<size_t>(std::count(text.end() - 2, text.end(), '='));
    uint32_t four = 0;
    for (size_t j = 0; j < 4; ++j) {
      const size_t digit = j < 4 - padding ? kDigits.find(text[i + j]) : 0;
      if (digit == std::string_view::npos) return std::nullopt;
      four = four << 6 | static_cast<uint32_t>(digit);
    }
    for (size_t j = 0; j + padding < 3; ++j) bytes += static_cast<char>(four >> (16 - 8 * j) & 255);
  }
  return bytes;
}

ItemLinesReader::ItemLinesReader(const std::string& path, const CollectionParams& params)
    : path_(path), params_(params), file_(path) {
  if (!file_) throw_io("cannot open", path);
}

void ItemLinesReader::refuse(const std::string& why) const {
  throw InvalidArgument(fmt::format("{}: line {}: {}", path_, line_, why));
}

void ItemLinesReader::read(int64_t count, Items& items) {
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  for (const Column& column : params_.columns) items.columns.push_back({column.name, {}});
  for (std::string line; count > 0; --count) {
    ++line_;
    if (!std::getline(file_, line)) refuse("the file ends, and there are more vectors");
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) refuse("this is no JSON object");
    std::string payload;
    std::vector<ColumnValue> values(params_.columns.size());
    for (const auto& [name, value] : json.items()) {
      if (name == "id") {
        if (params_.ids == IdType::integer && value.is_number_integer()) numbers.push_back(value.get<int64_t>());
        else if (params_.ids == IdType::text && value.is_string()) texts.push_back(value.get<std::string>());
        else refuse(fmt::format("the id {} is no {}", value.dump(), params_.ids == IdType::text ? "text" : "integer"));
      } else if (name == "payload") {
        const auto bytes = value.is_string() ? from_base64(value.get<std::string>()) : std::nullopt;
        if (!bytes && !value.is_null()) refuse("the payload is no base64");
        payload = bytes.value_or("");
      } else {
        const auto at = std::find_if(params_.columns.begin(), params_.columns.end(),
                                     [&name = name](const Column& column) { return column.name == name; });
        if (at == params_.columns.end()) refuse(fmt::format("the collection has no column '{}'", name));
        std::optional<ColumnValue> known = value_of(value, at->type);
        if (!known) refuse(fmt::format("column '{}' is of type {}, not {}", name, name_of(at->type), value.dump()));
        values[static_cast<size_t>(at - params_.columns.begin())] = std::move(*known);
      }
    }
    for (size_t i = 0; i < values.size(); ++i) items.columns[i].values.push_back(std::move(values[i]));
    items.payloads.push_back(std::move(payload));
    const size_t ids = params_.ids == IdType::text ? texts.size() : numbers.size();
    if (ids != 0 && ids != items.payloads.size()) refuse("some lines have an id and some have none");
  }
  if (!numbers.empty()) items.ids = std::move(numbers);
  if (!texts.empty()) items.ids = std::move(texts);
}

void ItemLinesReader::finish() {
  std::string line;
  while (std::getline(file_, line)) {
    ++line_;
    if (!line.empty()) refuse("there are more lines than vectors");
  }
}

LinesWriter::LinesWriter(const std::string& path)
    : path_(path), temporary_(fmt::format("{}.{}.tmp", path, getpid())), file_(temporary_, std::ios::binary) {
  if (!file_) throw_io("cannot write", temporary_);
}

LinesWriter::~LinesWriter() {
  file_.close();
  std::error_code ignored;
  if (!temporary_.empty()) std::filesystem::remove(temporary_, ignored);
}

void LinesWriter::write(const std::string& line) {
  file_ << line << '\n';
  if (!file_) throw_io("cannot write", temporary_);
}

void LinesWriter::append(const ItemTable& items, const CollectionParams& params) {
  for (int64_t i = 0; i < items.ids.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    Json json;
    if (items.ids.type() == IdType::text) json["id"] = items.ids.texts()[at];
    else json["id"] = items.ids.numbers()[at];
    for (size_t column = 0; column < items.columns.size(); ++column) {
      json[items.columns[column].name] = json_of(items.columns[column].values[at], params.columns[column].type);
    }
    if (!items.payloads[at].empty()) json["payload"] = base64(items.payloads[at]);
    write(line_of(json));
  }
}

void LinesWriter::append(const CollectionNeighbors& found) {
  const Neighbors& all = found.neighbors;
  for (int64_t query = 0; query < all.queries(); ++query) {
    Json ids = Json::array(), distances = Json::array();
    for (int64_t i = 0; i < all.k(); ++i) {
      if (all.ids(query)[i] < 0) break;
      if (found.texts.empty()) ids.push_back(all.ids(query)[i]);
      else ids.push_back(found.texts[static_cast<size_t>(query * all.k() + i)]);
      distances.push_back(all.distances(query)[i]);
    }
    Json json;
    json["ids"] = std::move(ids);
    json["distances"] = std::move(distances);
    write(line_of(json));
  }
}

void LinesWriter::commit() {
  file_.close();
  if (!file_) throw_io("cannot write", temporary_);
  std::filesystem::rename(temporary_, path_);
  temporary_.clear();
}

std::string neighbors_text(const CollectionNeighbors& found) {
  const Neighbors& all = found.neighbors;
  std::string text;
  for (int64_t query = 0; query < all.queries(); ++query) {
    std::string line;
    for (int64_t i = 0; i < all.k() && all.ids(query)[i] >= 0; ++i) {
      const std::string id = found.texts.empty() ? fmt::to_string(all.ids(query)[i])
                                                 : found.texts[static_cast<size_t>(query * all.k() + i)];
      line += fmt::format("{}{} {:g}", line.empty() ? "" : ", ", id, all.distances(query)[i]);
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace kith::cli
