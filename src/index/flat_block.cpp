#include "index/flat_block.hpp"

#include <kith/error.hpp>

#include "core/dispatch.hpp"

#include <fmt/format.h>

namespace kith {

std::shared_ptr<PreparedBase> FlatBlock::find(Device device, DType queries) const {
  for (const auto& [candidate, ready] : prepared_) {
    if (candidate == device && ready->serves(queries)) return ready;
  }
  return nullptr;
}

std::shared_ptr<PreparedBase> FlatBlock::prepared(Device device, DType queries) const {
  const std::lock_guard lock(mutex_);
  return find(device, queries);
}

std::shared_ptr<PreparedBase> FlatBlock::prepare(Device device, const PrepareOptions& options,
                                                 const Resources& resources) const {
  if (auto ready = prepared(device, options.queries)) return ready;
  std::shared_ptr<PreparedBase> made;
  try {
    made = dispatch(
        device, [&] { return prepare_base_cpu(view_, options, resources); },
        [&](int index) { return prepare_base_cuda(index, view_, options, resources); });
  } catch (const OutOfMemory& error) {
    resources.log(LogLevel::info, fmt::format("the index is searched without a prepared copy: {}", error.what()));
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  if (auto ready = find(device, options.queries)) return ready;
  prepared_.emplace_back(device, made);
  return made;
}

}  // namespace kith
