// WarpSelect: the k smallest of a stream of entries, kept by one warp in registers.
//
// Section 4.2 of the 2019 paper. The warp queue, a sorted lane-stride array of kQueue registers, holds the smallest
// entries merged so far; its k-th is the threshold. Each lane puts entries below the threshold into its own queue of
// kThread places, and when a lane's is full all lanes' queues are sorted together and merged into the warp queue. One
// comparison for each 32 entries, plus O(k log(length) / kThread) merges on random data; a reversed stream merges once
// for each 32 * kThread entries. Registers: (kQueue + kThread) entries in each lane, no memory.
//
// Every lane of the warp calls every function. `Warp` is as lane_array.hpp says and gives Entry, Count, all(entry),
// none(), same(bool), both(flag, flag), is(count, n), plus(count, flag), any(flag) and broadcast(value, lane) besides.
#pragma once

#include "kernels/select/lane_array.hpp"
#include "kernels/select/select_entry.hpp"

namespace kith {

// The paper's lengths of the lanes' queues (section 4.3).
KITH_HOST_DEVICE constexpr int thread_queue_length(int k) { return k <= 32 ? 2 : k <= 128 ? 3 : k <= 256 ? 4 : 8; }

template <typename Warp, int kQueue, int kThread = thread_queue_length(kQueue* kWarpLanes)>
class WarpSelect {
 public:
  using Value = typename Warp::Value;
  using Entry = typename Warp::Entry;
  static constexpr int kCapacity = kQueue * kWarpLanes;

  // 0 < k <= kCapacity.
  KITH_DEVICE_INLINE explicit WarpSelect(int k)
      : k_(k), threshold_(Warp::all(EntryOf<Entry>::padding())), counts_(Warp::none()) {
    KITH_UNROLL
    for (int i = 0; i < kQueue + kThread; ++i) values_[i] = threshold_;
  }

  // One entry from each lane; padding where a lane has none. True where a lane's queue is full: flush() before the
  // next.
  KITH_DEVICE_INLINE bool push(const Value& value) {
    const auto wanted = Warp::less(value, threshold_);
    if (!Warp::any(wanted)) return false;
    KITH_UNROLL
    for (int i = 0; i < kThread; ++i) {
      values_[kQueue + i] = Warp::pick(Warp::both(wanted, Warp::is(counts_, i)), value, values_[kQueue + i]);
    }
    counts_ = Warp::plus(counts_, wanted);
    return Warp::any(Warp::is(counts_, kThread));
  }

  // push(), and flush() where that is due; true where it was.
  KITH_DEVICE_INLINE bool add(const Value& value) {
    const bool full = push(value);
    if (full) flush();
    return full;
  }

  // Merges the lanes' queues into the warp queue.
  KITH_DEVICE_INLINE void flush() {
    run_schedule<Warp, SortSchedule<kThread>>(values_ + kQueue);
    run_schedule<Warp, MergeSchedule<kQueue, kThread, false>>(values_);
    KITH_UNROLL
    for (int i = 0; i < kThread; ++i) values_[kQueue + i] = Warp::all(EntryOf<Entry>::padding());
    counts_ = Warp::none();
    find_threshold();
  }

  // Merges another sorted array of kQueue registers, given by its wires in reverse order: register(i) has, in lane l,
  // wire 32 i + 31 - l. The lanes' queues must be flushed.
  template <typename Register>
  KITH_DEVICE_INLINE void merge_mirrored(const Register& mirrored) {
    KITH_UNROLL
    for (int i = 0; i < kQueue; ++i) {
      const Value other = mirrored(i);
      Value& mine = values_[kQueue - 1 - i];
      mine = Warp::pick(Warp::less(other, mine), other, mine);
    }
    run_schedule<Warp, LeftHalfSchedule<kQueue>>(values_);
    find_threshold();
  }

  // Register i of the sorted result, after a flush.
  KITH_DEVICE_INLINE const Value& sorted(int i) const { return values_[i]; }
  // Entries that are not smaller are not looked at.
  KITH_DEVICE_INLINE const Value& threshold() const { return threshold_; }

 private:
  KITH_DEVICE_INLINE void find_threshold() {
    // Values are picked, not branched to: from branches the compiler makes an index, which registers do not have.
    Value last = values_[0];
    KITH_UNROLL
    for (int i = 1; i < kQueue; ++i) last = Warp::pick(Warp::same((k_ - 1) / kWarpLanes == i), values_[i], last);
    threshold_ = Warp::broadcast(last, (k_ - 1) % kWarpLanes);
  }

  Value values_[kQueue + kThread];  // the warp queue, then the lanes' queues
  int k_;
  Value threshold_;
  typename Warp::Count counts_;
};

}  // namespace kith
