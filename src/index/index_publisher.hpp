// The versions of an index: which is the current one, and who may make the next.
//
// Readers take the current version and never wait. Writers take turns: each begins from the version that the one before
// has published, so that no work is done twice. What a writer calls on its way (sinks of progress and log) may read the
// index; writing to it from there is InvalidState, since it would wait for itself.
#pragma once

#include "index/id_table.hpp"
#include "index/index_state.hpp"
#include "rows/narrowed_rows.hpp"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace kith {

// Its state, the ids of the rows in it, and what those have lost. What is published together is seen together.
struct IndexVersion {
  SharedState state;
  IdTable ids;
  Offset offset = {};  // of all vectors and queries, told by the first that were trained on or added
  std::shared_ptr<const TuneTable> tuned = {};  // what searches were measured to find; null before tune()
};

class IndexPublisher {
 public:
  // Makes the next version from the current one, which is null at first.
  using Next = std::function<IndexVersion(const IndexVersion* current)>;

  // Null before the first is published.
  std::shared_ptr<const IndexVersion> current() const;

  // Held by a thread that is about to write, from before its first sink is called: InvalidState if it writes already.
  class Writer {
   public:
    explicit Writer(IndexPublisher& publisher);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

   private:
    IndexPublisher& publisher_;
  };

  // Waits for its turn, in which the resources' cancellation is heeded. Where `next` throws, nothing changes.
  void publish(const Writer& writer, const Next& next, const Resources& resources);
  void publish(const Next& next, const Resources& resources) { publish(Writer(*this), next, resources); }

 private:
  class Turn;

  mutable std::mutex mutex_;  // held for moments only: never while a version is made or destroyed
  std::condition_variable turn_over_;
  std::vector<std::thread::id> writers_;
  int turn_of_ =
      0;  // the process that a writer has its turn in, else 0: a forked child has none of its parent's threads
  std::shared_ptr<const IndexVersion> current_;
};

}  // namespace kith
