#include "collection/found_places.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kTextsCounted = 4096;  // at a time

int64_t id_at(const CollectionState& state, int64_t place) {
  if (place == kNoPlace) return kNoPlace;
  const StoredRows& rows = *state.parts[part_in(place)].rows;
  return state.params->ids == IdType::integer ? rows.number_id(place_in(place)) : rows.row(place_in(place));
}

std::string text_at(const CollectionState& state, int64_t place) {
  return place == kNoPlace ? std::string() : state.parts[part_in(place)].rows->text_id(place_in(place));
}

}  // namespace

std::vector<std::string> name_places(const CollectionState& state, int64_t* places, int64_t count,
                                     const Resources& resources) {
  std::vector<std::string> texts;
  if (state.params->ids == IdType::text) {
    std::vector<HostBuffer> counted;  // what the texts take, against the limit
    const auto take = [&](int64_t bytes) { counted.emplace_back(bytes, "the ids found", resources); };
    take(count * static_cast<int64_t>(sizeof(std::string)));
    texts.reserve(static_cast<size_t>(count));
    int64_t bytes = 0;
    for (int64_t i = 0; i < count; ++i) {
      texts.push_back(text_at(state, places[i]));
      if (texts.back().capacity() > std::string().capacity()) bytes += static_cast<int64_t>(texts.back().capacity());
      if (i % kTextsCounted == kTextsCounted - 1 || i == count - 1) {
        take(bytes);
        bytes = 0;
      }
    }
  }
  for (int64_t i = 0; i < count; ++i) places[i] = id_at(state, places[i]);
  return texts;
}

}  // namespace kith
