// Codes of rows by local search, on a GPU: the same bytes as on the CPU (additive_encoding.hpp), batch by batch. No CUDA
// types; without CUDA it is Unsupported.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "quantize/additive/additive_encoding.hpp"

#include <cstdint>

namespace kith {

// Rows of any dtype, on the host or that device; `codes` and `costs`, which may be null, likewise. Complete when it
// returns.
void encode_additive_cuda(const Codebooks& books, const AdditiveEncoding& encoding, const MatrixView& rows,
                          uint8_t* codes, float* costs, int device, const Resources& resources);

// Codes from where they lie to elsewhere, both on the host or that device.
void copy_codes_cuda(const MatrixView& from, const MutableMatrixView& to, int device, const Resources& resources);

}  // namespace kith
