// Communication between ranks: processes or threads that work on one call together.
//
// An engine (MPI, mpi4py, threads) derives from Communicator and implements a few primitives; messages larger than its
// counts allow are split here. The functions of kith/distributed.hpp take a Communicator. kith-mpi has the engine for
// MPI, run_ranks() one for threads.
//
// All ranks call the same functions in the same order. Only one thread of a rank uses its Communicator at a time.
#pragma once

#include <kith/export.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace kith {

class KITH_EXPORT Communicator {
 public:
  // Largest message of an engine, in bytes: MPI's counts end at 2^31 - 1.
  static constexpr int64_t kPieceBytes = int64_t{1} << 30;

  // InvalidArgument for less than one byte.
  explicit Communicator(int64_t piece_bytes = kPieceBytes);
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;  // 0 .. size() - 1
  virtual int size() const = 0;
  virtual std::string host() const;  // the name of this rank's machine, for error messages
  virtual std::string name() const;  // this rank in error messages: "rank 2 on HOST"

  // Returns once all ranks have called it.
  virtual void barrier() = 0;

  // Messages from one rank to another arrive in order. A send may or may not return before it is received.
  void send(int to, const void* data, int64_t bytes);
  void receive(int from, void* data, int64_t bytes);
  // Copies the bytes at `data` of `root` to all ranks.
  void broadcast(int root, void* data, int64_t bytes);
  // Concatenates the ranks' parts, in the order of the ranks, at `all` of the root or of every rank. `bytes` has the
  // size of each part and is the same on all ranks. `own` may point to its place in `all`.
  void gather(int root, const void* own, std::span<const int64_t> bytes, void* all);
  void all_gather(const void* own, std::span<const int64_t> bytes, void* all);

  // Distributes steps 0 .. count - 1 of unequal cost: after all ranks have called begin_steps(), next_step() returns a
  // step that no rank has had yet, or -1. Engines that cannot ask rank 0 while it works assign steps in turn.
  virtual void begin_steps(int64_t count);
  virtual int64_t next_step();

 protected:
  // `bytes` is between 1 and the constructor's piece_bytes.
  virtual void send_piece(int to, const void* data, int64_t bytes) = 0;
  virtual void receive_piece(int from, void* data, int64_t bytes) = 0;
  virtual void broadcast_piece(int root, void* data, int64_t bytes) = 0;

 private:
  int64_t piece_bytes_;
  int64_t steps_ = 0;
  int64_t next_ = 0;
};

// Runs work(communicator) on `size` threads, each of them a rank, and returns when all are done; rank 0 is the
// calling thread. If one throws, the others are woken and leave their calls, and the first exception is rethrown
// here.
KITH_EXPORT void run_ranks(int size, const std::function<void(Communicator&)>& work,
                           int64_t piece_bytes = Communicator::kPieceBytes);

// A second base class of errors that all ranks throw, beside their type in kith/error.hpp.
struct KITH_EXPORT AgreedByAll {
  virtual ~AgreedByAll() = default;
};

// Throws on all ranks the error that one of them has; `own` is null on a rank without one. With a single rank the error
// is rethrown unchanged.
KITH_EXPORT void agree(Communicator& ranks, const std::exception_ptr& own);

// Does this rank's part of a step, then agrees.
template <typename Work>
auto together(Communicator& ranks, const Work& work) {
  using Result = std::invoke_result_t<const Work&>;
  std::exception_ptr error;
  if constexpr (std::is_void_v<Result>) {
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    agree(ranks, error);
  } else {
    std::optional<Result> result;
    try {
      result.emplace(work());
    } catch (...) {
      error = std::current_exception();
    }
    agree(ranks, error);
    return std::move(*result);
  }
}

// Runs a whole call of several steps, each of which begins with an agreement. A rank that fails before the next
// agreement takes its error there; no rank returns before all have succeeded.
template <typename Work>
void in_lockstep(Communicator& ranks, const Work& work) {
  std::exception_ptr error;
  try {
    work();
  } catch (const AgreedByAll&) {
    throw;
  } catch (...) {
    error = std::current_exception();
  }
  agree(ranks, error);
}

// This rank's place among the ranks with the same host name, and their number.
struct HostPlace {
  int place = 0;
  int count = 1;
};
KITH_EXPORT HostPlace place_on_host(Communicator& ranks);

}  // namespace kith
