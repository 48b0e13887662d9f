#include "quantize/additive/icm_products_kernel_cuda.hpp"

#include "cuda/error.hpp"
#include "cuda/shared_memory.hpp"

namespace kith {
namespace {

constexpr int kCluster = 1;

template <int kChunks>
void launch(const IcmBooks& books, const IcmRows& rows, const IcmRun& run, cudaStream_t stream) {
  const auto kernel = icm::products_kernel<kChunks, kCluster, icm::NoWatch>;
  allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
  const auto blocks = static_cast<unsigned>(divide_up(rows.count, int64_t{kCluster * kProductTileRows}) * kCluster);
  const auto bytes = static_cast<size_t>(icm::Layout<kChunks>::bytes(books.books));
  kernel<<<blocks, icm::kThreads, bytes, stream>>>(books, rows, run, icm::NoWatch());
  KITH_CUDA_CHECK_LAUNCH("icm_products_kernel");
}

}  // namespace

void launch_icm_products(const IcmBooks& books, const IcmRows& rows, const IcmRun& run, cudaStream_t stream) {
  if (product_chunks(books.cols) == 1) return launch<1>(books, rows, run, stream);
  launch<2>(books, rows, run, stream);
}

}  // namespace kith
