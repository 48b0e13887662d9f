#include "ranks/parts.hpp"

#include <kith/error.hpp>
#include <kith/refused_row.hpp>

#include "core/byte_size.hpp"
#include "core/memory_budget.hpp"
#include "core/named_limit.hpp"
#include "ranks/local_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

namespace kith {
namespace {

// How a part has ended, the most informative first.
enum class PartEnd : int { cause, stopped, well };

PartEnd end_of(const std::exception_ptr& error) {
  if (error == nullptr) return PartEnd::well;
  try {
    std::rethrow_exception(error);
  } catch (const Cancelled&) {
    return PartEnd::stopped;
  } catch (const OtherRankThrew&) {
    return PartEnd::stopped;
  } catch (...) {
    return PartEnd::cause;
  }
}

bool is_refused_row(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const RefusedRow&) {
    return true;
  } catch (...) {
    return false;
  }
}

// The memory that parts divide: a limit less what the call itself uses.
struct SharedMemory {
  int parts = 1;
  int64_t used = 0;  // by the call itself
};

// Rethrows the error as one device would, naming the part if the error is about its memory or its device.
[[noreturn]] void throw_of_part(const std::exception_ptr& error, const std::string& name, const SharedMemory& shared) {
  try {
    std::rethrow_exception(error);
  } catch (const AgreedByAll&) {
    throw;                             // named already
  } catch (const NamedLimit& limit) {  // the part's, of which the call's is a multiple
    const int64_t all = saturating_multiply(saturating_add(limit.bytes_needed(), 1), shared.parts);
    throw NamedLimit(limit.which(), saturating_add(shared.used, all), fmt::format("{}: {}", name, limit.refused()));
  } catch (const OutOfMemory&) {
    throw_named(error, name);
  } catch (const DeviceError&) {
    throw_named(error, name);
  } catch (const std::bad_alloc&) {
    throw_named(error, name);
  }  // others leave as they are
}

// The parts that share a memory: all that of the host, those of a device its own.
SharedMemory shared_by_parts(const Resources& resources, const std::exception_ptr& error, Device device) {
  try {
    std::rethrow_exception(error);
  } catch (const NamedLimit& limit) {
    if (limit.which() == "host") return {resources.parts(), resources.host_memory()->used()};
    for (const DeviceParts& one : resources.devices()) {
      if (one.device == device) return {one.parts, resources.device_memory(device.index)->used()};
    }
  } catch (...) {
  }
  return {};
}

}  // namespace

bool is_divided(const MemorySpace& space, const Resources& resources) {
  if (!is_shared(resources)) return false;
  const std::vector<DeviceParts> devices = resources.devices();
  return space.host_readable() || std::all_of(devices.begin(), devices.end(), [&](const DeviceParts& one) {
           return one.device == Device::cuda(space.device);
         });
}

std::vector<std::string> part_names(const Resources& resources) {
  std::vector<std::string> names;
  for (const DeviceParts& one : resources.devices()) {
    for (int i = 1; i <= one.parts; ++i) {
      names.push_back(one.parts == 1 ? name_of(one.device)
                                     : fmt::format("{}, part {} of {}", name_of(one.device), i, one.parts));
    }
  }
  return names;
}

namespace {

// Runs work(ranks, made[rank]) on a thread for each of `made`, which are parts, or groups of parts, of `resources`.
void run_among(const Resources& resources, const std::vector<Resources>& made, const std::vector<std::string>& names,
               const PartWork& work) {
  const int size = static_cast<int>(made.size());
  const ResourceOptions& given = resources.options();
  std::atomic<int> stopped{size};  // parts from this one on are to stop
  const auto stop_from = [&](int part) {
    int now = stopped.load();
    while (part < now && !stopped.compare_exchange_weak(now, part)) {
    }
  };
  std::mutex log_mutex;
  const auto log = [&](LogLevel level, std::string_view text) {
    const std::lock_guard lock(log_mutex);
    given.log(level, text);
  };
  const auto log_warnings = [&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning || level == LogLevel::precision) log(level, text);
  };
  std::vector<Resources> parts;
  for (int number = 0; number < size; ++number) {
    const auto asked = [&, number] {
      return stopped.load(std::memory_order_relaxed) <= number ||
             (number == 0 && given.interrupted && given.interrupted());
    };
    Resources part = made[static_cast<size_t>(number)].with_cancel(given.cancel, asked);
    if (given.log) part = part.with_log(number == 0 ? LogSink(log) : LogSink(log_warnings));
    if (given.progress && number == 0) part = part.with_progress(given.progress);
    parts.push_back(std::move(part));
  }
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  const auto run = [&](Communicator& ranks) {
    const auto number = static_cast<size_t>(ranks.rank());
    try {
      work(ranks, parts[number]);
    } catch (...) {
      errors[number] = std::current_exception();
      stop_from(is_refused_row(errors[number]) ? ranks.rank() + 1 : 0);
      throw;
    }
  };
  const auto poll = [&] {  // while the first part waits, or has ended
    try {
      resources.check_cancelled();
    } catch (...) {
      stop_from(0);
      throw;
    }
  };
  try {
    run_named_ranks(names, run, poll);
  } catch (...) {
    const auto first = std::min_element(errors.begin(), errors.end(),
                                        [](const auto& a, const auto& b) { return end_of(a) < end_of(b); });
    if (end_of(*first) == PartEnd::well) throw;  // a thread that cannot start
    const auto number = static_cast<size_t>(first - errors.begin());
    if (end_of(*first) == PartEnd::cause) {
      throw_of_part(*first, names[number], shared_by_parts(resources, *first, parts[number].device()));
    }
    throw Cancelled();
  }
}

