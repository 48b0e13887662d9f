#include "shared_resources.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace kith::python {
namespace {

struct Entry {
  int threads;
  Resources resources;
};

// A program uses one or two thread counts; one that tries many, as a benchmark does, keeps the last few pools alone.
constexpr std::size_t kKept = 4;

}  // namespace

Resources shared_resources(int threads) {
  // Guarded by the GIL, which a fork hands over in a sound state; a mutex it might copy locked. Never destroyed: at
  // exit a pool's threads may still be at work for a daemon thread.
  static auto* entries = new std::vector<Entry>;
  const auto known =
      std::find_if(entries->begin(), entries->end(), [&](const Entry& e) { return e.threads == threads; });
  if (known != entries->end()) {
    std::rotate(known, known + 1, entries->end());  // the last one used stands last
    return entries->back().resources;
  }
  ResourceOptions options;
  options.threads = threads;
  Resources fresh(std::move(options));
  if (entries->size() == kKept) entries->erase(entries->begin());
  entries->push_back({threads, fresh});
  return fresh;
}

}  // namespace kith::python
