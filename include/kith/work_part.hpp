// One of several processes that do one work in a folder that all of them see: on one machine, or on many that share a
// file system. Each does its share of every phase. What comes of it is what one process would make.
#pragma once

#include <kith/error.hpp>
#include <kith/export.hpp>

#include <cstdint>
#include <string_view>

namespace kith {

struct WorkPart {
  int64_t number = 1;  // from 1 to count
  int64_t count = 1;   // 1: one process does it all
  bool wait = true;    // for the other parts, between phases; else Unfinished is thrown there

  bool alone() const { return count == 1; }
  KITH_EXPORT void validate() const;
};

// "2/3" is the second of three. InvalidArgument for anything else.
KITH_EXPORT WorkPart parse_work_part(std::string_view text);

// A part that does not wait has done its share, and others have not: run it again later. The text says what is missing.
class KITH_EXPORT Unfinished : public InvalidState {
 public:
  using InvalidState::InvalidState;
};

}  // namespace kith
