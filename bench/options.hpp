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
#include <vector>

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
  // "8,16,32".
  std::vector<int64_t> numbers(const std::string& name, std::vector<int64_t> otherwise) const {
    const auto given = values_.find(name);
    if (given == values_.end()) return otherwise;
    std::vector<int64_t> numbers;
    for (size_t at = 0; at <= given->second.size();) {
      const size_t end = std::min(given->second.find(',', at), given->second.size());
      numbers.push_back(std::atoll(given->second.substr(at, end - at).c_str()));
      at = end + 1;
    }
    return numbers;
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace kith
