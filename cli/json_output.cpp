#include "json_output.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace kith::cli {

struct JsonObject::Impl {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();

  template <typename T>
  void set(std::string_view key, T&& value) {
    json[std::string(key)] = std::forward<T>(value);
  }
};

JsonObject::JsonObject() : impl_(std::make_unique<Impl>()) {}
JsonObject::~JsonObject() = default;
JsonObject::JsonObject(JsonObject&&) noexcept = default;
JsonObject& JsonObject::operator=(JsonObject&&) noexcept = default;

JsonObject& JsonObject::text(std::string_view key, std::string_view value) {
  impl_->set(key, std::string(value));
  return *this;
}

JsonObject& JsonObject::number(std::string_view key, int64_t value) {
  impl_->set(key, value);
  return *this;
}

JsonObject& JsonObject::real(std::string_view key, double value) {
  impl_->set(key, value);
  return *this;
}

JsonObject& JsonObject::flag(std::string_view key, bool value) {
  impl_->set(key, value);
  return *this;
}

JsonObject& JsonObject::object(std::string_view key, JsonObject value) {
  impl_->set(key, std::move(value.impl_->json));
  return *this;
}

JsonObject& JsonObject::numbers(std::string_view key, const std::vector<int64_t>& values) {
  impl_->set(key, values);
  return *this;
}

JsonObject& JsonObject::reals(std::string_view key, const std::vector<double>& values) {
  impl_->set(key, values);
  return *this;
}

JsonObject& JsonObject::texts(std::string_view key, const std::vector<std::string>& values) {
  impl_->set(key, values);
  return *this;
}

JsonObject& JsonObject::list(std::string_view key, std::vector<JsonObject> values) {
  auto items = nlohmann::ordered_json::array();
  for (JsonObject& value : values) items.push_back(std::move(value.impl_->json));
  impl_->set(key, std::move(items));
  return *this;
}

std::string JsonObject::dump() const {
  return impl_->json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace kith::cli
