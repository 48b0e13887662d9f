// An OutOfMemory that names the limit with which the whole call would do, and not the step that was refused alone: who
// follows it need not try again.
#pragma once

#include <kith/error.hpp>

#include "core/byte_size.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace kith {

// bytes_needed() is the limit.
class NamedLimit : public OutOfMemory {
 public:
  // `which`: "host" or "device"; `refused` is the text of the refused step.
  NamedLimit(std::string_view which, int64_t limit, const std::string& refused)
      : OutOfMemory(fmt::format("{}; a {} memory limit of {} bytes ({}) would do", refused, which, limit,
                                format_bytes_up(limit)),
                    limit),
        which_(which),
        refused_(refused) {}

  std::string_view which() const { return which_; }

  // Without the limit, for who speaks of another one: the program's is for all of its memory.
  const std::string& refused() const { return refused_; }

 private:
  std::string_view which_;  // a literal
  std::string refused_;
};

}  // namespace kith
