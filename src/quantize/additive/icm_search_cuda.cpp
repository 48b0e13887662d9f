#include "quantize/additive/icm_search_cuda.hpp"

#include <kith/error.hpp>

#include "core/divide.hpp"
#include "core/memory_budget.hpp"
#include "cuda/workspace_layout.hpp"
#include "kernels/codes/code_kernels_cuda.hpp"

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

// Tables are made on the host, at some 10^11 multiply-adds a second, where the direct search has 10^13.
bool tables_pay(const Codebooks& books, const LocalSearchPlan& plan, int64_t rows, const Resources& resources) {
  constexpr double kSlower = 150;
  const double steps = static_cast<double>(rows) * static_cast<double>(plan.rounds * plan.sweeps + 1);
  const int64_t there = IcmTablesOnDevice::bytes_for(books);
  return steps > kSlower * static_cast<double>(books.all_words()) &&
         PairwiseTables::bytes_for(books) <= resources.host_memory()->available() / 2 &&
         there <= resources.device_memory()->available() / 4;
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

struct IcmSearch::Workspace : WorkspaceLayout {
  Workspace(int64_t rows, const IcmSearch& search, int64_t scratch_values) {
    const IcmBooks& books = search.books_->books();
    const bool products = search.form_ == SearchForm::products;
    const bool tables = search.form_ == SearchForm::tables;
    values = take<float>(rows, books.cols);
    centred = take<float>(products ? rows : 0, product_cols(books.cols));
    numbers = take<int64_t>(rows);
    fits = take<uint8_t>(rows);
    unary = take<int16_t>(tables ? rows : 0, tables ? books.books * search.tables_->tables().width : 0);
    windows = take<int16_t>(tables ? rows : 0, books.books);
    norms = take<double>(tables ? rows : 0);
    list = take<uint32_t>(search.form_ == SearchForm::direct ? 0 : rows + 1);
    scratch = take<double>(scratch_values);
  }

  Slot<float> values, centred;
  Slot<int64_t> numbers;
  Slot<uint8_t> fits;
  Slot<int16_t> unary, windows;
  Slot<double> norms;
  Slot<uint32_t> list;
  Slot<double> scratch;
};

IcmSearch::IcmSearch(const Codebooks& books, const AdditiveEncoding& encoding, int64_t rows,
                     const std::shared_ptr<const DeviceContext>& context, const Resources& resources)
    : encoding_(encoding), form_(encoding.form) {
  const SearchBooks search(books, resources);
  const bool products = has_icm_products(search) && has_wgmma();
  if (form_ == SearchForm::automatic) {
    form_ = products                                              ? SearchForm::products
            : tables_pay(books, encoding.search, rows, resources) ? SearchForm::tables
                                                                  : SearchForm::direct;
  }
  if (form_ == SearchForm::products && !products) {
    throw Unsupported("local search by products on a GPU needs compute capability 9.0 and rows of up to 128 columns");
  }
  books_ = std::make_unique<IcmBooksOnDevice>(search, form_ == SearchForm::products, context, resources);
  if (form_ == SearchForm::tables) tables_ = std::make_unique<IcmTablesOnDevice>(search, context, resources);
  grid_.shift = search.grid().shift();
  grid_.most = search.grid().most();
  grid_.by_content = encoding.by_content;
  multiprocessors_ = attribute(cudaDevAttrMultiProcessorCount);
  good_batch_ = kTilesEach * kProductTileRows * multiprocessors_;
  direct_blocks_ = static_cast<int>(kDirectBlocks * multiprocessors_);
  const std::vector<IcmStep> steps = schedule_of(encoding.search, books.books);
  steps_ = static_cast<int>(encoding.search.sweeps * books.books);
  schedule_ = DeviceArray<IcmStep>(static_cast<int64_t>(steps.size()), "an order of codebooks", context, resources);
  context->copy_values(schedule_.data(), steps.data(), schedule_.size());
  context->synchronize();
}

int64_t IcmSearch::bytes() const {
  return books_->bytes() + schedule_.bytes() + (tables_ == nullptr ? 0 : tables_->bytes());
}

int64_t IcmSearch::workspace_bytes(int64_t rows) const {
  return Workspace(rows, *this, direct_blocks_ * icm_direct_scratch(books_->books().cols)).bytes;
}

IcmRows IcmSearch::rows_of(int64_t count, std::byte* workspace) const {
  const Workspace layout(count, *this, 0);
  IcmRows rows;
  rows.count = count;
  rows.values = layout.values.in(workspace);
  if (form_ == SearchForm::products) rows.centred = layout.centred.in(workspace);
  if (form_ == SearchForm::tables) {
    rows.unary = layout.unary.in(workspace);
    rows.windows = layout.windows.in(workspace);
    rows.norms = layout.norms.in(workspace);
  }
  rows.numbers = layout.numbers.in(workspace);
  rows.fits = layout.fits.in(workspace);
  return rows;
}

IcmList IcmSearch::list_of(int64_t count, std::byte* workspace) const {
  if (form_ == SearchForm::direct) return {};
  uint32_t* const list = Workspace(count, *this, 0).list.in(workspace);
  return {list + 1, list};
}

void IcmSearch::prepare(const DeviceRowsView& rows, int64_t first, std::byte* workspace, cudaStream_t stream) const {
  const IcmRows prepared = rows_of(rows.count, workspace);
  launch_widen_rows(rows, books_->books().cols, prepared.values, stream);
  IcmGrid grid = grid_;
  grid.first_number = first;
  const IcmList list = list_of(rows.count, workspace);
  launch_prepare_icm_rows(books_->books(), grid, prepared, list, stream);
  if (tables_ != nullptr) launch_unary_tables(books_->books(), tables_->tables(), prepared, list, stream);
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
  run.schedule = schedule_.data() + (from - encoding_.search.from_round) * run.schedule_stride;
  const IcmBooks& books = books_->books();
  double* const scratch = Workspace(count, *this, 0).scratch.in(workspace);
  launch_icm_direct(books, rows, list_of(count, workspace), run, scratch, direct_blocks_, stream);
  if (form_ == SearchForm::products) launch_icm_products(books, rows, run, stream);
  if (tables_ != nullptr) launch_icm_tables(books, tables_->tables(), rows, run, multiprocessors_, stream);
}

}  // namespace kith
