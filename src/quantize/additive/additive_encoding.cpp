#include "quantize/additive/additive_encoding.hpp"

#include "core/divide.hpp"
#include "core/memory_budget.hpp"
#include "core/parallel_for.hpp"
#include "core/within_limits.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "quantize/additive/icm_engine.hpp"
#include "quantize/additive/pairwise_tables.hpp"
#include "quantize/additive/unary_terms.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

namespace kith {
namespace {

// For tables: enough rows for the tables of a book, which all rows of a block use in turn, to stay in the second-level
// cache.
constexpr int64_t kMostBlockRows = 2048;
constexpr int64_t kMostBlockBytes = int64_t{1} << 28;  // of all threads' blocks
constexpr int64_t kFewBlockRows = 64;                  // by products
constexpr int64_t kLeastTableRows = 32;                // of a block, or the memory is better used otherwise
constexpr int64_t kSliceRows = UnaryTerms::kSliceRows;

int64_t most_block_rows(const Codebooks& books, SearchForm form, int threads) {
  if (form != SearchForm::tables) return kFewBlockRows;
  const int64_t of_row = array_bytes<float>(books.cols + 1) + array_bytes<int64_t>(3) + books.books +
                         array_bytes<int16_t>(books.books * PairwiseTables::width_for(books));
  return std::clamp(kMostBlockBytes / (threads * of_row), kFewBlockRows, kMostBlockRows);
}

// The working memory of one thread.
struct Worker {
  // `tables` and `terms`: only for the form `tables`.
  Worker(const SearchBooks& books, const LocalSearchPlan& plan, SearchForm form, int64_t block_rows,
         const std::optional<PairwiseTables>& tables, const std::optional<UnaryTerms>& terms,
         const Resources& resources)
      : search(plan, books.books(), block_rows, resources),
        direct(make_direct_icm(books)),
        rows(block_rows * books.books().cols, "a block of rows", resources),
        numbers(block_rows, "a block of rows", resources),
        places(block_rows, "a block of rows", resources),
        waiting(block_rows, "a block of rows", resources),
        codes(block_rows * books.books().books, "a block of codes", resources),
        costs(block_rows, "a block of codes", resources) {
    if (form != SearchForm::direct) products = make_product_icm(books, resources);
    if (!tables) return;
    by_tables = std::make_unique<TableIcm>(books, *tables, *terms, block_rows, resources);
    const int64_t slice = std::min(block_rows, kSliceRows);
    moved = HostArray<float>(slice * books.books().cols, "a slice of rows", resources);
    norms = HostArray<double>(slice, "a slice of rows", resources);
    fits = HostArray<uint8_t>(slice, "a slice of rows", resources);
  }

  LocalSearch search;
  std::unique_ptr<IcmEngine> direct;
  std::unique_ptr<IcmEngine> products;
  std::unique_ptr<TableIcm> by_tables;
  HostArray<float> rows;
  HostArray<int64_t> numbers;
  HostArray<int64_t> places;   // of the rows, in what is encoded
  HostArray<int64_t> waiting;  // places of the rows that no engine has taken
  HostArray<uint8_t> codes;
  HostArray<float> costs;
  // For a slice.
  HostArray<float> moved;
  HostArray<double> norms;
  HostArray<uint8_t> fits;
};

class Encoder {
 public:
  Encoder(const Codebooks& given, const AdditiveEncoding& encoding, SearchForm form, int64_t block_rows,
          const Resources& resources)
      : encoding_(encoding),
        block_rows_(block_rows),
        resources_(resources),
        search_(given, resources),
        books_(search_.books()) {
    if (form == SearchForm::tables) {
      tables_.emplace(search_, resources);
      terms_.emplace(books_, *tables_, resources);
    }
    for (int slot = 0; slot < resources.threads(); ++slot) {
      workers_.push_back(
          std::make_unique<Worker>(search_, encoding.search, form, block_rows, tables_, terms_, resources));
    }
  }

  void run(const MatrixView& rows, uint8_t* codes, float* costs) {
    given_ = rows;
    codes_ = codes;
    costs_ = costs;
    ProgressMeter meter("encode", given_.rows(), resources_);
    parallel_for(divide_up(given_.rows(), block_rows_), meter, resources_, [&](int64_t task, int slot) {
      const int64_t first = task * block_rows_;
      search_block(*workers_[static_cast<size_t>(slot)], first, std::min(block_rows_, given_.rows() - first), meter);
    });
    meter.finish();
  }

 private:
  // Moves and rounds a row to a place of the worker's block. False if the grid cannot hold it.
  bool bring(Worker& worker, int64_t place, int64_t at) const {
    float* const row = worker.rows.data() + at * books_.cols;
    widen_row(given_, place, row);
    worker.places[at] = place;
    worker.numbers[at] = encoding_.by_content ? content_number(row, books_.cols) : encoding_.first_row + place;
    return search_.move_row(row);
  }

  static void move(Worker& worker, int64_t cols, int64_t from, int64_t to) {
    if (from == to) return;
    std::copy_n(worker.rows.data() + from * cols, cols, worker.rows.data() + to * cols);
    worker.places[to] = worker.places[from];
    worker.numbers[to] = worker.numbers[from];
  }

