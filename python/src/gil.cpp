#include "gil.hpp"

#include "module.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace kith::python {
namespace {

std::atomic<int> calls_running{0};
std::atomic<bool> ending{false};
std::thread::id ending_thread;  // written before `ending`

// Runs at exit, before the interpreter refuses the GIL to other threads. Those that wait for it at this moment get it.
void begin_end() {
  ending_thread = std::this_thread::get_id();
  ending.store(true);
  if (calls_running.load() == 0) return;
  nb::gil_scoped_release release;
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace

void sleep_if_ending() noexcept {
  if (!ending.load() || ending_thread == std::this_thread::get_id()) return;
  for (;;) pause();
}

WithoutGil::WithoutGil() {
  calls_running.fetch_add(1);
  release_.emplace();
}

WithoutGil::~WithoutGil() {
  sleep_if_ending();
  release_.reset();
  calls_running.fetch_sub(1);
}

void bind_gil() { nb::module_::import_("atexit").attr("register")(nb::cpp_function(begin_end)); }

}  // namespace kith::python
