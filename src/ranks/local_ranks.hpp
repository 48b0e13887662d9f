// Threads as ranks, by name: what run_ranks() is made of.
#pragma once

#include <kith/communicator.hpp>
#include <kith/error.hpp>

#include <functional>
#include <string>
#include <vector>

namespace kith {

// Leaves a call of a rank whose fellow has thrown.
class OtherRankThrew final : public Error {
 public:
  OtherRankThrew() : Error("another rank has thrown") {}
};

// A rank for each name, which its errors bear; an empty name is that of any communicator's rank. While the calling
// thread waits for others it calls poll(), if there is one, every 20 ms; what that throws ends the call on all ranks.
void run_named_ranks(const std::vector<std::string>& names, const std::function<void(Communicator&)>& work,
                     const std::function<void()>& poll = {}, int64_t piece_bytes = Communicator::kPieceBytes);

}  // namespace kith
