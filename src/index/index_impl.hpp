// What an Index is a handle to: a kind, the publisher of its versions, and what was said when it was made.
#pragma once

#include <kith/error.hpp>
#include <kith/index.hpp>

#include "index/index_kind.hpp"
#include "index/index_publisher.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kith {

inline const IndexState* state_of(const IndexVersion* version) {
  return version == nullptr ? nullptr : version->state.get();
}

inline int64_t rows_of(const IndexVersion* version) {
  const IndexState* const state = state_of(version);
  return state == nullptr ? 0 : state->content().rows;
}

struct Index::Impl {
  Impl(std::shared_ptr<const IndexKind> made, std::string_view name, const IndexParams& given,
       Device where = Device::automatic())
      : factory(name), params(given), device(where), kind(std::move(made)) {
    KnnParams{.metric = given.metric}.validate();
  }

  // With this index's device, where the call names none.
  Resources on_device(const Resources& given) const {
    const bool named = given.device().kind != DeviceKind::automatic || device.kind == DeviceKind::automatic;
    return named ? given : given.with_device(device);
  }

  void refuse_untrained(const IndexVersion* current, std::string_view before_what) const {
    if (!kind->needs_training() || state_of(current) != nullptr) return;
    throw InvalidState(fmt::format("the index {} must be trained before {}: call train() first", factory, before_what));
  }

  const std::string factory;
  const IndexParams params;
  const Device device;  // that calls run on; automatic: each chooses
  const std::shared_ptr<const IndexKind> kind;
  IndexPublisher versions;
};

}  // namespace kith
