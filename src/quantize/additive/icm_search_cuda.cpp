#include "quantize/additive/icm_search_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "cuda/workspace_layout.hpp"
#include "quantize/codec_kernels_cuda.hpp"

#include <algorithm>

namespace kith {
namespace {

constexpr int64_t kTilesEach = 16;    // tiles of a good batch for each multiprocessor
constexpr int64_t kDirectBlocks = 4;  // of the direct search on each

int attribute(cudaDeviceAttr which) {
  int device = 0;
  int value = 0;
  KITH_CUDA_CHECK(cudaGetDevice(&device));
  KITH_CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

bool has_wgmma() {
  return attribute(cudaDevAttrComputeCapabilityMajor) == 9 && attribute(cudaDevAttrComputeCapabilityMinor) == 0;
}

// The steps of each round, or of one where all are alike.
std::vector<IcmStep> schedule_of(const LocalSearchPlan& plan, int64_t books) {
  std::vector<IcmStep> steps;
  std::vector<int64_t> order;
  for (int64_t round = plan.from_round; round < plan.from_round + plan.rounds; ++round) {
    std::vector<int> before(static_cast<size_t>(books));
    int now = 2;
    for (int64_t sweep = 0; sweep < plan.sweeps; ++sweep) {
      order_books(plan, round, sweep, books, order);
      for (const int64_t book : order) {
        steps.push_back({static_cast<int>(book), before[static_cast<size_t>(book)]});
        before[static_cast<size_t>(book)] = now++;
      }
    }
    if (!plan.random_order) break;
  }
  return steps;
}

}  // namespace

struct IcmSearch::Places : WorkspaceLayout {
  Places(int64_t rows, const IcmBooks& books, int64_t scratch_doubles) {
    const bool products = books.centred != nullptr;
    values = take(rows * books.cols, 4);
    centred = take(products ? rows * product_cols(books.cols) : 0, 4);
    numbers = take(rows, 8);
    fits = take(rows, 1);
    list = take(products ? rows + 1 : 0, 4);
    scratch = take(scratch_doubles, 8);
  }

  int64_t values, centred, numbers, fits, list, scratch;
};

IcmSearch::IcmSearch(const Codebooks& books, const AdditiveEncoding& encoding,
                     const std::shared_ptr<const DeviceContext>& context, const Resources& resources)
    : encoding_(encoding) {
  const SearchBooks search(books, resources);
  const bool possible = has_icm_products(search) && has_wgmma();
  products_ = possible && encoding.form != SearchForm::direct;
  if (encoding.form == SearchForm::products && !possible) {
    throw Unsupported("local search by products on a GPU needs compute capability 9.0 and rows of up to 128 columns");
  }
  books_ = std::make_unique<IcmBooksOnDevice>(search, products_, context, resources);
  grid_.shift = search.grid().shift();
  grid_.most = search.grid().most();
  grid_.by_content = encoding.by_content;
  const int multiprocessors = attribute(cudaDevAttrMultiProcessorCount);
  good_batch_ = kTilesEach * kProductTileRows * multiprocessors;
  direct_blocks_ = static_cast<int>(kDirectBlocks * multiprocessors);
  const std::vector<IcmStep> steps = schedule_of(encoding.search, books.books);
  steps_ = static_cast<int>(encoding.search.sweeps * books.books);
  const auto bytes = static_cast<int64_t>(steps.size() * sizeof(IcmStep));
  schedule_ = DeviceBuffer(bytes, "an order of codebooks", context, resources);
  context->copy(schedule_.data(), steps.data(), bytes);
  context->synchronize();
}

int64_t IcmSearch::workspace_bytes(int64_t rows) const {
  const IcmBooks& books = books_->books();
  return Places(rows, books, direct_blocks_ * icm_direct_scratch(books.cols)).bytes;
}

IcmRows IcmSearch::rows_of(int64_t count, std::byte* workspace) const {
  const Places places(count, books_->books(), 0);
  IcmRows rows;
  rows.count = count;
  rows.values = reinterpret_cast<float*>(workspace + places.values);
  if (products_) rows.centred = reinterpret_cast<float*>(workspace + places.centred);
  rows.numbers = reinterpret_cast<int64_t*>(workspace + places.numbers);
  rows.fits = reinterpret_cast<uint8_t*>(workspace + places.fits);
  return rows;
}

IcmList IcmSearch::list_of(int64_t count, std::byte* workspace) const {
  if (!products_) return {};
  auto* const list = reinterpret_cast<uint32_t*>(workspace + Places(count, books_->books(), 0).list);
  return {list + 1, list};
}

void IcmSearch::prepare(const DeviceRowsView& rows, int64_t first, std::byte* workspace, cudaStream_t stream) const {
  const IcmRows prepared = rows_of(rows.count, workspace);
  launch_widen_rows(rows, books_->books().cols, prepared.values, stream);
  IcmGrid grid = grid_;
  grid.first_number = first;
  launch_prepare_icm_rows(books_->books(), grid, prepared, list_of(rows.count, workspace), stream);
}

void IcmSearch::search(int64_t count, int64_t from, int64_t rounds, bool starts, uint8_t* codes, float* costs,
                       std::byte* workspace, cudaStream_t stream) const {
  IcmRows rows = rows_of(count, workspace);
  rows.codes = codes;
  rows.costs = costs;
  IcmRun run;
  if (starts) {
    run.start = encoding_.start == CodeStart::greedy   ? IcmStart::greedy
                : encoding_.start == CodeStart::random ? IcmStart::random
                                                       : IcmStart::given;
  }
  run.perturbation = {encoding_.search.seed, encoding_.search.perturbed};
  run.first_round = from;
  run.rounds = static_cast<int>(rounds);
  run.steps = steps_;
  run.schedule_stride = encoding_.search.random_order ? steps_ : 0;
  run.schedule = reinterpret_cast<const IcmStep*>(schedule_.data()) + (from - encoding_.search.from_round) * run.schedule_stride;
  const IcmBooks& books = books_->books();
  auto* const scratch = reinterpret_cast<double*>(workspace + Places(count, books, 0).scratch);
  launch_icm_direct(books, rows, list_of(count, workspace), run, scratch, direct_blocks_, stream);
  if (products_) launch_icm_products(books, rows, run, stream);
}

}  // namespace kith
