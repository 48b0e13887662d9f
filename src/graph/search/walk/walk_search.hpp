// Walks for many queries, on all threads. The walks of a thread take turns (walk.hpp), so that one waits for memory
// while others compute. Queries are independent: their number, the threads and the turns affect time only.
#pragma once

#include <kith/resources.hpp>

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "core/reused_memory.hpp"
#include "graph/search/walk/walk.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>

namespace kith {

class WalkSearch {
 public:
  // Memory for the walks of this many queries; `query_bytes`: scratch memory per query.
  WalkSearch(const WalkParams& params, int64_t degree, int64_t query_bytes, int64_t queries,
             const Resources& resources);

  // make(query, memory) returns a WalkQuery, which may refer to that memory; done(query, walk, slot) is called when a
  // walk has ended. Both run on any thread; slot < slots().
  template <typename Make, typename Done>
  void run(const WalkView& view, int64_t queries, ProgressMeter& meter, const Resources& resources, const Make& make,
           const Done& done) {
    parallel_for(divide_up(queries, task_queries_), meter, resources, [&](int64_t task, int slot) {
      const int64_t end = std::min((task + 1) * task_queries_, queries);
      run_task(view, task * task_queries_, end, slot, make, done);
      meter.add(end - task * task_queries_);
    });
  }

  int slots() const { return slots_; }

 private:
  static constexpr int64_t kTurns = 4;  // interleaved walks per thread

  struct Turn {
    Turn(const WalkParams& params, int64_t degree, int64_t query_bytes, const Resources& resources)
        : walk(params, degree, resources), memory(query_bytes, "the query of a walk", resources) {}

    Walk walk;
    HostArray<std::byte> memory;
    WalkQuery query;
    int64_t number = -1;  // of the query; -1: none
  };

  template <typename Make, typename Done>
  void run_task(const WalkView& view, int64_t next, int64_t end, int slot, const Make& make, const Done& done) {
    const auto begin = [&](Turn& turn) {
      turn.number = next < end ? next++ : -1;
      if (turn.number < 0) return;
      turn.query = make(turn.number, turn.memory.data());
      turn.walk.begin(view, turn.query);
    };
    Turn* const turns = turns_.data() + slot * per_slot_;
    const int64_t used = std::min(per_slot_, end - next);
    for (int64_t t = 0; t < used; ++t) begin(turns[t]);
    for (int64_t busy = used; busy > 0;) {
      busy = 0;
      for (int64_t t = 0; t < used; ++t) {
        Turn& turn = turns[t];
        if (turn.number < 0) continue;
        if (!turn.walk.open()) {
          done(turn.number, turn.walk, slot);
          begin(turn);
        }
        busy += turn.number >= 0 ? 1 : 0;
      }
      for (int64_t t = 0; t < used; ++t) {
        if (turns[t].number >= 0) turns[t].walk.compare();
      }
    }
  }

  int64_t task_queries_;
  int slots_;
  int64_t per_slot_;
  ReusedVector<Turn> turns_;
};

}  // namespace kith
