// The options of a benchmark: `--name value` pairs.
#pragma once

#include <kith/error.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace kith {

class Options {
 public:
  // InvalidArgument for a name that is not known, or has no value.
  Options(int argc, char** argv, std::initializer_list<std::string_view> known) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = argv[i];
      if (std::find(known.begin(), known.end(), name) == known.end() || i + 1 == argc) {
        throw InvalidArgument("unknown option or no value: " + name);
      }
      values_[name] = argv[i + 1];
    }
  }

  std::string text(const std::string& name, const std::string& otherwise = "") const {
    const auto given = values_.find(name);
    return given == values_.end() ? otherwise : given->second;
  }
  int64_t number(const std::string& name, int64_t otherwise) const {
    const auto given = values_.find(name);
    return given == values_.end() ? otherwise : std::atoll(given->second.c_str());
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace kith
