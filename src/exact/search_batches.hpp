// What every plan of an exact search settles: in which batches the loop goes, and what memory that takes.
#pragma once

#include <kith/device.hpp>

#include <cstdint>

namespace kith {

struct SearchBatches {
  Device device = Device::cpu();
  int64_t query_batch = 0;  // queries searched together; the base is passed over once per batch
  int64_t base_chunk = 0;   // rows handed to the backend at a time
  int64_t host_bytes = 0;   // what the search will allocate, at its peak
  int64_t device_bytes = 0;
};

}  // namespace kith