  void search_block(Worker& worker, int64_t first, int64_t count, ProgressMeter& meter) const {
    int64_t waiting = count;
    if (tables_) {
      waiting = 0;
      const int64_t taken = take_by_tables(worker, first, count, waiting);
      search_rows(worker, *worker.by_tables, taken, meter);
    } else {
      std::iota(worker.waiting.begin(), worker.waiting.begin() + count, first);
    }
    for (IcmEngine* const engine : {worker.products.get(), worker.direct.get()}) {
      if (engine == nullptr) continue;
      int64_t taken = 0;
      int64_t stay = 0;
      for (int64_t i = 0; i < waiting; ++i) {
        const bool fits = bring(worker, worker.waiting[i], taken);
        if (fits || engine == worker.direct.get()) {
          ++taken;
        } else {
          worker.waiting[stay++] = worker.waiting[i];
        }
      }
      waiting = stay;
      search_rows(worker, *engine, taken, meter);
    }
  }

  // Loads the rows that tables can serve into the worker's engine and block, and appends the places of the others to
  // the worker's `waiting`, which the last argument counts.
  int64_t take_by_tables(Worker& worker, int64_t first, int64_t count, int64_t& waiting) const {
    int64_t taken = 0;
    worker.by_tables->start_block();
    for (int64_t from = 0; from < count; from += kSliceRows) {
      const int64_t some = std::min(kSliceRows, count - from);
      const int64_t base = taken;
      for (int64_t i = 0; i < some; ++i) {
        const bool fits = bring(worker, first + from + i, base + i);
        worker.fits[i] = fits ? 1 : 0;
        const float* const row = worker.rows.data() + (base + i) * books_.cols;
        float* const moved = worker.moved.data() + i * books_.cols;
        for (int64_t c = 0; c < books_.cols; ++c) moved[c] = fits ? row[c] - tables_->origin()[c] : 0.0f;
        worker.norms[i] = std::sqrt(canonical_squared_norm_cpu(moved, books_.cols));
      }
      worker.by_tables->take(worker.moved.data(), worker.norms.data(), some, worker.fits.data());
      for (int64_t i = 0; i < some; ++i) {
        if (worker.fits[i] != 0) {
          move(worker, books_.cols, base + i, taken++);
        } else {
          worker.waiting[waiting++] = worker.places[base + i];
        }
      }
    }
    return taken;
  }

  // Searches the first `count` rows of the worker's block.
  void search_rows(Worker& worker, IcmEngine& engine, int64_t count, ProgressMeter& meter) const {
    if (count == 0) return;
    const int64_t books = books_.books;
    for (int64_t i = 0; i < count; ++i) {
      uint8_t* const start = worker.codes.data() + i * books;
      if (encoding_.start == CodeStart::given) std::copy_n(codes_ + worker.places[i] * books, books, start);
      if (encoding_.start == CodeStart::random) {
        draw_codes(encoding_.search.seed, worker.numbers[i], books, books_.bits, start);
      }
    }
    engine.load(worker.rows.data());
    if (encoding_.start == CodeStart::greedy) worker.search.start_greedy(engine, count, worker.codes.data());
    int64_t told = 0;
    const auto tell = [&](int64_t rounds) {
      const int64_t done = count * rounds / (encoding_.search.rounds + 1);
      meter.add(done - told);
      told = done;
      meter.checkpoint();
    };
    tell(0);
    worker.search.run(engine, worker.numbers.data(), count, worker.codes.data(), worker.costs.data(), tell);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = worker.places[i];
      std::copy_n(worker.codes.data() + i * books, books, codes_ + place * books);
      if (costs_ != nullptr) costs_[place] = worker.costs[i];
    }
    meter.add(count - told);
  }

  const AdditiveEncoding encoding_;
  const int64_t block_rows_;
  MatrixView given_;
  uint8_t* codes_ = nullptr;
  float* costs_ = nullptr;
  const Resources& resources_;
  SearchBooks search_;
  const Codebooks& books_;
  std::optional<PairwiseTables> tables_;
  std::optional<UnaryTerms> terms_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

Footprint additive_encoding_footprint(const Codebooks& books, SearchForm form, int64_t block_rows,
                                      const Resources& resources) {
  return footprint_of<Encoder>(resources, books, AdditiveEncoding(), form, block_rows);
}

namespace {

bool fits(const Codebooks& books, SearchForm form, int64_t block_rows, const Resources& resources) {
  return !counts_memory(resources) ||
         additive_encoding_footprint(books, form, block_rows, resources).host <= resources.host_memory()->available();
}

}  // namespace

SearchForm choose_search_form(const Codebooks& books, const LocalSearchPlan& search, int64_t rows,
                              const Resources& resources) {
  // Multiply-adds: to make the tables, against those of the steps that they replace.
  const double making = static_cast<double>(books.all_words()) * static_cast<double>(books.all_words());
  const double steps = static_cast<double>(rows) * static_cast<double>(search.rounds * search.sweeps + 1) *
                       static_cast<double>(books.all_words());
  if (steps <= 2 * making) return SearchForm::products;
  const int64_t block = std::min(rows, kLeastTableRows);
  return fits(books, SearchForm::tables, block, resources) ? SearchForm::tables : SearchForm::products;
}

void encode_additive(const Codebooks& books, const AdditiveEncoding& encoding, const MatrixView& rows, uint8_t* codes,
                     float* costs, const Resources& resources) {
  if (rows.rows() == 0) return;
  const int threads = resources.threads();
  SearchForm form = encoding.form;
  if (form == SearchForm::automatic) form = choose_search_form(books, encoding.search, rows.rows(), resources);
  // As many blocks for each thread.
  const int64_t most = encoding.block_rows > 0 ? encoding.block_rows : most_block_rows(books, form, threads);
  int64_t block = divide_up(rows.rows(), divide_up(rows.rows(), most * threads) * threads);
  while (block > 1 && !fits(books, form, block, resources)) block = divide_up(block, 2);
  Encoder(books, encoding, form, block, resources).run(rows, codes, costs);
}

}  // namespace kith
