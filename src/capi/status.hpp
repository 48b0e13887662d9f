// How a C function ends: its body runs inside guarded(), which turns exceptions into a status and keeps their text for
// kith_last_message().
#pragma once

#include <kith/kith.h>

namespace kith::capi {

// Call inside a catch block.
kith_status keep_current_exception() noexcept;

template <typename Body>
kith_status guarded(const Body& body) noexcept {
  try {
    body();
    return KITH_OK;
  } catch (...) {
    return keep_current_exception();
  }
}

}  // namespace kith::capi
