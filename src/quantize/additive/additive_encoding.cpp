#include "quantize/additive/additive_encoding.hpp"

#include "core/divide.hpp"
#include "core/memory_budget.hpp"
#include "core/named_limit.hpp"
#include "core/parallel_for.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "quantize/additive/icm_tables.hpp"
#include "quantize/additive/pairwise_tables.hpp"
#include "transform/dense_product.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kMostBatchRows = 1024;
constexpr int64_t kLeastBatchRows = 64;
constexpr int64_t kProductScratch = int64_t{1} << 20;  // of a thread, in dense_product

int64_t block_bytes(const Codebooks& books) {
  return kIcmBlockRows * (array_bytes<float>(books.cols + 1) + array_bytes<int64_t>(1) + books.books);
}

// What one thread works with.
struct Worker {
  Worker(const SearchBooks& books, const LocalSearchPlan& plan, const PairwiseTables* tables, SearchForm form,
         const Resources& resources)
      : search(plan, books.books()),
        direct(make_direct_icm(books)),
        rows(kIcmBlockRows * books.books().cols, "a block of rows", resources),
        numbers(kIcmBlockRows, "a block of rows", resources),
        codes(kIcmBlockRows * books.books().books, "a block of codes", resources),
        costs(kIcmBlockRows, "a block of codes", resources) {
    if (form != SearchForm::direct) products = make_product_icm(books, resources);
    if (tables != nullptr) by_tables = std::make_unique<TableIcm>(books, *tables, resources);
  }

  LocalSearch search;
  std::unique_ptr<IcmEngine> direct;
  std::unique_ptr<IcmEngine> products;
  std::unique_ptr<TableIcm> by_tables;
  HostArray<float> rows;
  HostArray<int64_t> numbers;
  HostArray<uint8_t> codes;
  HostArray<float> costs;
};

class Encoder {
 public:
  Encoder(const Codebooks& given, const AdditiveEncoding& encoding, SearchForm form, int64_t batch_rows,
          const Resources& resources)
      : encoding_(encoding),
        resources_(resources),
        quiet_(resources.with_progress({})),
        search_(given, resources),
        books_(search_.books()),
        values_(batch_rows * books_.cols, "a batch of rows", resources),
        contents_(encoding.by_content ? batch_rows : 0, "a batch of rows", resources),
        fits_(static_cast<size_t>(batch_rows)) {
    if (form == SearchForm::tables) {
      tables_.emplace(search_, resources);
      moved_ = HostArray<float>(batch_rows * books_.cols, "a batch of rows", resources);
      norms_ = HostArray<double>(batch_rows, "a batch of rows", resources);
      products_ = HostArray<float>(batch_rows * books_.all_words(), "unary terms", resources);
    }
    for (int slot = 0; slot < resources.threads(); ++slot) {
      workers_.push_back(std::make_unique<Worker>(search_, encoding.search, tables_ ? &*tables_ : nullptr, form,
                                                  resources));
    }
  }

  // Rows of a batch, the first of which has a number.
  void run(const MatrixView& rows, int64_t first, uint8_t* codes, float* costs, ProgressMeter& meter) {
    const int64_t count = rows.rows();
    const int64_t block =
        std::clamp<int64_t>(divide_up(count, 4 * resources_.threads()), 1, kIcmBlockRows);
    parallel_for(divide_up(count, block), meter, resources_, [&](int64_t task, int) {
      for (int64_t i = task * block; i < std::min((task + 1) * block, count); ++i) bring(rows, i);
    });
    if (tables_) {
      const DenseView<const float> x{moved_.data(), count, books_.cols, books_.cols, 1};
      const DenseView<const float> c{tables_->moved_words(), books_.all_words(), books_.cols, books_.cols, 1};
      multiply(x, c.transposed(), {products_.data(), count, books_.all_words(), books_.all_words(), 1}, {}, quiet_);
    }
    parallel_for(divide_up(count, block), meter, resources_, [&](int64_t task, int slot) {
      const int64_t from = task * block;
      const int64_t some = std::min(block, count - from);
      search_block(*workers_[static_cast<size_t>(slot)], from, some, first, codes, costs);
      meter.add(some);
      meter.checkpoint();
    });
  }

 private:
  int64_t number_of(int64_t first, int64_t row) const { return encoding_.by_content ? contents_[row] : first + row; }

  // A row as the search takes it.
  void bring(const MatrixView& rows, int64_t i) {
    float* const row = values_.data() + i * books_.cols;
    widen_row(rows, i, row);
    if (encoding_.by_content) contents_[i] = content_number(row, books_.cols);
    const bool fits = search_.move_row(row);
    fits_[static_cast<size_t>(i)] = fits ? 1 : 0;
    if (!tables_) return;
    float* const moved = moved_.data() + i * books_.cols;
    for (int64_t c = 0; c < books_.cols; ++c) moved[c] = fits ? row[c] - tables_->origin()[c] : 0.0f;
    norms_[i] = std::sqrt(canonical_squared_norm_cpu(moved, books_.cols));
  }

  enum class Engine : uint8_t { tables, products, direct };

  // Which rows of a block an engine takes; those of tables are then in it.
  void choose_rows(Worker& worker, Engine engine, std::vector<int64_t>& left, std::vector<int64_t>& taken) const {
    taken.clear();
    if (engine == Engine::tables) worker.by_tables->start_block();
    size_t stay = 0;
    for (const int64_t i : left) {
      const bool fits = fits_[static_cast<size_t>(i)] != 0;
      bool takes = engine == Engine::direct || (fits && engine == Engine::products);
      if (fits && engine == Engine::tables) {
        takes = worker.by_tables->take(products_.data() + i * books_.all_words(), norms_[i]);
      }
      if (takes) {
        taken.push_back(i);
      } else {
        left[stay++] = i;
      }
    }
    left.resize(stay);
  }

