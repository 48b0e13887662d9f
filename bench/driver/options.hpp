// The options of a benchmark: `--name value` pairs.
#pragma once

#include <kith/error.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace kith::bench {

class Options {
 public:
  // InvalidArgument for a name that is not known, or has no value.
  Options(const std::vector<std::string>& given, const std::vector<std::string>& known) {
    for (size_t i = 0; i < given.size(); i += 2) {
      if (std::find(known.begin(), known.end(), given[i]) == known.end()) {
        throw InvalidArgument("unknown option " + given[i]);
      }
      if (i + 1 == given.size()) throw InvalidArgument("no value of " + given[i]);
      values_[given[i]] = given[i + 1];
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

}  // namespace kith::bench
