// Threads as named ranks, on which run_ranks() is built.
#pragma once

#include <kith/communicator.hpp>
#include <kith/error.hpp>

#include <functional>
#include <string>
#include <vector>

namespace kith {

// Thrown by calls of a rank after another rank has thrown.
class OtherRankThrew final : public Error {
 public:
  OtherRankThrew() : Error("another rank has thrown") {}
};

// Runs a rank for each name, which its errors mention; an empty name stands for the rank's number. While the calling
// thread waits for others it calls poll(), if given, every 20 ms; an exception of poll() ends the call on all ranks.
void run_named_ranks(const std::vector<std::string>& names, const std::function<void(Communicator&)>& work,
                     const std::function<void()>& poll = {}, int64_t piece_bytes = Communicator::kPieceBytes);

}  // namespace kith