  void search_block(Worker& worker, int64_t from, int64_t count, int64_t first, uint8_t* codes, float* costs) const {
    std::vector<int64_t> left(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) left[static_cast<size_t>(i)] = from + i;
    std::vector<int64_t> taken;
    for (const Engine engine : {Engine::tables, Engine::products, Engine::direct}) {
      if (engine == Engine::tables && !tables_) continue;
      if (engine == Engine::products && worker.products == nullptr) continue;
      choose_rows(worker, engine, left, taken);
      if (taken.empty()) continue;
      search_rows(worker,
                  engine == Engine::tables     ? *worker.by_tables
                  : engine == Engine::products ? *worker.products
                                               : *worker.direct,
                  taken, first, codes, costs);
    }
  }

  void search_rows(Worker& worker, IcmEngine& engine, const std::vector<int64_t>& taken, int64_t first, uint8_t* codes,
                   float* costs) const {
    const auto count = static_cast<int64_t>(taken.size());
    const int64_t books = books_.books;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = taken[static_cast<size_t>(i)];
      std::copy_n(values_.data() + row * books_.cols, books_.cols, worker.rows.data() + i * books_.cols);
      worker.numbers[i] = number_of(first, row);
      uint8_t* const start = worker.codes.data() + i * books;
      if (encoding_.start == CodeStart::given) std::copy_n(codes + row * books, books, start);
      if (encoding_.start == CodeStart::random) draw_codes(encoding_.search.seed, worker.numbers[i], books, books_.bits, start);
    }
    engine.load(worker.rows.data(), count);
    if (encoding_.start == CodeStart::greedy) worker.search.start_greedy(engine, count, worker.codes.data());
    worker.search.run(engine, worker.numbers.data(), count, worker.codes.data(), worker.costs.data());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = taken[static_cast<size_t>(i)];
      std::copy_n(worker.codes.data() + i * books, books, codes + row * books);
      if (costs != nullptr) costs[row] = worker.costs[i];
    }
  }

  const AdditiveEncoding encoding_;
  const Resources& resources_;
  const Resources quiet_;
  SearchBooks search_;
  const Codebooks& books_;
  HostArray<float> values_;
  HostArray<int64_t> contents_;  // hashes of rows
  std::vector<uint8_t> fits_;
  std::optional<PairwiseTables> tables_;
  HostArray<float> moved_;
  HostArray<double> norms_;
  HostArray<float> products_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

AdditiveEncoding codec_encoding(const CodeFormat& format) {
  LocalSearchParams params;
  params.codebooks = format.parts;
  params.bits = format.bits;
  AdditiveEncoding encoding;
  encoding.search = plan_of(params, format.effort, 0);
  encoding.by_content = true;
  return encoding;
}

int64_t additive_encoding_bytes(const Codebooks& books, SearchForm form, int64_t batch_rows, int threads) {
  int64_t bytes = array_bytes<float>(books.size() + books.books * books.cols + batch_rows * books.cols) +
                  array_bytes<double>(books.cols) + array_bytes<int64_t>(batch_rows);
  bytes += threads * (block_bytes(books) + (form == SearchForm::direct ? 0 : product_icm_bytes(books)));
  if (form == SearchForm::tables) {
    bytes += PairwiseTables::bytes_for(books) + threads * (TableIcm::bytes_for(books) + kProductScratch);
    bytes += batch_rows * (array_bytes<float>(books.cols + books.all_words()) + array_bytes<double>(1));
  }
  return bytes;
}

SearchForm choose_search_form(const Codebooks& books, const LocalSearchPlan& search, int64_t rows, int threads,
                              int64_t bytes) {
  // Multiply-adds: to make the tables, against those of the steps that they replace.
  const double making = static_cast<double>(books.all_words()) * static_cast<double>(books.all_words());
  const double steps = static_cast<double>(rows) * static_cast<double>(search.rounds * search.sweeps + 1) *
                       static_cast<double>(books.all_words());
  const bool pays = steps > 2 * making;
  const int64_t batch = std::min(rows, kLeastBatchRows);
  return pays && additive_encoding_bytes(books, SearchForm::tables, batch, threads) <= bytes ? SearchForm::tables
                                                                                            : SearchForm::products;
}

void encode_additive(const Codebooks& books, const AdditiveEncoding& encoding, const MatrixView& rows, uint8_t* codes,
                     float* costs, const Resources& resources) {
  if (rows.rows() == 0) return;
  const int64_t available = resources.host_memory()->available();
  SearchForm form = encoding.form;
  if (form == SearchForm::automatic) {
    form = choose_search_form(books, encoding.search, rows.rows(), resources.threads(), available);
  }
  const auto bytes = [&](int64_t batch) { return additive_encoding_bytes(books, form, batch, resources.threads()); };
  int64_t batch = std::min(rows.rows(), kMostBatchRows);
  while (batch > 1 && bytes(batch) > available) batch = divide_up(batch, 2);
  naming_host_limit([&] { return bytes(1); }, resources, [&] {
    Encoder encoder(books, encoding, form, batch, resources);
    ProgressMeter meter("encode", rows.rows(), resources);
    for (int64_t first = 0; first < rows.rows(); first += batch) {
      const int64_t count = std::min(batch, rows.rows() - first);
      encoder.run(rows.slice(first, count), encoding.first_row + first, codes + first * books.books,
                  costs == nullptr ? nullptr : costs + first, meter);
    }
    meter.finish();
  });
}

}  // namespace kith
