// Training of additive codes (LSQ): codebooks for the codes, codes for the codebooks, in turns (Martinez et al.,
// "Revisiting additive quantization", 2016). With annealing every round but the last moves the codewords at random, by
// less and less (Martinez et al., "LSQ++", 2018, SR-D). How far is measured by what codes leave of the rows: at first
// sums of codewords move by about `anneal` times their distance from the rows. By the rows' own spread, as in LSQ++,
// that would be too far where codes leave little of it.
//
// The objective, |X - C B|^2 + lambda |C|^2, falls with every round but for rounding, while nothing is annealed.
//
// Cost of a round: an update (local_search_steps.hpp) and some rounds of local search for every row. Memory: the
// training rows as f32, up to kMostTrainingRows of them, and what these two take.
#pragma once

#include <kith/local_search_quantizer.hpp>
#include <kith/resources.hpp>

#include "core/footprint.hpp"
#include "rows/row_source.hpp"

#include <cstdint>
#include <vector>

namespace kith {

inline constexpr int64_t kMostTrainingRows = int64_t{1} << 20;  // more are sampled

Footprint local_search_training_footprint(const LocalSearchParams& params, const RowsInfo& rows,
                                          const Resources& resources);

// After each round `trained` has its codebooks, on their grid, coarse ones first, and `history` one more objective.
void train_local_search(const LocalSearchParams& params, RowSource& rows, std::vector<float>& trained,
                        std::vector<double>& history, const Resources& resources);

}  // namespace kith
