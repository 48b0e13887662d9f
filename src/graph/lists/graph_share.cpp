#include "graph/lists/graph_share.hpp"

#include <kith/knn.hpp>

#include "core/divide.hpp"
#include "ranks/join_neighbors.hpp"
#include "rows/row_blocks.hpp"

#include <algorithm>
#include <numeric>

namespace kith {
namespace {

constexpr int64_t kRowsAtOnce = 4096;                // whose lists are sent together
constexpr int64_t kJoinedRowsPerTask = 512;
constexpr int64_t kTakenBytes = int64_t{64} << 20;  // of lists on a GPU

}  // namespace

std::vector<int64_t> GraphShare::bytes_of(int64_t row_bytes) const {
  std::vector<int64_t> bytes;
  for (int rank = 0; rank < ranks_.size(); ++rank) bytes.push_back(rows_of(rank).count * row_bytes);
  return bytes;
}

int64_t GraphShare::sum(int64_t own) const {
  agree(ranks_, nullptr);
  const auto size = static_cast<size_t>(ranks_.size());
  std::vector<int64_t> all(size);
  ranks_.all_gather(&own, std::vector<int64_t>(size, sizeof(own)), all.data());
  return std::accumulate(all.begin(), all.end(), int64_t{0});
}

int64_t GraphShare::room_rows() const { return are_parts() ? 0 : ranks_.size() * std::min(kRowsAtOnce, all_); }

int64_t GraphShare::rows_taken_at_once(int64_t own_rows, int64_t length) {
  return std::clamp<int64_t>(kTakenBytes / array_bytes<uint64_t>(length), 1, std::max<int64_t>(own_rows, 1));
}

// The lists that it takes, and the ends of its own.
int64_t GraphShare::device_bytes_to_join(int64_t rows, int64_t length, int parts) {
  const int64_t own = divide_up(rows, parts);
  return array_bytes<uint64_t>(rows_taken_at_once(own, length) * length) + array_bytes<uint64_t>(own);
}

// The least of some slots and their ends.
int64_t GraphShare::device_bytes_to_gather(int64_t rows, int64_t slots, int parts) {
  const int64_t at_once = rows_taken_at_once(divide_up(rows, parts), slots);
  return 2 * array_bytes<uint64_t>(at_once * slots);
}

// Calls use(row, values) on all threads for the rank's own rows with what each other rank has of them, one rank after
// the other: `each` values a row, which nobody changes meanwhile. Returns once the others have read this rank's.
//
// Processes send some rows of each rank at a time, so that all use what they get at the same time.
template <typename Use>
void GraphShare::for_found(const uint64_t* values, int64_t each, const HostArray<uint64_t>& room,
                           const Resources& resources, const Use& use) const {
  if (are_parts()) return for_found_in_place(values, each, resources, use);
  const Resources quiet = resources.with_progress({});
  const auto size = static_cast<size_t>(ranks_.size());
  int64_t most = 0;
  for (int rank = 0; rank < ranks_.size(); ++rank) most = std::max(most, rows_of(rank).count);
  const auto some_of = [&](int rank, int64_t done) -> RankPart {
    const RankPart owned = rows_of(rank);
    return {owned.first + done, std::clamp<int64_t>(owned.count - done, 0, kRowsAtOnce)};
  };
  for (int64_t done = 0; done < most; done += kRowsAtOnce) {
    together(ranks_, [&] { resources.check_cancelled(); });
    for (int root = 0; root < ranks_.size(); ++root) {
      const RankPart some = some_of(root, done);
      if (some.count == 0) continue;
      const int64_t bytes = array_bytes<uint64_t>(some.count * each);
      ranks_.gather(root, values + some.first * each, std::vector<int64_t>(size, bytes), room.data());
    }
    const RankPart own = some_of(ranks_.rank(), done);
    for_row_blocks("join", own.count, quiet, [&](int64_t first, int64_t end) {
      for (size_t rank = 0; rank < size; ++rank) {
        if (static_cast<int>(rank) == ranks_.rank()) continue;
        const uint64_t* const found = room.data() + rank * static_cast<size_t>(own.count * each);
        for (int64_t i = first; i < end; ++i) use(own.first + i, found + i * each);
      }
    }, kJoinedRowsPerTask);
  }
}

template <typename Use>
void GraphShare::for_found_in_place(const uint64_t* values, int64_t each, const Resources& resources,
                                    const Use& use) const {
  const Resources quiet = resources.with_progress({});
  const MutualReads::Opened opened(*reads_, ranks_.rank());
  const std::vector<const uint64_t*> all = told_by_all<const uint64_t*>(values);
  const RankPart own = rows();
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) continue;
    const MutualReads::Reading reading(*reads_, rank);
    const uint64_t* const found = all[static_cast<size_t>(rank)];
    for_row_blocks("join", own.count, quiet, [&](int64_t first, int64_t end) {
      for (int64_t row = own.first + first; row < own.first + end; ++row) use(row, found + row * each);
    });
  }
  meet();
}

