// Several steps as one call: its memory limits are checked once, before anything is done, for all that the steps take
// together. An OutOfMemory then names a limit with which all of them work.
//
// A program that makes room for results, and then searches into them, is one.
#pragma once

#include <kith/export.hpp>
#include <kith/resources.hpp>

#include <functional>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace kith {

// Calls steps(resources), whose calls of Kith and buffers use the resources that they are given. Under a limit it is
// called twice: the first time buffers have no memory and calls are only counted, and the first of them ends it by an
// exception. What comes before must have no other effects and touch no buffer. `job` is in the error, as in "not enough
// memory for the search".
KITH_EXPORT void run_as_one_call(std::string_view job, const Resources& resources,
                                 const std::function<void(const Resources&)>& steps);

// Whether these are the resources of that first time.
KITH_EXPORT bool counts_only(const Resources& resources);

// The same for steps with a result.
template <typename Steps>
auto as_one_call(std::string_view job, const Resources& resources, const Steps& steps) {
  using Result = std::invoke_result_t<const Steps&, const Resources&>;
  if constexpr (std::is_void_v<Result>) {
    run_as_one_call(job, resources, steps);
  } else {
    std::optional<Result> result;
    run_as_one_call(job, resources, [&](const Resources& used) { result.emplace(steps(used)); });
    return std::move(*result);
  }
}

}  // namespace kith