// The devices of parts first .. first + count - 1.
std::vector<DeviceParts> devices_of(const Resources& resources, int first, int count) {
  std::vector<DeviceParts> devices;
  int number = 0;
  for (const DeviceParts& one : resources.devices()) {
    for (int i = 0; i < one.parts; ++i, ++number) {
      if (number < first || number >= first + count) continue;
      if (devices.empty() || devices.back().device != one.device) devices.push_back({one.device, 0});
      ++devices.back().parts;
    }
  }
  return devices;
}

// The budget of each GPU of a group: null if each keeps its own, since no other group has parts of it; otherwise one
// budget, of the smallest share, for all.
std::shared_ptr<MemoryBudget> device_budget(const Resources& resources, const std::vector<DeviceParts>& devices,
                                            int first) {
  const std::vector<DeviceParts> all = resources.devices();
  const auto is_whole = [&](const DeviceParts& one) { return std::find(all.begin(), all.end(), one) != all.end(); };
  if (std::all_of(devices.begin(), devices.end(), is_whole)) return nullptr;
  std::shared_ptr<MemoryBudget> smallest;
  for (const DeviceParts& one : devices) {
    if (one.device.kind == DeviceKind::cuda) {
      const int64_t share = saturating_multiply(resources.part(first).device_memory()->available(), one.parts);
      if (smallest == nullptr || share < smallest->limit()) {
        smallest = std::make_shared<MemoryBudget>(resources.device_memory(one.device.index), share);
      }
    }
    first += one.parts;
  }
  return smallest;
}

// The resources of the group of parts first .. first + count - 1, one of `groups` equal groups.
Resources group_of(const Resources& resources, int first, int count, int groups) {
  const std::vector<DeviceParts> devices = devices_of(resources, first, count);
  if (resources.devices().size() == 1) {  // a larger part of the same device, divided once more
    return resources.with_devices({{devices.front().device, groups}}).part(first / count).with_devices(devices);
  }
  const int64_t host_bytes = resources.host_memory()->available() / groups;
  return resources.with_stream(nullptr)
      .with_log({})
      .with_progress({})
      .with_budgets(std::make_shared<MemoryBudget>(resources.host_memory(), host_bytes),
                    device_budget(resources, devices, first))
      .with_devices(devices);
}

}  // namespace

void run_parts(const Resources& resources, const PartWork& work) {
  std::vector<Resources> parts;
  for (int number = 0; number < resources.parts(); ++number) parts.push_back(resources.part(number));
  run_among(resources, parts, part_names(resources), work);
}

void run_groups(int groups, const Resources& resources, const GroupWork& work) {
  const int count = resources.parts() / groups;
  std::vector<Resources> made;
  std::vector<std::string> names;
  for (int group = 0; group < groups; ++group) {
    made.push_back(group_of(resources, group * count, count, groups));
    names.push_back(name_of(made.back().devices()));
  }
  run_among(resources, made, names, [&](Communicator& ranks, const Resources& own) { work(ranks.rank(), own); });
}

void share_out(int64_t total, int64_t unit, const Resources& resources, const ShareWork& work) {
  run_parts(resources, [&](Communicator& ranks, const Resources& part) {
    const RankPart share = part_of(total, unit, ranks.rank(), ranks.size());
    if (share.count > 0) work(share, part);
  });
}

void deal_steps(int64_t steps, const Resources& resources, const StepWork& work) {
  if (!is_shared(resources)) {
    for (int64_t step = 0; step < steps; ++step) work(step, resources);
    return;
  }
  std::vector<std::exception_ptr> refused(static_cast<size_t>(steps));
  std::atomic<bool> stops{false};  // all steps before those that were dealt out are done
  run_parts(resources, [&](Communicator& ranks, const Resources& part) {
    ranks.begin_steps(steps);
    while (!stops.load()) {  // looked at before a step is dealt: one that was dealt is done
      const int64_t step = ranks.next_step();
      if (step < 0) break;
      try {
        work(step, part);
      } catch (const RefusedRow&) {
        refused[static_cast<size_t>(step)] = std::current_exception();
        stops.store(true);
      }
    }
  });
  for (const std::exception_ptr& error : refused) {
    if (error != nullptr) std::rethrow_exception(error);
  }
}

bool are_of_one_kind(const Resources& resources) {
  const std::vector<DeviceParts> devices = resources.devices();
  return std::all_of(devices.begin(), devices.end(),
                     [&](const DeviceParts& one) { return one.device.kind == devices.front().device.kind; });
}

namespace {

Footprint needed_by_parts(const Resources& resources, const PartNeeds& needs) {
  Footprint most;
  std::vector<std::pair<Device, int>> asked;  // parts alike need the same
  for (int number = 0; number < resources.parts(); ++number) {
    const Resources part = resources.part(number);
    const std::pair kind(part.device(), part.threads());
    if (std::find(asked.begin(), asked.end(), kind) != asked.end()) continue;
    asked.push_back(kind);
    most = most.then(needs(part));
  }
  return most;
}

}  // namespace

std::optional<Footprint> needed_if_all_have_room(std::string_view job, const Resources& resources,
                                                 const PartNeeds& needs) {
  const Footprint needed = needed_by_parts(resources, needs);
  for (int number = 0; number < resources.parts(); ++number) {
    if (has_room_for(needed, resources.part(number))) continue;
    resources.log(LogLevel::info, fmt::format("{}: {} has no room for its share of the work; {} does all of it", job,
                                              part_names(resources)[static_cast<size_t>(number)],
                                              name_of(resources.devices().front().device)));
    return std::nullopt;
  }
  return needed;
}

Resources all_parts_or_first(std::string_view job, const Resources& resources, const PartNeeds& needs) {
  if (!is_shared(resources) || needed_if_all_have_room(job, resources, needs)) return resources;
  return resources.with_device(resources.device());
}

}  // namespace kith
