// One of several processes, on one machine or on several with a shared file system, that do a job together in a common
// folder. Each does its share of every phase; the result is the same as that of one process.
#pragma once

#include <kith/error.hpp>
#include <kith/export.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

struct WorkPart {
  int64_t number = 1;  // from 1 to count
  int64_t count = 1;   // 1: one process does everything
  bool wait = true;    // wait for the other parts between phases; false: throw Unfinished instead

  bool alone() const { return count == 1; }
  KITH_EXPORT void validate() const;
};

// "2/3" is the second of three. InvalidArgument for anything else.
KITH_EXPORT WorkPart parse_work_part(std::string_view text);

// A part that does not wait has done its share, but others have not: run it again later. The message says why.
class KITH_EXPORT Unfinished : public InvalidState {
 public:
  using InvalidState::InvalidState;
};

}  // namespace kith
