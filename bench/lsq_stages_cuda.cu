#include "lsq_stages_cuda.hpp"

#include "cuda_timing.hpp"
#include "quantize/additive/icm_search_cuda.hpp"
#include "quantize/additive/icm_products_kernel_cuda.hpp"
#include "quantize/additive/local_search.hpp"

#include <chrono>

namespace {

using namespace kith;

constexpr int kStages = static_cast<int>(icm::Stage::count);

struct ClockWatch {
  static constexpr bool kBlockBarriers = false;
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

struct MeetingWatch : icm::NoWatch {
  static constexpr bool kBlockBarriers = true;
};

// A search of rows on the device, from a greedy start, in the order of the books.
class Launch {
 public:
  Launch(const Codebooks& books, const SearchBooks& search, const float* rows, int64_t count, int64_t rounds,
         const ProductLayout& layout)
      : books_(books),
        layout_(layout),
        there_(search, true, std::make_shared<const DeviceContext>(0), Resources()),
        steps_(steps_of(books)),
        schedule_(steps_),
        values_(static_cast<size_t>(count * books.cols) * 4),
        centred_(static_cast<size_t>(count * product_cols(books.cols)) * 4),
        residuals_(static_cast<size_t>(tiles_of(count) * kProductTileRows * product_cols(books.cols)) * 4),
        numbers_(static_cast<size_t>(count) * 8),
        fits_(static_cast<size_t>(count)),
        codes_(static_cast<size_t>(count * books.books)) {
    check(cudaMemcpy(values_.as<float>(), rows, static_cast<size_t>(count * books.cols) * 4, cudaMemcpyDeviceToDevice));
    task_.count = count;
    task_.values = values_.as<float>();
    task_.centred = centred_.as<float>();
    task_.residuals = residuals_.as<float>();
    task_.numbers = numbers_.as<int64_t>();
    task_.fits = fits_.as<uint8_t>();
    task_.codes = codes_.as<uint8_t>();
    launch_prepare_icm_rows(there_.books(), {search.grid().shift(), search.grid().most(), 0, false}, task_, {},
                            nullptr);
    LocalSearchParams params;
    params.codebooks = books.books;
    run_.start = IcmStart::greedy;
    run_.perturbation = {0, plan_of(params, rounds, 0).perturbed};
    run_.rounds = static_cast<int>(rounds);
    run_.steps = static_cast<int>(steps_.size());
    run_.schedule = schedule_.as<IcmStep>();
  }

  int64_t tiles() const { return tiles_of(task_.count); }
  int64_t steps() const { return static_cast<int64_t>(steps_.size()); }

  // Seconds.
  template <typename Watch>
  double run(const Watch& watch) const {
    const auto kernel = icm::products_kernel_for<Watch>(layout_);
    const int bytes = icm::SharedSlots(layout_, books_.books).bytes();
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    check(cudaDeviceSynchronize());
    const auto begin = std::chrono::steady_clock::now();
    kernel<<<static_cast<unsigned>(tiles()), icm::kThreads, static_cast<size_t>(bytes)>>>(there_.books(), task_, run_,
                                                                                          layout_, watch);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  std::vector<uint8_t> codes() const {
    std::vector<uint8_t> found(static_cast<size_t>(task_.count * books_.books));
    check(cudaMemcpy(found.data(), codes_.as<char>(), found.size(), cudaMemcpyDeviceToHost));
    return found;
  }

 private:
  static int64_t tiles_of(int64_t count) { return divide_up(count, int64_t{kProductTileRows}); }
  static std::vector<IcmStep> steps_of(const Codebooks& books) {
    LocalSearchParams params;
    std::vector<IcmStep> steps;
    for (int64_t i = 0; i < params.sweeps * books.books; ++i) {
      steps.push_back({static_cast<int>(i % books.books), i < books.books ? 0 : static_cast<int>(i - books.books + 2)});
    }
    return steps;
  }

  const Codebooks books_;
  const ProductLayout layout_;
  const IcmBooksOnDevice there_;
  const std::vector<IcmStep> steps_;
  const DeviceBytes schedule_;
  const DeviceBytes values_;
  const DeviceBytes centred_;
  const DeviceBytes residuals_;
  const DeviceBytes numbers_;
  const DeviceBytes fits_;
  const DeviceBytes codes_;
  IcmRows task_;
  IcmRun run_;
};

}  // namespace

std::vector<std::pair<std::string, double>> lsq_stages(const Codebooks& books, const float* rows, int64_t count,
                                                       int64_t rounds, const ProductLayout& layout) {
  const SearchBooks search(books, Resources());
  if (!has_icm_products(search)) return {};
  const Launch launch(books, search, rows, count, rounds, layout);
  const DeviceBytes sums(kStages * 8);
  check(cudaMemset(sums.as<char>(), 0, kStages * 8));
  ClockWatch watch;
  watch.sums = sums.as<unsigned long long>();
  launch.run(watch);
  const double seconds = launch.run(icm::NoWatch());
  std::vector<unsigned long long> cycles(kStages);
  check(cudaMemcpy(cycles.data(), sums.as<char>(), kStages * 8, cudaMemcpyDeviceToHost));
  const char* const names[] = {"wait for a book", "operand", "product", "choice", "exact costs", "residual", "rest"};
  const double warp_steps = static_cast<double>(launch.tiles() * icm::kSearchers / 32) *
                            static_cast<double>(books.books + rounds * launch.steps());
  std::vector<std::pair<std::string, double>> found;
  for (int i = 0; i < kStages; ++i) {
    found.emplace_back(names[i], static_cast<double>(cycles[static_cast<size_t>(i)]) / warp_steps);
  }
  found.emplace_back("us a row", 1e6 * seconds / static_cast<double>(count));
  return found;
}

bool lsq_same_with_block_barriers(const Codebooks& books, const float* rows, int64_t count, int64_t rounds) {
  const SearchBooks search(books, Resources());
  if (!has_icm_products(search)) return false;
  const ProductLayout layout = product_layout(books.cols);
  const Launch usual(books, search, rows, count, rounds, layout);
  usual.run(icm::NoWatch());
  const Launch meeting(books, search, rows, count, rounds, layout);
  meeting.run(MeetingWatch());
  return usual.codes() == meeting.codes();
}
