// Passes over working lists (working_lists.hpp) in the memory of a GPU: a survey after a round, the lists of some rows,
// lists of another length, and what the caller gets.
#pragma once

#include <kith/metric.hpp>
#include <kith/neighbors.hpp>

#include "graph/lists/list_survey.hpp"
#include "graph/lists/working_lists_cuda.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// The parts of a survey, which the host adds up in order: rows are added in blocks of a fixed size, so that sums do not
// depend on the launch.
inline constexpr int64_t kSurveyRows = 256;
constexpr int64_t survey_parts(int64_t rows) { return (rows + kSurveyRows - 1) / kSurveyRows; }

// One ListSurvey for each part, of the first k of each list; flags as in survey_lists(). Enqueues and returns.
void launch_survey_lists(const DeviceWorkingLists& lists, int64_t k, Metric metric, Flags flags, ListSurvey* parts,
                         cudaStream_t stream);

// The lists of rows[0], rows[1], ..., one after the other. Enqueues and returns.
void launch_gather_lists(const DeviceWorkingLists& lists, const uint32_t* rows, int64_t count, uint64_t* out,
                         cudaStream_t stream);

// `to` has the same rows and another length. Enqueues and returns.
void launch_resize_lists(const DeviceWorkingLists& lists, const DeviceWorkingLists& to, cudaStream_t stream);

// Rows first, first + 1, ... of the lists; `out` lies on the device. Enqueues and returns.
void launch_write_lists(const DeviceWorkingLists& lists, Metric metric, int64_t first, const NeighborsView& out,
                        cudaStream_t stream);

}  // namespace kith
