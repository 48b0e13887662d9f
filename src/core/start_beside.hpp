// Runs work on a thread beside the caller's: reading ahead, writing behind. If no thread can be started, the work runs
// when its result is waited for.
#pragma once

#include <future>
#include <system_error>
#include <type_traits>

namespace kith {

// The result's destructor waits for the work, so whatever the work refers to need only outlive the result.
template <typename Work>
[[nodiscard]] std::future<std::invoke_result_t<Work>> start_beside(const Work& work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
}

}  // namespace kith
