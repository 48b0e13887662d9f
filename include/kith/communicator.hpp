// How ranks, processes or threads that work on one call, talk to each other.
//
// An engine (MPI, mpi4py, threads) derives from Communicator and gives a few primitives; sizes beyond what an engine's
// counts hold are cut into pieces here. The functions of kith/distributed.hpp take a Communicator; kith-mpi brings the
// engine for MPI, and run_ranks() one of threads.
//
// All ranks call the same functions in the same order. A Communicator is used by one thread of its rank at a time.
#pragma once

#include <kith/export.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>

namespace kith {

class KITH_EXPORT Communicator {
 public:
  // Most bytes of one message of an engine: counts of MPI end at 2^31 - 1.
  static constexpr int64_t kPieceBytes = int64_t{1} << 30;

  // InvalidArgument unless at least one byte.
  explicit Communicator(int64_t piece_bytes = kPieceBytes);
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;  // 0 .. size() - 1
  virtual int size() const = 0;
  virtual std::string host() const;  // the name of this rank's machine, for errors
  virtual std::string name() const;  // what errors call this rank: "rank 2 on HOST"

  // Returns once all ranks have called it.
  virtual void barrier() = 0;

  // Messages of one rank to another arrive in their order. A send may return before it is received, or may not.
  void send(int to, const void* data, int64_t bytes);
  void receive(int from, void* data, int64_t bytes);
  // What `root` has at `data` is then there on all ranks.
  void broadcast(int root, void* data, int64_t bytes);
  // The ranks' parts one after the other, in the order of the ranks: at `all` of the root, or of every rank. `bytes`
  // has each rank's size, the same list on all ranks. `own` may be that part of `all`.
  void gather(int root, const void* own, std::span<const int64_t> bytes, void* all);
  void all_gather(const void* own, std::span<const int64_t> bytes, void* all);

  // Steps 0 .. count - 1 of unlike cost, dealt out: after all ranks have called begin_steps(), next_step() is one that
  // no rank has had, or -1 when there is none. Engines that cannot ask rank 0 while it works deal them out in turns.
  virtual void begin_steps(int64_t count);
  virtual int64_t next_step();

 protected:
  // At most the constructor's piece_bytes, and at least one byte.
  virtual void send_piece(int to, const void* data, int64_t bytes) = 0;
  virtual void receive_piece(int from, void* data, int64_t bytes) = 0;
  virtual void broadcast_piece(int root, void* data, int64_t bytes) = 0;

 private:
  int64_t piece_bytes_;
  int64_t steps_ = 0;
  int64_t next_ = 0;
};

// Runs work(communicator) on so many threads, each of them a rank, and returns when all are done; rank 0 is the calling
// thread. Where one throws, the others are woken and leave their calls; what was thrown first is thrown here. Devices
// of one process are such ranks.
KITH_EXPORT void run_ranks(int size, const std::function<void(Communicator&)>& work,
                           int64_t piece_bytes = Communicator::kPieceBytes);

// Marks errors that all ranks throw: of the types of kith/error.hpp beside this.
struct KITH_EXPORT AgreedByAll {
  virtual ~AgreedByAll() = default;
};

// Throws on all ranks what one of them brings; `own` is null where this rank has no error. With one rank it is thrown
// as it is.
KITH_EXPORT void agree(Communicator& ranks, const std::exception_ptr& own);

// This rank among those on its host, told apart by name: its place, and how many there are.
struct HostPlace {
  int place = 0;
  int count = 1;
};
KITH_EXPORT HostPlace place_on_host(Communicator& ranks);

}  // namespace kith
