#include <kith/nearest_name.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace kith {
namespace {

// How many letters must be changed, added or dropped to get from one name to the other.
size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known) {
  std::string_view nearest;
  size_t fewest = name.size() + 1;
  for (const std::string_view candidate : known) {
    const size_t edits = edits_between(name, candidate);
    if (edits < fewest && edits * 3 <= candidate.size()) {
      fewest = edits;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace kith
