#include "index/index_kinds.hpp"

#include <kith/error.hpp>

#include "index/flat.hpp"

#include <fmt/format.h>

#include <charconv>

namespace kith {
namespace {

struct FactoryString {
  std::string form;
  std::vector<int64_t> numbers;
};

FactoryString take_apart(std::string_view factory) {
  FactoryString parts;
  const char* const end = factory.data() + factory.size();
  for (const char* at = factory.data(); at != end;) {
    if (*at < '0' || *at > '9') {
      parts.form += *at++;
      continue;
    }
    int64_t number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    if (error != std::errc()) {
      throw InvalidArgument(fmt::format("the index '{}' has a number that is too large", factory));
    }
    parts.form += '#';
    parts.numbers.push_back(number);
    at = after;
  }
  return parts;
}

}  // namespace

const IndexKinds& IndexKinds::builtin() {
  static const IndexKinds kinds = [] {
    IndexKinds made;
    made.add("Flat", make_flat);
    return made;
  }();
  return kinds;
}

std::shared_ptr<const IndexKind> IndexKinds::make(std::string_view factory, const IndexParams& params) const {
  const FactoryString parts = take_apart(factory);
  const bool marked = factory.find('#') != std::string_view::npos;  // which stands for numbers in forms alone
  std::string known;
  bool numbers = false;
  for (const auto& [form, make_kind] : kinds_) {
    if (!marked && form == parts.form) return make_kind(parts.numbers, params);
    known += (known.empty() ? "" : ", ") + form;
    numbers |= form.find('#') != std::string::npos;
  }
  throw InvalidArgument(
      fmt::format("unknown index '{}'; known are: {}{}", factory, known, numbers ? " (# is a number)" : ""));
}

}  // namespace kith
