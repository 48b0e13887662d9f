// Replaces the CUDA functions in a build without CUDA.
#include "core/dispatch.hpp"
#include "quantize/additive/local_search_steps.hpp"
#include "quantize/codec.hpp"
#include "quantize/product/product_training.hpp"

namespace kith {

void encode_cuda(const EncodeTask&, int, const Resources&) { throw_no_cuda(); }
void decode_cuda(const CodecTables&, const MatrixView&, const MutableMatrixView&, int, const Resources&) {
  throw_no_cuda();
}
void encode_additive_cuda(const Codebooks&, const AdditiveEncoding&, const MatrixView&, uint8_t*, float*, int,
                          const Resources&) {
  throw_no_cuda();
}
void copy_codes_cuda(const MatrixView&, const MutableMatrixView&, int, const Resources&) { throw_no_cuda(); }
std::unique_ptr<LocalSearchSteps> make_local_search_steps_cuda(const TrainingShape&, int, const Resources&) {
  throw_no_cuda();
}
void widen_ranges_cuda(const MatrixView&, float*, float*, const Resources&) { throw_no_cuda(); }
std::unique_ptr<ProductPass> make_product_pass_cuda(const ProductSample&, int, const Resources&) { throw_no_cuda(); }

}  // namespace kith
