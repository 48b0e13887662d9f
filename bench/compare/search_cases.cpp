// Exact search, selection (few columns and many neighbours, so that choosing takes most of the time) and lists.
#include "compare/cases.hpp"

#include <optional>

namespace {

using kith::DType;
using kith::Metric;

struct Search {
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t queries = 0;
  int64_t k = 10;
  Metric metric = Metric::l2;

  std::string name() const {
    return std::string(kith::name_of(dtype)) + " " + std::to_string(rows) + "x" + std::to_string(cols) + " q" +
           std::to_string(queries) + " k" + std::to_string(k) + " " + std::string(kith::name_of(metric));
  }
};

void add_knn(const Machine& machine, const std::string& table, const Search& shape, std::vector<Case>& cases) {
  cases.push_back({table, "knn " + shape.name(), [&machine, shape] {
                     const Rows base = machine.rows(shape.dtype, shape.rows, shape.cols);
                     const Rows queries = machine.rows(shape.dtype, shape.queries, shape.cols, 2);
                     const auto out = machine.found(shape.queries, shape.k);
                     return [=, &machine] {
                       const kith::KnnParams params{.k = shape.k, .metric = shape.metric};
                       kith::knn(queries->view(), base->view(), out->view(), params, machine.resources());
                     };
                   }});
}

void add_flat(const Machine& machine, const Search& shape, std::vector<Case>& cases) {
  cases.push_back({"exact", "index " + shape.name(), [&machine, shape] {
                     const Rows base = machine.rows(shape.dtype, shape.rows, shape.cols);
                     const Rows queries = machine.rows(shape.dtype, shape.queries, shape.cols, 2);
                     const auto out = machine.found(shape.queries, shape.k);
                     kith::Index index("Flat", {.metric = shape.metric});
                     index.add(base->view(), kith::Ownership::copy, machine.resources());
                     return [=, &machine] {
                       index.search(queries->view(), out->view(), {.k = shape.k}, machine.resources());
                     };
                   }});
}

void add_filtered(const Machine& machine, const Search& shape, std::vector<Case>& cases) {
  cases.push_back({"exact", "half of the rows " + shape.name(), [&machine, shape] {
                     const Rows base = machine.rows(shape.dtype, shape.rows, shape.cols);
                     const Rows queries = machine.rows(shape.dtype, shape.queries, shape.cols, 2);
                     const auto out = machine.found(shape.queries, shape.k);
                     std::vector<uint8_t> mask(static_cast<size_t>(shape.rows));
                     for (size_t row = 0; row < mask.size(); ++row) mask[row] = row * 2654435761 >> 20 & 1;
                     return [=, &machine] {
                       const auto filter = kith::RowFilter::mask(mask.data(), shape.rows);
                       const kith::KnnParams params{.k = shape.k, .metric = shape.metric, .filter = filter};
                       kith::knn(queries->view(), base->view(), out->view(), params, machine.resources());
                     };
                   }});
}

void add_range(const Machine& machine, const Search& shape, std::vector<Case>& cases) {
  cases.push_back({"exact", "range " + shape.name(), [&machine, shape] {
                     const Rows base = machine.rows(shape.dtype, shape.rows, shape.cols);
                     const Rows queries = machine.rows(shape.dtype, shape.queries, shape.cols, 2);
                     const kith::Neighbors near = kith::knn(
                         queries->view(), base->view(), {.k = shape.k, .metric = shape.metric}, machine.resources());
                     const float radius = near.distances(0)[shape.k - 1];
                     return [=, &machine] {
                       const kith::RangeParams params{.radius = radius, .metric = shape.metric};
                       kith::range_search(queries->view(), base->view(), params, machine.resources());
                     };
                   }});
}

void add_exact(const Machine& machine, std::vector<Case>& cases) {
  const int64_t rows = machine.size(50'000, 1'000'000);
  const int64_t few = machine.size(20'000, 200'000);
  const int64_t many = machine.size(500, 10'000);
  for (const int64_t queries : {int64_t{1}, int64_t{10}, many}) {
    add_knn(machine, "exact", {DType::f32, rows, 128, queries}, cases);
    add_flat(machine, {DType::f32, rows, 128, queries}, cases);
    add_knn(machine, "exact", {DType::u8, rows, 128, queries}, cases);
  }
  add_flat(machine, {DType::u8, rows, 128, many}, cases);
  for (const int64_t k : {1, 100}) add_knn(machine, "exact", {DType::f32, rows, 128, many, k}, cases);
  add_knn(machine, "exact", {DType::f16, rows, 96, many}, cases);
  add_knn(machine, "exact", {DType::f16, rows, 96, 1}, cases);
  add_knn(machine, "exact", {DType::f32, rows, 16, many}, cases);
  add_knn(machine, "exact", {DType::f32, few, 784, many / 2}, cases);
  add_knn(machine, "exact", {DType::f32, few, 784, 1}, cases);
  for (const Metric metric : {Metric::inner_product, Metric::cosine, Metric::l1, Metric::chi_square}) {
    add_knn(machine, "exact", {DType::f32, few, 64, many / 5, 10, metric}, cases);
  }
  add_knn(machine, "exact", {DType::u8, few, 64, many / 5, 10, Metric::hamming}, cases);
  add_filtered(machine, {DType::f32, rows, 128, many / 5}, cases);
  add_range(machine, {DType::f32, rows, 32, many / 5, 50}, cases);
}

void add_selection(const Machine& machine, std::vector<Case>& cases) {
  const int64_t rows = machine.size(100'000, 1'000'000);
  const int64_t queries = machine.size(50, 1'000);
  for (const int64_t k : {1, 32, 100, 1000}) add_knn(machine, "selection", {DType::f32, rows, 2, queries, k}, cases);
  add_knn(machine, "selection", {DType::f32, rows, 2, 1, 100}, cases);
  add_knn(machine, "selection", {DType::u8, rows, 4, queries, 100}, cases);
  add_knn(machine, "selection", {DType::f32, machine.size(2'000, 10'000), 2, machine.size(2'000, 100'000), 50}, cases);
}

// Lists: trained and filled once for all cases of a kind.
constexpr int64_t kListCols = 64;

class ListIndex {
 public:
  ListIndex(const Machine& machine, std::string factory) : machine_(machine), factory_(std::move(factory)) {}

  kith::Index trained() {
    if (!trained_) {
      trained_.emplace(factory_);
      const int64_t rows = machine_.size(10'000, 200'000);
      trained_->train(machine_.rows(DType::f32, rows, kListCols, 3)->view(), machine_.resources());
    }
    return trained_->to(machine_.resources().device(), machine_.resources());
  }
  kith::Index filled() {
    if (!filled_) {
      filled_.emplace(trained());
      const int64_t rows = machine_.size(50'000, 1'000'000);
      filled_->add(machine_.rows(DType::f32, rows, kListCols)->view(), kith::Ownership::copy, machine_.resources());
    }
    return filled_->to(machine_.resources().device(), machine_.resources());
  }

 private:
  const Machine& machine_;
  std::string factory_;
  std::optional<kith::Index> trained_;
  std::optional<kith::Index> filled_;
};

void add_list_searches(const Machine& machine, const std::string& factory, const std::shared_ptr<ListIndex>& lists,
                       std::vector<Case>& cases) {
  for (const int64_t queries : {int64_t{1}, int64_t{100}, machine.size(1'000, 10'000)}) {
    cases.push_back({"lists", factory + " search q" + std::to_string(queries), [=, &machine] {
                       const Rows asked = machine.rows(DType::f32, queries, kListCols, 2);
                       const auto out = machine.found(queries, 10);
                       const kith::Index index = lists->filled();
                       return [=, &machine] {
                         index.search(asked->view(), out->view(), {.k = 10, .probes = 8}, machine.resources());
                       };
                     }});
  }
}

void add_lists(const Machine& machine, std::vector<Case>& cases) {
  const std::string lists_part = machine.cuda() ? "IVF1024," : "IVF128,";
  for (const std::string code : {"Flat", "SQ8", "PQ16", "PQ16x4", "PQ16,RFlat", "RQ4x6"}) {
    const std::string factory = lists_part + code;
    const auto lists = std::make_shared<ListIndex>(machine, factory);
    add_list_searches(machine, factory, lists, cases);
    cases.push_back({"lists", factory + " add", [=, &machine] {
                       const Rows rows = machine.rows(DType::f32, machine.size(10'000, 200'000), kListCols, 4);
                       lists->trained();
                       return [=, &machine] {
                         kith::Index index = lists->trained();
                         index.add(rows->view(), kith::Ownership::copy, machine.resources());
                       };
                     }});
  }
  const auto removed = [&](const std::string& factory) {
    const auto lists = std::make_shared<ListIndex>(machine, factory);
    cases.push_back({"lists", factory + " remove 100", [=, &machine] {
                       lists->filled();
                       return [=, &machine] {
                         std::vector<int64_t> ids(100);
                         for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i) * 317;
                         kith::Index index = lists->filled();
                         index.remove({ids.data(), 100, {}}, machine.resources());
                       };
                     }});
  };
  removed("Flat");
  removed(lists_part + "SQ8");
}

}  // namespace

void add_search_cases(const Machine& machine, std::vector<Case>& cases) {
  add_exact(machine, cases);
  add_selection(machine, cases);
  add_lists(machine, cases);
}
