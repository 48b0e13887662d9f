#include "range_output.hpp"

#include "gil.hpp"

#include <algorithm>
#include <utility>

namespace kith::python {

RangeArrays range_arrays_of(RangeNeighbors found) {
  const int64_t queries = found.queries();
  const int64_t size = queries == 0 ? 0 : found.size();
  int64_t* const offsets = found.offsets();
  int64_t* const ids = found.ids();
  float* const distances = found.distances();
  if (queries == 0) *offsets = 0;
  nb::capsule owner(new RangeNeighbors(std::move(found)),
                    [](void* kept) noexcept { delete static_cast<RangeNeighbors*>(kept); });
  const auto list = [&](void* data, int64_t length, nb::dlpack::dtype dtype) {
    const size_t shape[] = {static_cast<size_t>(length)};
    return nb::ndarray<nb::numpy, nb::ndim<1>>(data, 1, shape, owner, nullptr, dtype).cast();
  };
  return {list(offsets, queries + 1, nb::dtype<int64_t>()), list(ids, size, nb::dtype<int64_t>()),
          list(distances, size, nb::dtype<float>())};
}

void drop_self(RangeNeighbors& found) {
  int64_t* const offsets = found.offsets();
  int64_t* const ids = found.ids();
  float* const distances = found.distances();
  int64_t kept = 0;
  int64_t first = 0;
  for (int64_t query = 0; query < found.queries(); ++query) {
    const int64_t last = offsets[query + 1];
    for (int64_t i = first; i < last; ++i) {
      if (ids[i] == query) continue;
      ids[kept] = ids[i];
      distances[kept] = distances[i];
      ++kept;
    }
    first = last;
    offsets[query + 1] = kept;
  }
}

RangeAllocator allocator_of(const nb::callable& room) {
  return [&room](int64_t count, int64_t bytes_each) -> std::shared_ptr<void> {
    WithGil gil;
    const auto array = nb::cast<DeviceArray>(room(count, bytes_each));
    void* const memory = bytes_each == 8 ? static_cast<void*>(array.writable<int64_t>("the result", 1, count))
                                         : static_cast<void*>(array.writable<float>("the result", 1, count));
    return {memory, [](void*) {}};  // the package keeps it
  };
}

void RangeParts::append(const RangeView& part) {
  RangeNeighbors kept(part.queries, part.size(), resources_);
  std::copy_n(part.offsets, part.queries + 1, kept.offsets());
  std::copy_n(part.ids, part.size(), kept.ids());
  std::copy_n(part.distances, part.size(), kept.distances());
  queries_ += part.queries;
  found_ += part.size();
  parts_.push_back(std::move(kept));
}

RangeNeighbors RangeParts::join() {
  RangeNeighbors whole(queries_, found_, resources_);
  int64_t query = 0;
  int64_t at = 0;
  whole.offsets()[0] = 0;
  for (; !parts_.empty(); parts_.pop_front()) {
    const RangeView part = parts_.front().view();
    for (int64_t q = 1; q <= part.queries; ++q) whole.offsets()[query + q] = at + part.offsets[q];
    std::copy_n(part.ids, part.size(), whole.ids() + at);
    std::copy_n(part.distances, part.size(), whole.distances() + at);
    query += part.queries;
    at += part.size();
  }
  return whole;
}

}  // namespace kith::python
