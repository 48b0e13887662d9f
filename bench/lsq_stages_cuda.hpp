// Where the time of a search for codes by products goes: cycles of each stage of a step, by the clocks of the
// multiprocessors.
#pragma once

#include "quantize/additive/codebooks.hpp"
#include "quantize/additive/icm_task_cuda.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// Cycles of a warp in each stage of a step, with names, and behind them microseconds a row of the whole. `rows`: f32 on
// the device, one after the other. Reading the clocks takes time itself: the last figure is of a run without.
std::vector<std::pair<std::string, double>> lsq_stages(const kith::Codebooks& books, const float* rows, int64_t count,
                                                       int64_t rounds, const kith::ProductLayout& layout);

// Whether the codes of a search stay what they are where copier and searchers meet at a barrier of the block after each
// step. For racecheck, which does not follow barriers in shared memory.
bool lsq_same_with_block_barriers(const kith::Codebooks& books, const float* rows, int64_t count, int64_t rounds);
