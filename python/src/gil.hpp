// The GIL, given up for the library's work and taken back for Python's callbacks, also while the interpreter ends.
//
// An interpreter that ends kills, by unwinding its stack, each daemon thread that asks for the GIL; unwinding through
// C++ aborts the process. So once the end has begun, a thread that would ask sleeps instead, until the process is gone.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

namespace kith::python {

namespace nb = nanobind;

// Sleeps for ever if the interpreter is ending and another thread ends it.
void sleep_if_ending() noexcept;

class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  std::optional<nb::gil_scoped_release> release_;
};

class WithGil {
 public:
  WithGil() {
    sleep_if_ending();
    acquire_.emplace();
  }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  std::optional<nb::gil_scoped_acquire> acquire_;
};

}  // namespace kith::python
