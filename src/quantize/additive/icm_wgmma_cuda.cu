#include "quantize/additive/icm_products_kernel_cuda.hpp"

#include "cuda/launch.hpp"
#include "cuda/shared_memory.hpp"

namespace kith {

void launch_icm_products(const IcmBooks& books, const IcmRows& rows, const IcmRun& run, cudaStream_t stream) {
  const ProductLayout layout = product_layout(books.cols);
  const auto kernel = icm::products_kernel_for<icm::NoWatch>(layout);
  allow_all_shared_memory(kernel);
  const Grid grid = Grid::of(divide_up(rows.count, kProductTileRows), icm::kThreads);
  launch(kernel, grid.with_shared(icm::SharedSlots(layout, books.books).bytes()), stream, books, rows, run, layout,
         icm::NoWatch());
}

}  // namespace kith
