// The best codebooks for given codes (local_search_steps.hpp) on a GPU. Counts are exact, sums are in the order of the
// rows, and the system is solved in a fixed order: the same bits in every run.
//
// Device memory: 8 bytes per pair of codewords, and 8 per value of the codebooks.
#pragma once

#include "quantize/additive/local_search_steps.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace kith {

// Size of the linear system: counts of pairs of codewords, and sums of rows.
int64_t codebook_system_values(const CodedRows& coded);

// Enqueues. Everything on the device; `system`: codebook_system_values. `codebooks`: books x 2^bits x cols.
void launch_update_codebooks(const CodedRows& coded, double lambda, double* system, float* codebooks,
                             cudaStream_t stream);

}  // namespace kith
