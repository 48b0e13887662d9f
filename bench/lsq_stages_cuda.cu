#include "lsq_stages_cuda.hpp"

#include "cuda_timing.hpp"
#include "quantize/additive/icm_books_cuda.hpp"
#include "quantize/additive/icm_products_kernel_cuda.hpp"
#include "quantize/additive/local_search.hpp"

#include <chrono>

namespace {

using namespace kith;

constexpr int kStages = static_cast<int>(icm::Stage::count);

struct ClockWatch {
  unsigned long long* sums;
  uint32_t cycles[kStages] = {};
  uint32_t last = 0;

  __device__ void begin() { last = static_cast<uint32_t>(clock64()); }
  __device__ void ends(icm::Stage stage) {
    const auto now = static_cast<uint32_t>(clock64());
    cycles[static_cast<int>(stage)] += now - last;
    last = now;
  }
  __device__ void finish() {
    if (threadIdx.x % 32 != 0) return;
    for (int i = 0; i < kStages; ++i) atomicAdd(sums + i, static_cast<unsigned long long>(cycles[i]));
  }
};

}  // namespace

std::vector<std::pair<std::string, double>> lsq_stages(const Codebooks& books, const float* rows, int64_t count,
                                                       int64_t rounds, int cluster) {
  const Resources resources;
  const SearchBooks search(books, resources);
  if (!has_icm_products(search) || books.cols <= kProductChunkCols) return {};
  const auto context = std::make_shared<const DeviceContext>(0);
  const IcmBooksOnDevice there(search, true, context, resources);
  LocalSearchParams params;
  params.codebooks = books.books;
  const LocalSearchPlan plan = plan_of(params, rounds, 0);
  std::vector<IcmStep> steps;
  for (int64_t i = 0; i < plan.sweeps * books.books; ++i) {
    steps.push_back({static_cast<int>(i % books.books), i < books.books ? 0 : static_cast<int>(i - books.books + 2)});
  }
  const DeviceArray schedule(steps);
  const auto n = static_cast<size_t>(count);
  const DeviceArray values(n * static_cast<size_t>(books.cols) * 4);
  const DeviceArray centred(n * static_cast<size_t>(product_cols(books.cols)) * 4);
  const DeviceArray numbers(n * 8);
  const DeviceArray fits(n);
  const DeviceArray codes(n * static_cast<size_t>(books.books));
  const DeviceArray sums(kStages * 8);
  check(cudaMemcpy(values.as<float>(), rows, n * static_cast<size_t>(books.cols) * 4, cudaMemcpyDeviceToDevice));
  check(cudaMemset(sums.as<char>(), 0, kStages * 8));
  IcmRows task;
  task.count = count;
  task.values = values.as<float>();
  task.centred = centred.as<float>();
  task.numbers = numbers.as<int64_t>();
  task.fits = fits.as<uint8_t>();
  task.codes = codes.as<uint8_t>();
  launch_prepare_icm_rows(there.books(), {search.grid().shift(), search.grid().most(), 0, false}, task, {}, nullptr);
  IcmRun run;
  run.start = IcmStart::greedy;
  run.perturbation = {0, plan.perturbed};
  run.rounds = static_cast<int>(rounds);
  run.steps = static_cast<int>(steps.size());
  run.schedule = schedule.as<IcmStep>();
  const auto kernel = cluster == 1 ? icm::products_kernel<2, 1, ClockWatch> : icm::products_kernel<2, 2, ClockWatch>;
  const int bytes = icm::Layout<2>::bytes(books.books);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  ClockWatch watch;
  watch.sums = sums.as<unsigned long long>();
  const int64_t tiles = divide_up(count, int64_t{cluster * kProductTileRows}) * cluster;
  check(cudaDeviceSynchronize());
  const auto begin = std::chrono::steady_clock::now();
  kernel<<<static_cast<unsigned>(tiles), icm::kThreads, static_cast<size_t>(bytes)>>>(there.books(), task, run, watch);
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::vector<unsigned long long> cycles(kStages);
  check(cudaMemcpy(cycles.data(), sums.as<char>(), kStages * 8, cudaMemcpyDeviceToHost));
  const char* const names[] = {"wait for a book", "operand", "product", "choice", "exact costs", "residual", "rest"};
  const double warp_steps = static_cast<double>(tiles * icm::kSearchers / 32) *
                            static_cast<double>(books.books + rounds * static_cast<int64_t>(steps.size()));
  std::vector<std::pair<std::string, double>> found;
  for (int i = 0; i < kStages; ++i) {
    found.emplace_back(names[i], static_cast<double>(cycles[static_cast<size_t>(i)]) / warp_steps);
  }
  found.emplace_back("us a row", 1e6 * seconds / static_cast<double>(count));
  return found;
}
