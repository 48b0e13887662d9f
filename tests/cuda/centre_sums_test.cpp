// What adding up rows by centre on a GPU asks of its workspace.
#include "cluster/steps/kmeans_workspace_cuda.hpp"
#include "cuda/parity.hpp"
#include "kernels/assign/centre_sums_cuda.hpp"

namespace kith {
namespace {

class CudaCentreSums : public OnCuda {};

// The plan cannot ask the sort, since plans are made where there is no GPU: this is what holds it to the truth.
TEST_F(CudaCentreSums, SortsInTheBytesThatArePlanned) {
  for (int64_t power = 1; power <= int64_t{1} << 31; power *= 2) {
    for (const int64_t rows : {power - 1, power, power + power / 3}) {
      if (rows < 1 || rows > INT32_MAX) continue;
      for (int bits = 1; bits <= 32; ++bits) {
        ASSERT_LE(centre_sort_bytes_needed(rows, bits), centre_sort_bytes(rows))
            << rows << " rows, " << bits << " bits";
      }
    }
  }
}

}  // namespace
}  // namespace kith
