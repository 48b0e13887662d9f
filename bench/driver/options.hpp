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

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace kith::bench
