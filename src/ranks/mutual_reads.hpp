// Parts of one process read each other's memory where it lies. Where a part throws it gives its memory back, and
// another may still be reading there: so it waits for its readers first, and who comes later learns that it has thrown.
//
// One object for all parts, which outlives them.
#pragma once

#include "ranks/local_ranks.hpp"

#include <memory>
#include <mutex>
#include <shared_mutex>

namespace kith {

class MutualReads {
  struct Door {
    std::shared_mutex readers;
    bool open = false;
  };

 public:
  explicit MutualReads(int parts) : doors_(std::make_unique<Door[]>(static_cast<size_t>(parts))) {}

  // A part's memory may be read while this lives; others are told where it lies after it was made.
  class Opened {
   public:
    Opened(const MutualReads& all, int part) : door_(all.door(part)) {
      const std::unique_lock lock(door_.readers);
      door_.open = true;
    }
    ~Opened() {
      const std::unique_lock lock(door_.readers);
      door_.open = false;
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    Door& door_;
  };

  // Another part reads it while this lives. OtherRankThrew where the memory is gone.
  class Reading {
   public:
    Reading(const MutualReads& all, int part) : lock_(all.door(part).readers) {
      if (!all.door(part).open) throw OtherRankThrew();
    }

   private:
    std::shared_lock<std::shared_mutex> lock_;
  };

 private:
  Door& door(int part) const { return doors_[static_cast<size_t>(part)]; }

  const std::unique_ptr<Door[]> doors_;
};

}  // namespace kith
