#include "quantize/additive/icm_search_cuda.hpp"

#include <kith/error.hpp>

#include "core/half.hpp"
#include "core/memory_budget.hpp"
#include "core/within_limits.hpp"
#include "cuda/workspace_layout.hpp"
#include "kernels/codes/code_kernels_cuda.hpp"
#include "kernels/matrix/candidate_window.hpp"
#include "kernels/matrix/product_plan.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

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
  const int major = attribute(cudaDevAttrComputeCapabilityMajor);
  return product_engine(10 * major + attribute(cudaDevAttrComputeCapabilityMinor)) == ProductEngine::wgmma;
}

struct TableLayout : WorkspaceLayout {
  explicit TableLayout(const Codebooks& books) {
    pairs = take<int16_t>(books.books * books.all_words(), PairwiseTables::width_for(books));
    moved = take<float>(books.size());
    squares = take<float>(books.all_words());
    origin = take<float>(books.cols);
    scales = take<TableScale>(books.books);
  }

  Slot<int16_t> pairs;
  Slot<float> moved, squares, origin;
  Slot<TableScale> scales;
};

// Whether tables pay off: the host makes them at some 10^11 multiply-adds a second, the direct search on the device
// does 10^13. `spare`: free device memory.
bool tables_pay(const SearchBooks& search, const LocalSearchPlan& plan, int64_t rows, int64_t spare,
                const Resources& resources) {
  const Codebooks& books = search.books();
  constexpr double kSlower = 150;
  const double steps = static_cast<double>(rows) * static_cast<double>(plan.rounds * plan.sweeps + 1);
  return steps > kSlower * static_cast<double>(books.all_words()) &&
         footprint_of<PairwiseTables>(resources, search).host <= resources.host_memory()->available() / 2 &&
         TableLayout(books).bytes <= spare / 4;
}

// Makes tables on the host and copies them to a buffer on the device; waits.
IcmTables bring_tables(const SearchBooks& search, const std::shared_ptr<const DeviceContext>& context,
                       const Resources& resources, DeviceBuffer& buffer) {
  const Codebooks& books = search.books();
  const PairwiseTables made(search, resources);
  const TableLayout layout(books);
  buffer = DeviceBuffer(layout.bytes, "tables of codewords", context, resources);
  std::vector<TableScale> scales;
  for (int64_t k = 0; k < books.books; ++k) scales.push_back(made.scale(k));
  const auto bring = [&]<typename T>(const Slot<T>& slot, const T* from) {
    context->copy_values(slot.in(buffer.data()), from, slot.count);
    return slot.in(buffer.data());
  };
  IcmTables tables;
  tables.pairs = bring(layout.pairs, made.row(0, 0, 0));
  tables.moved = bring(layout.moved, made.moved_words());
  tables.squares = bring(layout.squares, made.squared_norms());
  tables.origin = bring(layout.origin, made.origin());
  tables.scales = bring(layout.scales, scales.data());
  context->synchronize();
  tables.width = made.width();
  tables.norms = made.norms();
  return tables;
}

// The steps of each round, or of one round if all are alike.
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
    residuals = take<float>(products ? product_residuals(books.cols, rows) : 0);
    numbers = take<int64_t>(rows);
    fits = take<uint8_t>(rows);
    unary = take<int16_t>(tables ? rows : 0, tables ? books.books * search.tables_.width : 0);
    windows = take<int16_t>(tables ? rows : 0, books.books);
    norms = take<double>(tables ? rows : 0);
    list = take<uint32_t>(search.form_ == SearchForm::direct ? 0 : rows + 1);
    scratch = take<double>(scratch_values);
  }

  Slot<float> values, centred, residuals;
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
  // Which values allow products is not known where memory is only counted: they are then taken to, which needs more.
  const bool products = has_icm_products(search) && has_wgmma();
  if (form_ == SearchForm::automatic) form_ = products ? SearchForm::products : SearchForm::direct;
  if (form_ == SearchForm::products && !products) {
    throw Unsupported(
        "local search by products on a GPU needs compute capability 9.0, rows of up to 4,096 columns and "
        "up to 64 codebooks");
  }
  books_ = std::make_unique<IcmBooksOnDevice>(search, form_ == SearchForm::products, context, resources);
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
  if (encoding.form == SearchForm::automatic && form_ == SearchForm::direct) {
    // A quarter: the rest has room for what a row takes more by tables.
    const int64_t left = resources.device_memory()->available() - workspace_bytes(1);
    const int64_t spare = std::min(left, SpareDeviceMemory::of(resources));
    if (tables_pay(search, encoding.search, rows, spare, resources)) form_ = SearchForm::tables;
  }
  if (form_ == SearchForm::tables) tables_ = bring_tables(search, context, resources, table_buffer_);
}

