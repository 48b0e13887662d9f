// Agreement among ranks, so that none waits for one that has failed.
//
// An error of one rank is an error of all: each does its part of a step, then all report the outcome, and either
// continue together or throw the same error, with the rank and host of the first that failed. So exchanges between two
// agreements must not throw. Cost: a message of 8 bytes from and to each rank. agree(), together() and in_lockstep()
// are public (kith/communicator.hpp), for programs that run on ranks.
#pragma once

#include <kith/communicator.hpp>

#include <exception>
#include <string>

namespace kith {

// Throws an error of the same type, whose text begins with a name.
[[noreturn]] void throw_named(const std::exception_ptr& error, const std::string& name);

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
