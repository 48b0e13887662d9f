#include "graph/lists/device_share_cuda.hpp"

#include "ranks/transfer.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace kith {
namespace {

// Memory of a part, as it tells the others.
struct PartMemory {
  const std::byte* data = nullptr;
  int device = 0;
};

// One exchange: from the constructor to finish() the other parts may read `data`, whose content is complete.
class Exchange {
 public:
  Exchange(const GraphShare& share, const std::byte* data, const DeviceContext& context, const Resources& resources)
      : share_(share),
        context_(context),
        resources_(resources.with_progress({})),
        opened_(share.reads(), share.ranks().rank()),
        all_(told(data)) {}

  // Bytes from `offset` on of another part's memory, in the order of the context's stream.
  void take(int rank, int64_t offset, int64_t bytes, std::byte* to) const {
    if (bytes == 0) return;
    resources_.check_cancelled();
    const MutualReads::Reading reading(share_.reads(), rank);
    const PartMemory& from = all_[static_cast<size_t>(rank)];
    transfer(from.data + offset, MemorySpace::cuda(from.device), bytes, to, MemorySpace::cuda(context_.device()),
             resources_);
  }
  // The same of its rows, to the same place here.
  void take_rows(int rank, const RowsOnDevice& values) const {
    const RankPart rows = share_.rows_of(rank);
    const int64_t offset = rows.first * values.row_bytes;
    take(rank, offset, rows.count * values.row_bytes, values.data + offset);
  }
  // Calls use(rank) for every other part, the next one first, so that not all read from one.
  template <typename Use>
  void for_others(const Use& use) const {
    const int size = share_.ranks().size();
    for (int step = 1; step < size; ++step) use((share_.ranks().rank() + step) % size);
  }
  // Returns once all have read, and have written what they enqueued.
  void finish() const {
    context_.synchronize();
    share_.meet();
  }

 private:
  std::vector<PartMemory> told(const std::byte* data) const {
    context_.synchronize();
    return share_.told_by_all(PartMemory{data, context_.device()});
  }

  const GraphShare& share_;
  const DeviceContext& context_;
  const Resources resources_;
  const MutualReads::Opened opened_;
  const std::vector<PartMemory> all_;
};

// The lists of this part's rows are offered what the other parts have found for them.
void offer_found(const Exchange& exchange, const RankPart& rows, const DeviceWorkingLists& lists,
                 const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
  if (rows.count == 0) return;
  const int64_t list_bytes = array_bytes<uint64_t>(lists.length);
  const int64_t piece = GraphShare::rows_taken_at_once(rows.count, lists.length);
  const DeviceArray<uint64_t> ends(rows.count, "the lists of neighbours", context, resources);
  const DeviceArray<uint64_t> found(piece * lists.length, "the parts' lists", context, resources);
  const DeviceListsRef own{{lists.entries + rows.first * lists.length, rows.count, lists.length}, ends.data()};
  launch_list_ends(own, context->stream());
  exchange.for_others([&](int rank) {
    for (int64_t first = 0; first < rows.count; first += piece) {
      const int64_t count = std::min(piece, rows.count - first);
      exchange.take(rank, (rows.first + first) * list_bytes, count * list_bytes,
                    reinterpret_cast<std::byte*>(found.data()));
      launch_merge_offers(own, {found.data(), lists.length, first, count}, nullptr, context->stream());
    }
  });
}

}  // namespace

void give_on_device(const GraphShare& share, const RowsOnDevice& values, const DeviceContext& context,
                    const Resources& resources) {
  const Exchange exchange(share, values.data, context, resources);
  exchange.for_others([&](int rank) { exchange.take_rows(rank, values); });
  exchange.finish();
}

void take_first_on_device(const GraphShare& share, std::byte* bytes, int64_t count, const DeviceContext& context,
                          const Resources& resources) {
  const Exchange exchange(share, bytes, context, resources);
  if (!share.leads()) exchange.take(0, 0, count, bytes);
  exchange.finish();
}

// Parts write only to lists that nobody reads meanwhile: first to those of their rows, then to those of others.
void join_on_device(const GraphShare& share, const DeviceWorkingLists& lists, bool own,
                    const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
  auto* const entries = reinterpret_cast<std::byte*>(lists.entries);
  const Exchange exchange(share, entries, *context, resources);
  if (!own) {
    offer_found(exchange, share.rows(), lists, context, resources);
    exchange.finish();
  }
  const RowsOnDevice rows{entries, array_bytes<uint64_t>(lists.length)};
  exchange.for_others([&](int rank) { exchange.take_rows(rank, rows); });
  exchange.finish();
}

// A slot is a list of one, to which another part's slot is an offer.
void gather_offers_on_device(const GraphShare& share, uint64_t* offers, int64_t slots,
                             const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
  const Exchange exchange(share, reinterpret_cast<const std::byte*>(offers), *context, resources);
  const RankPart rows = share.rows();
  if (rows.count > 0) {
    const int64_t row_bytes = array_bytes<uint64_t>(slots);
    const int64_t piece = GraphShare::rows_taken_at_once(rows.count, slots);
    const DeviceArray<uint64_t> ends(piece * slots, "offers to the lists", context, resources);
    const DeviceArray<uint64_t> found(piece * slots, "the parts' offers", context, resources);
    for (int64_t first = 0; first < rows.count; first += piece) {
      const int64_t count = std::min(piece, rows.count - first);
      const int64_t at = rows.first + first;
      const DeviceListsRef least{{offers + at * slots, count * slots, 1}, ends.data()};
      launch_list_ends(least, context->stream());
      exchange.for_others([&](int rank) {
        exchange.take(rank, at * row_bytes, count * row_bytes, reinterpret_cast<std::byte*>(found.data()));
        launch_merge_offers(least, {found.data(), 1, 0, count * slots}, nullptr, context->stream());
      });
    }
  }
  exchange.finish();
}

}  // namespace kith
