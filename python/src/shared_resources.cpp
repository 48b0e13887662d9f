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

// A program uses one or two thread counts and devices; one that tries many, as a benchmark does, keeps the last few
// pools alone.
constexpr std::size_t kKept = 8;

}  // namespace

const Resources& shared_resources(int threads, const std::vector<DeviceParts>& devices) {
  // Guarded by the GIL, which a fork hands over in a sound state; a mutex it might copy locked. Never destroyed: at
  // exit a pool's threads may still be at work for a daemon thread.
  static auto* entries = new std::vector<Entry>;
  const auto last_used = [](auto entry) -> const Resources& {  // it stands last
    if (entry + 1 != entries->end()) std::rotate(entry, entry + 1, entries->end());
    return entries->back().resources;
  };
  const auto same_threads = [&](const Entry& e) { return e.threads == threads; };
  const auto known = std::find_if(entries->begin(), entries->end(),
                                  [&](const Entry& e) { return same_threads(e) && e.resources.devices() == devices; });
  if (known != entries->end()) return last_used(known);
  const auto others = std::find_if(entries->begin(), entries->end(), same_threads);
  ResourceOptions options;
  options.threads = threads;
  options.devices = devices;
  Resources fresh = others != entries->end() ? others->resources.with_devices(devices) : Resources(std::move(options));
  if (entries->size() == kKept) entries->erase(entries->begin());
  entries->push_back({threads, std::move(fresh)});
  return entries->back().resources;
}

}  // namespace kith::python
