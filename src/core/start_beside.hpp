// Work on a thread of its own, beside the caller's: reading ahead, writing behind. Where no thread is to be had it is
// done when it is waited for.
#pragma once

#include <future>
#include <system_error>
#include <type_traits>

namespace kith {

// Without get() its end is still waited for when the result goes, so that what the work refers to must only live longer.
template <typename Work>
[[nodiscard]] std::future<std::invoke_result_t<Work>> start_beside(const Work& work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
}

}  // namespace kith
