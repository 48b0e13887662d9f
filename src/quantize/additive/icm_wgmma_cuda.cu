#include "quantize/additive/icm_products_kernel_cuda.hpp"

#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"

namespace kith {
namespace {

template <int kChunks>
void launch_products(const IcmBooks& books, const IcmRows& rows, const IcmRun& run, cudaStream_t stream) {
  const auto kernel = icm::products_kernel<kChunks, icm::NoWatch>;
  allow_all_shared_memory(kernel);
  const Grid grid = Grid::of(divide_up(rows.count, kProductTileRows), icm::kThreads);
  launch(kernel, grid.with_shared(icm::Layout<kChunks>::bytes(books.books)), stream, books, rows, run, icm::NoWatch());
}

}  // namespace

void launch_icm_products(const IcmBooks& books, const IcmRows& rows, const IcmRun& run, cudaStream_t stream) {
  if (product_chunks(books.cols) == 1) return launch_products<1>(books, rows, run, stream);
  launch_products<2>(books, rows, run, stream);
}

}  // namespace kith
