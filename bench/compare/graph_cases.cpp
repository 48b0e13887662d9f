// k-NN graphs by each method, merged, extended, refined and read.
#include "compare/cases.hpp"

namespace {

using kith::DType;
using kith::GraphMethod;

constexpr int64_t kNeighbors = 15;

struct Graph {
  GraphMethod method = GraphMethod::exact;
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::f32;
};

void add_graph(const Machine& machine, const Graph& graph, std::vector<Case>& cases) {
  const std::string name = std::string(kith::name_of(graph.method)) + " " + std::string(kith::name_of(graph.dtype)) +
                           " " + std::to_string(graph.rows) + "x" + std::to_string(graph.cols);
  cases.push_back({"graphs", name, [&machine, graph] {
                     const Rows rows = machine.rows(graph.dtype, graph.rows, graph.cols);
                     const auto out = machine.found(graph.rows, kNeighbors);
                     return [=, &machine] {
                       const kith::KnnGraphParams params{.k = kNeighbors, .method = graph.method, .recall = 0.95};
                       kith::knn_graph(rows->view(), out->view(), params, machine.resources());
                     };
                   }});
}

// Graphs of two parts of the same rows, made once for a case.
struct Parts {
  Rows rows;
  kith::MatrixView one;
  kith::MatrixView two;
  kith::KnnGraph graph_one;
  kith::KnnGraph graph_two;

  Parts(const Machine& machine, int64_t all, int64_t first) : rows(machine.rows(DType::f32, all, 32)) {
    one = rows->view().slice(0, first);
    two = rows->view().slice(first, all - first);
    const kith::KnnGraphParams params{.k = kNeighbors, .method = GraphMethod::exact};
    graph_one = kith::knn_graph(one, params, machine.resources());
    graph_two = kith::knn_graph(two, params, machine.resources());
  }
};

void add_joined(const Machine& machine, std::vector<Case>& cases) {
  const int64_t all = machine.size(8'000, 100'000);
  const kith::GraphMergeParams params{.recall = 0.95};
  const std::string shape = " " + std::to_string(all) + "x32";
  cases.push_back({"graphs", "merge" + shape, [=, &machine] {
                     const auto parts = std::make_shared<Parts>(machine, all, all / 2);
                     return [=, &machine] {
                       kith::merge_graphs(parts->graph_one, parts->one, parts->graph_two, parts->two, params,
                                          machine.resources());
                     };
                   }});
  cases.push_back({"graphs", "extend" + shape, [=, &machine] {
                     const auto parts = std::make_shared<Parts>(machine, all, all - all / 50);
                     return [=, &machine] {
                       kith::extend_graph(parts->graph_one, parts->one, parts->two, params, machine.resources());
                     };
                   }});
  cases.push_back({"graphs", "symmetric" + shape, [=, &machine] {
                     const Rows rows = machine.rows(DType::f32, all, 32);
                     const kith::KnnGraphParams exact{.k = kNeighbors, .method = GraphMethod::exact};
                     const kith::KnnGraph graph = kith::knn_graph(rows->view(), exact, machine.resources());
                     return [=, &machine] { graph.symmetric(machine.resources()); };
                   }});
}

void add_of_index(const Machine& machine, std::vector<Case>& cases) {
  const int64_t all = machine.size(10'000, 200'000);
  cases.push_back({"graphs", "of an index " + std::to_string(all) + "x32", [=, &machine] {
                     const Rows rows = machine.rows(DType::f32, all, 32);
                     kith::Index index(machine.cuda() ? "IVF512,SQ8" : "IVF64,SQ8");
                     index.train(rows->view(), machine.resources());
                     index.add(rows->view(), kith::Ownership::copy, machine.resources());
                     return [=, &machine] {
                       kith::knn_graph(index, rows->view(), {.k = kNeighbors, .probes = 4}, machine.resources());
                     };
                   }});
}

}  // namespace

void add_graph_cases(const Machine& machine, std::vector<Case>& cases) {
  add_graph(machine, {GraphMethod::exact, machine.size(8'000, 100'000), 32}, cases);
  add_graph(machine, {GraphMethod::exact, machine.size(8'000, 100'000), 128, DType::u8}, cases);
  add_graph(machine, {GraphMethod::cells, machine.size(20'000, 500'000), 32}, cases);
  add_graph(machine, {GraphMethod::cells, machine.size(10'000, 500'000), 128}, cases);
  add_graph(machine, {GraphMethod::nn_descent, machine.size(10'000, 500'000), 32}, cases);
  add_graph(machine, {GraphMethod::nn_descent, machine.size(5'000, 500'000), 128}, cases);
  add_joined(machine, cases);
  add_of_index(machine, cases);
}
