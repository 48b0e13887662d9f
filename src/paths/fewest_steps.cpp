#include "paths/fewest_steps.hpp"

#include "core/ordered_key.hpp"

#include <algorithm>
#include <span>

namespace kith {
namespace {

constexpr uint32_t kSideB = uint32_t{1} << 31;  // rows have 31 bits, and so have places + 1

// Calls use(row) for each row that an edge up to the width leads to.
template <typename Use>
void each_neighbor(uint32_t row, const EdgeLists& edges, uint32_t width, const Use& use) {
  for (const uint64_t edge : edges.of(row)) {
    if (ordered_of(edge) > width) return;
    use(row_of(edge));
  }
}

}  // namespace

FewestSteps::FewestSteps(int64_t rows, const Resources& resources)
    : place_(rows, "rows that a path's search has seen", resources), queue_(rows, "a path's search", resources) {
  std::fill(place_.begin(), place_.end(), 0u);
}

void FewestSteps::see(Side& side, uint32_t row) {
  row_at(side, side.seen) = row;
  place_[row] = side.mark | ++side.seen;
}

bool FewestSteps::lies(uint32_t row, const Side& side, uint32_t begin, uint32_t end) const {
  const uint32_t place = (place_[row] ^ side.mark) - 1;  // far too large where it was not seen, or is the other's
  return place >= begin && place < end;
}

void FewestSteps::bring_forward(const Side& side, size_t level, uint32_t row, uint32_t& count) {
  const uint32_t to = side.begin(level) + count;
  const uint32_t from = (place_[row] ^ side.mark) - 1;
  if (from < to) return;
  const uint32_t other = row_at(side, to);
  std::swap(row_at(side, to), row_at(side, from));
  place_[row] = side.mark | (to + 1);
  if (other != row) place_[other] = side.mark | (from + 1);
  ++count;
}

uint32_t FewestSteps::grow(Side& side, Side& other, const EdgeLists& edges, uint32_t width) {
  const size_t level = side.levels.size() - 1;
  const size_t met = other.levels.size() - 1;
  const uint32_t end = side.seen;
  uint32_t joined = 0;
  side.levels.push_back(end);
  for (uint32_t place = side.begin(level); place < end; ++place) {
    const uint32_t row = row_at(side, place);
    bool meets = false;
    each_neighbor(row, edges, width, [&](uint32_t to) {
      if (place_[to] == 0) {
        if (joined == 0) see(side, to);
      } else if (lies(to, other, other.begin(met), other.seen)) {
        meets = true;
        if (side.mark == kSideB) bring_forward(other, met, to, joined);
      }
    });
    // Rows before this place have had their turn: one that is exchanged with this one is not missed.
    if (meets && side.mark == 0) bring_forward(side, level, row, joined);
  }
  return joined;
}

uint32_t FewestSteps::smallest(uint32_t from, const EdgeLists& edges, uint32_t width, const Side& side, uint32_t begin,
                               uint32_t end) const {
  uint32_t found = ~uint32_t{0};
  each_neighbor(from, edges, width, [&](uint32_t row) {
    if (row < found && lies(row, side, begin, end)) found = row;
  });
  return found;
}

void FewestSteps::forget(const Side& side) {
  for (uint32_t place = 0; place < side.seen; ++place) place_[row_at(side, place)] = 0;
}

std::vector<uint32_t> FewestSteps::path(const EdgeLists& edges, uint32_t a, uint32_t b, uint32_t width,
                                        const Resources& resources) {
  Side from{0, {0}, 0};
  Side to{kSideB, {0}, 0};
  struct Forget {  // whatever happens, the next search finds nothing seen
    FewestSteps& search;
    const Side& from;
    const Side& to;
    ~Forget() {
      search.forget(from);
      search.forget(to);
    }
  } forget{*this, from, to};
  see(from, a);
  see(to, b);

  uint32_t joined = 0;  // rows of a's level `last` that have an edge to b's level `first`
  size_t last = 0;
  size_t first = 0;
  while (joined == 0) {
    resources.check_cancelled();
    const bool a_grows = from.newest() <= to.newest();
    joined = a_grows ? grow(from, to, edges, width) : grow(to, from, edges, width);
    last = from.levels.size() - (a_grows ? 2 : 1);  // the level that was begun beyond the meeting is none
    first = to.levels.size() - (a_grows ? 1 : 2);
  }

  // On a's side: how many rows of each level, put in front of it, lead on to b.
  std::vector<uint32_t> leading(last + 1, 0);
  leading[last] = joined;
  for (size_t level = last; level > 0; --level) {
    const uint32_t end = from.begin(level) + leading[level];
    for (uint32_t place = from.begin(level); place < end; ++place) {
      each_neighbor(row_at(from, place), edges, width, [&](uint32_t row) {
        if (!lies(row, from, from.begin(level - 1), from.begin(level))) return;
        bring_forward(from, level - 1, row, leading[level - 1]);
      });
    }
  }

  std::vector<uint32_t> path{a};
  for (size_t level = 1; level <= last; ++level) {
    path.push_back(smallest(path.back(), edges, width, from, from.begin(level), from.begin(level) + leading[level]));
  }
  for (size_t level = first + 1; level-- > 0;) {
    path.push_back(smallest(path.back(), edges, width, to, to.begin(level), to.end(level)));
  }
  return path;
}

}  // namespace kith
