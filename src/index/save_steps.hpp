// An index and the vectors of files become a file in steps of a work folder (kith/index_work.hpp).
//
//   survey, survey-train   hashes of the vectors, and of those that are trained with: verified when work goes on
//   trained                the training, where the index had none, as a .kith file
//   rows-0-4096            the rows from 0 to 4096 of the new index, likewise (index_runs.hpp)
//
// Reads: the vectors twice, and once more for each time that work goes on. Disk: every array of the rows once, beside the
// file.
#pragma once

#include <kith/index.hpp>
#include <kith/index_work.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

#include "io/disk.hpp"

#include <cstdint>
#include <string>

namespace kith {

struct SaveTask {
  const Index& index;
  const VectorFile& rows;
  VectorView<const int64_t> ids;
  std::string path;
};

// The steps lie on `disk`. `step_rows`: of a step, at most, for tests.
void save_in_steps(const SaveTask& task, const IndexWork& work, Disk& disk, int64_t step_rows, const Resources& resources);

}  // namespace kith
