// An OutOfMemory that names the limit with which the whole call would do, and not the step that was refused alone: who
// follows it need not try again.
#pragma once

#include <kith/error.hpp>
#include <kith/resources.hpp>

#include "core/byte_size.hpp"
#include "core/memory_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
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

// Does the work; an OutOfMemory of the host limit leaves it as a NamedLimit. `needed()`: all bytes of the work. Its
// steps may name limits of their own, which would not do for what comes after them: the larger one is named.
template <typename Needed, typename Work>
decltype(auto) naming_whole_host_limit(const Needed& needed, const Resources& resources, const Work& work) {
  const int64_t before = resources.host_memory()->used();
  try {
    return work();
  } catch (const OutOfMemory& error) {
    const auto* const named = dynamic_cast<const NamedLimit*>(&error);
    const int64_t limit = resources.host_memory()->limit();
    if (limit == kNoLimit || (named != nullptr && named->which() != "host")) throw;
    const int64_t bytes = needed();
    const int64_t whole = std::max(bytes > kNoLimit - before ? kNoLimit : before + bytes,
                                   named == nullptr ? int64_t{0} : named->bytes_needed());
    if (whole <= limit) throw;  // it was not this limit
    throw NamedLimit("host", whole, named == nullptr ? std::string(error.what()) : named->refused());
  }
}

}  // namespace kith