// Ranks write only to lists that nobody reads meanwhile: first to those of their rows, then to those of others.
void GraphShare::join(WorkingLists& lists, bool own, const HostArray<uint64_t>& room,
                      const Resources& resources) const {
  if (!own) {
    for_found(lists.list(0), lists.length(), room, resources,
              [&](int64_t row, const uint64_t* found) { lists.offer_list(row, found); });
  }
  give_lists(lists, resources);
}

void GraphShare::give_lists(WorkingLists& lists, const Resources& resources) const {
  if (!are_parts()) {
    give(lists.list(0), lists.length());
    for (int64_t row = 0; row < lists.rows(); ++row) lists.refresh_threshold(row);
    return;
  }
  const Resources quiet = resources.with_progress({});
  const int64_t length = lists.length();
  const MutualReads::Opened opened(*reads_, ranks_.rank());
  const std::vector<const uint64_t*> all = told_by_all<const uint64_t*>(lists.list(0));
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) continue;
    const MutualReads::Reading reading(*reads_, rank);
    const uint64_t* const joined = all[static_cast<size_t>(rank)];
    const RankPart owned = rows_of(rank);
    for_row_blocks("join", owned.count, quiet, [&](int64_t first, int64_t end) {
      for (int64_t row = owned.first + first; row < owned.first + end; ++row) {
        std::copy_n(joined + row * length, length, lists.list(row));
        lists.refresh_threshold(row);
      }
    });
  }
  meet();
}

void GraphShare::gather_offers(uint64_t* offers, int64_t slots, const HostArray<uint64_t>& room,
                               const Resources& resources) const {
  for_found(offers, slots, room, resources, [&](int64_t row, const uint64_t* found) {
    uint64_t* const mine = offers + row * slots;
    for (int64_t slot = 0; slot < slots; ++slot) mine[slot] = std::min(mine[slot], found[slot]);
  });
}

Neighbors GraphShare::search(const MatrixView& queries, const MatrixView& x, Metric metric, int64_t k,
                             const Resources& resources) const {
  const auto size = static_cast<size_t>(ranks_.size());
  std::vector<int64_t> widths;
  std::vector<int64_t> id_bytes;
  std::vector<int64_t> distance_bytes;
  int64_t all_widths = 0;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    widths.push_back(std::min(k, rows_of(rank).count));
    id_bytes.push_back(array_bytes<int64_t>(queries.rows() * widths.back()));
    distance_bytes.push_back(array_bytes<float>(queries.rows() * widths.back()));
    all_widths += widths.back();
  }
  const RankPart own = rows();
  const int64_t width = widths[static_cast<size_t>(ranks_.rank())];
  const HostArray<int64_t> ids(queries.rows() * all_widths, "the ranks' neighbours", resources);
  const HostArray<float> distances(queries.rows() * all_widths, "the ranks' neighbours", resources);
  Neighbors found;
  if (width > 0) {
    const KnnParams wanted{.k = width, .metric = metric, .check_finite = false};
    found = knn(queries, x.slice(own.first, own.count), wanted, resources);
  }
  agree(ranks_, nullptr);
  ranks_.all_gather(found.ids(), id_bytes, ids.data());
  ranks_.all_gather(found.distances(), distance_bytes, distances.data());
  std::vector<FoundInPart> parts;
  int64_t at = 0;
  for (size_t rank = 0; rank < size; ++rank) {
    parts.push_back({ids.data() + at, distances.data() + at, widths[rank], rows_of(static_cast<int>(rank)).first});
    at += queries.rows() * widths[rank];
  }
  Neighbors joined(queries.rows(), k, resources);
  join_neighbors(parts, metric, joined.view());
  return joined;
}

}  // namespace kith
