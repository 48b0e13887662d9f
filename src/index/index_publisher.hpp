// The current version of an index, and the right to make the next one.
//
// Readers take the current version and never wait. Writers take turns: each starts from the version that the one before
// has published, so that no work is done twice. Progress and log sinks that a writer calls may read the index; writing
// from there is InvalidState, since the writer would wait for itself.
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

// A state, the ids of its rows, and what else is published with them, so that readers see all of it together.
struct IndexVersion {
  SharedState state;
  IdTable ids;
  Offset offset = {};  // of all vectors and queries, fixed by the first training or add
  std::shared_ptr<const TuneTable> tuned = {};  // the measurements of tune(); null before
};

class IndexPublisher {
 public:
  // Makes the next version from the current one, or from null.
  using Next = std::function<IndexVersion(const IndexVersion* current)>;

  // Null before the first one.
  std::shared_ptr<const IndexVersion> current() const;

  // Held by a writing thread, from before it calls a sink. InvalidState if the thread is writing already.
  class Writer {
   public:
    explicit Writer(IndexPublisher& publisher);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

   private:
    IndexPublisher& publisher_;
  };

  // Waits for its turn, which the resources can cancel. If `next` throws, nothing changes.
  void publish(const Writer& writer, const Next& next, const Resources& resources);
  void publish(const Next& next, const Resources& resources) { publish(Writer(*this), next, resources); }

 private:
  class Turn;

  mutable std::mutex mutex_;  // held briefly; never while a version is made or destroyed
  std::condition_variable turn_over_;
  std::vector<std::thread::id> writers_;
  int turn_of_ =
      0;  // the process that a writer has its turn in, else 0: a forked child has none of its parent's threads
  std::shared_ptr<const IndexVersion> current_;
};

}  // namespace kith
