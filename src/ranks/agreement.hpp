// Agreement among ranks, so that none waits for one that has failed.
//
// An error of one rank is an error of all: each does its part of a step, then all report the outcome, and either
// continue together or throw the same error, with the rank and host of the first that failed. So exchanges between two
// agreements must not throw. Cost: a message of 8 bytes from and to each rank. agree() itself is public, for programs
// that run on ranks.
#pragma once

#include <kith/communicator.hpp>

#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace kith {

// Throws an error of the same type, whose text begins with a name.
[[noreturn]] void throw_named(const std::exception_ptr& error, const std::string& name);

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

// Throws InvalidArgument on all ranks unless all have the same library version and the same `request`, a text that
// describes the call.
void check_same_request(Communicator& ranks, const std::string& request);

// The share of `total` of a rank: whole multiples of `unit`, as even as possible; the last share has the remainder.
struct RankPart {
  int64_t first = 0;
  int64_t count = 0;
  int64_t end() const { return first + count; }
};
RankPart part_of(int64_t total, int64_t unit, int rank, int size);

}  // namespace kith
