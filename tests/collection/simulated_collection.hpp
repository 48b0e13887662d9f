// A collection on a simulated disk, with everything large made small.
#pragma once

#include "collection/collection_access.hpp"
#include "collection/collection_model.hpp"
#include "collection/simulated_vfs.hpp"
#include "io/simulated_disk.hpp"

namespace kith::testing {

inline CollectionEnvironment on_disk(SimulatedDisk& disk, const SimulatedVfs& vfs) {
  CollectionEnvironment environment;
  environment.disk = &disk;
  environment.vfs = vfs.name();
  environment.fold_bytes = 60 * kModelDimension * 4;
  environment.close_fold_bytes = 20 * kModelDimension * 4;
  environment.segment_bytes = 25 * kModelDimension * 4;
  environment.least_dropped = 6;
  environment.index_rows = 30;
  environment.writes_beside = false;
  return environment;
}

}  // namespace kith::testing
