// Codecs on a GPU: what codec.hpp does, with the same bytes. Rows, codes and outputs lie in that device's memory or on
// the host, from where they are brought piece by piece. Every function returns when its result is complete. No CUDA
// types; without CUDA every function is Unsupported.
#pragma once

#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "quantize/code_encoder.hpp"

#include <cstdint>

namespace kith {

// Codes without gaps, as the recipe says.
void encode_cuda(const EncodeTask& task, int device, const Resources& resources);
void decode_cuda(const CodecTables& codec, const MatrixView& codes, const MutableMatrixView& out, int device,
                 const Resources& resources);

// Lowers leasts and raises largests to the values of rows on the device.
void widen_ranges_cuda(const MatrixView& rows, float* leasts, float* largests, const Resources& resources);

}  // namespace kith
