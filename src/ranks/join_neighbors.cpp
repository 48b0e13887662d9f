#include "ranks/join_neighbors.hpp"

#include "core/metric_unit.hpp"
#include "core/ordered_key.hpp"

#include <tuple>
#include <vector>

namespace kith {
namespace {

// A part's next neighbour of a query. Ids are 64 bits wide: a rank's rows may begin beyond the 31 bits of row numbers.
struct PartHead {
  const FoundInPart* part = nullptr;
  int64_t at = 0;
  int64_t end = 0;
  uint32_t key = 0;
  int64_t id = 0;

  void load(Metric metric) {
    if (at == end || part->ids[at] < 0) {
      at = end;
      return;
    }
    key = ordered_key(key_of(metric, part->distances[at]));
    id = part->first_row + part->ids[at];
  }
  bool before(const PartHead& other) const { return std::tie(key, id) < std::tie(other.key, other.id); }
};

}  // namespace

void join_neighbors(std::span<const FoundInPart> parts, Metric metric, const NeighborsView& out) {
  std::vector<PartHead> heads(parts.size());
  for (int64_t query = 0; query < out.queries; ++query) {
    for (size_t p = 0; p < parts.size(); ++p) {
      heads[p] = {&parts[p], query * parts[p].width, (query + 1) * parts[p].width};
      heads[p].load(metric);
    }
    for (int64_t i = query * out.k; i < (query + 1) * out.k; ++i) {
      PartHead* first = nullptr;
      for (PartHead& head : heads) {
        if (head.at < head.end && (first == nullptr || head.before(*first))) first = &head;
      }
      out.ids[i] = first == nullptr ? -1 : first->id;
      out.distances[i] = first == nullptr ? distance_of_nothing(metric) : first->part->distances[first->at];
      if (first == nullptr) continue;
      ++first->at;
      first->load(metric);
    }
  }
}

}  // namespace kith