int64_t IcmSearch::bytes() const { return books_->bytes() + schedule_.bytes() + table_buffer_.bytes(); }

int64_t IcmSearch::workspace_bytes(int64_t rows) const {
  return Workspace(rows, *this, direct_blocks_ * icm_direct_scratch(books_->books().cols)).bytes;
}

IcmRows IcmSearch::rows_of(int64_t count, std::byte* workspace) const {
  const Workspace layout(count, *this, 0);
  IcmRows rows;
  rows.count = count;
  rows.values = layout.values.in(workspace);
  if (form_ == SearchForm::products) {
    rows.centred = layout.centred.in(workspace);
    rows.residuals = layout.residuals.in(workspace);
  }
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
  if (form_ == SearchForm::tables) launch_unary_tables(books_->books(), tables_, prepared, list, stream);
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
  if (form_ == SearchForm::tables) launch_icm_tables(books, tables_, rows, run, multiprocessors_, stream);
}

namespace {

constexpr int kScaledStep = -9;  // the exponent of a grid's step once it is scaled

struct BookLayout : WorkspaceLayout {
  BookLayout(const Codebooks& books, bool products) {
    const int64_t padded = products ? product_cols(books.cols) : 0;
    const int64_t words = products ? books.books * kProductWords : 0;
    plain = take<float>(books.size());
    columns = take<float>(books.size());
    means = take<float>(books.books, books.cols);
    origin = take<double>(books.cols);
    centred = take<float>(words, padded);
    tiles = take<std::byte>(words * padded, sizeof(Half));
    terms = take<float>(words);
    windows = take<BookWindow>(products ? books.books : 0);
    centre = take<float>(padded);
    squares = take<double>(products ? 2 * books.books : 0);
  }

  Slot<float> plain, columns, means;
  Slot<double> origin;
  Slot<float> centred;
  Slot<std::byte> tiles;
  Slot<float> terms;
  Slot<BookWindow> windows;
  Slot<float> centre;
  Slot<double> squares;
};

}  // namespace

bool has_icm_products(const SearchBooks& search) {
  const Codebooks& books = search.books();
  const int exponent =
      std::ilogb(search.grid().step()) + 22;  // codewords' sums are below 2^exponent, rows below twice that
  return books.cols <= kProductMostCols && books.books <= kProductMostBooks && search.grid().holds(0.0) &&
         exponent > -50 && exponent < 50;
}

IcmBooksOnDevice::IcmBooksOnDevice(const SearchBooks& search, bool products,
                                   const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
  const Codebooks& books = search.books();
  const BookLayout layout(books, products);
  buffer_ = DeviceBuffer(layout.bytes, "codebooks", context, resources);
  std::byte* const there = buffer_.data();
  context->copy_values(layout.plain.in(there), books.values, books.size());
  context->copy_values(layout.means.in(there), search.mean(0), books.books * books.cols);
  context->copy_values(layout.origin.in(there), search.origin(), books.cols);
  books_.books = books.books;
  books_.bits = books.bits;
  books_.cols = books.cols;
  books_.words = layout.plain.in(there);
  books_.columns = layout.columns.in(there);
  books_.means = layout.means.in(there);
  books_.origin = layout.origin.in(there);
  launch_book_columns(books_, layout.columns.in(there), context->stream());
  if (products) {
    context->fill(there + layout.centred.offset, 0, layout.bytes - layout.centred.offset);
    ProductBooks made;
    made.centred = layout.centred.in(there);
    made.tiles = layout.tiles.in(there);
    made.terms = layout.terms.in(there);
    made.windows = layout.windows.in(there);
    made.centre = layout.centre.in(there);
    made.squares = layout.squares.in(there);
    made.scale = std::ldexp(1.0, kScaledStep) / search.grid().step();
    launch_product_books(books_, made, context->stream());
    books_.centred = made.centred;
    books_.tiles = made.tiles;
    books_.terms = made.terms;
    books_.windows = made.windows;
    books_.centre = made.centre;
    books_.scale = static_cast<float>(made.scale);
    books_.unscale = 1 / (made.scale * made.scale);
    books_.tiny = static_cast<float>(2 * kTinyKey * made.scale * made.scale);
  }
  context->synchronize();
}

}  // namespace kith
