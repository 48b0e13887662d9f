// An OutOfMemory that names a limit with which the whole call works, not only the step that failed, so that users need
// to raise the limit only once.
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
                    limit, refused),
        which_(which) {}

  std::string_view which() const { return which_; }

 private:
  std::string_view which_;  // a literal
};

}  // namespace kith
