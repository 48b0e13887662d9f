#include "index/golden_recipes.hpp"

#include <kith/kith.hpp>

#include "index/golden_data.hpp"
#include "index/index_access.hpp"
#include "reference/taken_params.hpp"

#include <cctype>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace kith::testing {

namespace {

constexpr int64_t kTrainRows = 320;
constexpr int64_t kFirstRows = 30;
constexpr int64_t kAllRows = 50;
constexpr int64_t kQueries = 3;
constexpr int64_t kFirstQuery = 1000;  // behind all rows

const Resources& cpu() {
  static const Resources one([] {
    ResourceOptions options;
    options.device = Device::cpu();
    options.threads = 1;
    return options;
  }());
  return one;
}

// Answers as lines of text; 9 digits tell every float apart.
class Answers {
 public:
  void add(std::string_view question, const Neighbors& found) {
    for (int64_t q = 0; q < found.queries(); ++q) add_row(question, q, found.ids(q), found.distances(q), found.k());
  }
  void add(std::string_view question, const RangeNeighbors& found) {
    const RangeView view = found.view();
    for (int64_t q = 0; q < view.queries; ++q) {
      const int64_t first = view.offsets[q];
      add_row(question, q, view.ids + first, view.distances + first, view.offsets[q + 1] - first);
    }
  }
  void add(std::string_view question, const float* values, int64_t count) {
    text_ += std::string(question) + ":";
    for (int64_t i = 0; i < count; ++i) text_ += " " + number(values[i]);
    text_ += "\n";
  }
  void add(std::string_view question, const std::string& answer) {
    text_ += std::string(question) + ": " + answer + "\n";
  }

  const std::string& text() const { return text_; }

 private:
  static std::string number(float value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
    return text;
  }
  void add_row(std::string_view question, int64_t query, const int64_t* ids, const float* distances, int64_t count) {
    text_ += std::string(question) + " " + std::to_string(query) + ":";
    for (int64_t i = 0; i < count; ++i) text_ += " " + std::to_string(ids[i]) + "@" + number(distances[i]);
    text_ += "\n";
  }

  std::string text_;
};

// How vectors came into an index.
enum class History : uint8_t { once, ids, removed, merged };
constexpr History kHistories[] = {History::once, History::ids, History::removed, History::merged};
constexpr std::string_view kHistoryNames[] = {"once", "ids", "removed", "merged"};

struct IndexRecipe {
  std::string factory;
  IndexParams params;
  DType dtype = DType::f32;
  History history = History::once;

  bool trains() const { return factory != "Flat"; }
  GoldenRows rows(int64_t first, int64_t count) const {
    return {dtype, params.metric == Metric::chi_square, first, count};
  }
};

Index trained_index(const IndexRecipe& recipe) {
  Index index(recipe.factory, recipe.params);
  if (recipe.trains()) index.train(recipe.rows(0, kTrainRows).view(), cpu());
  return index;
}

// LSQ trains for a while: indexes that differ in their history alone share it.
Index fresh_index(const IndexRecipe& recipe) {
  if (!recipe.trains()) return trained_index(recipe);
  static std::map<std::string, Index> trained;
  const IndexParams& params = recipe.params;
  const std::string key = recipe.factory + " " + std::string(name_of(params.metric)) + " " +
                          std::string(name_of(recipe.dtype)) + " " + std::to_string(params.seed);
  const auto found = trained.find(key);
  const Index& index =
      found != trained.end() ? found->second : trained.emplace(key, trained_index(recipe)).first->second;
  return index.to(Device::automatic(), cpu());
}

Index make_index(const IndexRecipe& recipe) {
  Index index = fresh_index(recipe);
  const GoldenRows all = recipe.rows(0, kAllRows);
  const MatrixView first = all.view().slice(0, kFirstRows);
  const MatrixView second = all.view().slice(kFirstRows, kAllRows - kFirstRows);
  std::vector<int64_t> ids(kAllRows);
  for (int64_t row = 0; row < kAllRows; ++row) ids[static_cast<size_t>(row)] = 7 + (row * 37) % kAllRows * 1000003;
  switch (recipe.history) {
    case History::once: index.add(all.view(), Ownership::copy, cpu()); break;
    case History::ids:
      index.add(first, {ids.data(), kFirstRows, {}}, Ownership::copy, cpu());
      index.add(second, {ids.data() + kFirstRows, kAllRows - kFirstRows, {}}, Ownership::copy, cpu());
      break;
    case History::removed: {
      index.add(first, Ownership::copy, cpu());
      index.add(second, Ownership::copy, cpu());
      const int64_t gone[] = {0, 3, 10, 11, 12, 13, 29, 30, 31, 49, 77};
      index.remove({gone, std::size(gone), {}}, cpu());
      index.add(first.slice(3, 2), Ownership::copy, cpu());
      break;
    }
    case History::merged: {
      Index other = fresh_index(recipe);
      index.add(first, Ownership::copy, cpu());
      other.add(second, Ownership::copy, cpu());
      index.merge(other, {.shift_ids = true}, cpu());
      break;
    }
  }
  return index;
}

std::string index_answers(const Index& index, const MatrixView& queries) {
  Answers answers;
  const IndexInfo info = index.info();
  answers.add("index", info.factory + " " + std::string(name_of(info.metric)) + " " + std::to_string(info.size) +
                           " x " + std::to_string(info.dimension) + " " + std::string(name_of(info.dtype)) + " in " +
                           std::to_string(info.lists));
  const Neighbors found = index.search(queries, taken_by(index, {.k = 4, .probes = 2}), cpu());
  answers.add("search", found);
  answers.add("all lists", index.search(queries, taken_by(index, {.k = 4, .probes = 100}), cpu()));
  answers.add("range", index.range_search(
                           queries, range_taken_by(index, {.radius = found.distances(0)[2], .probes = 2}), cpu()));
  std::vector<uint8_t> mask(static_cast<size_t>(index.size()));
  for (size_t row = 0; row < mask.size(); ++row) mask[row] = row % 3 != 1;
  answers.add("filter", index.search(queries, {.k = 3, .filter = RowFilter::mask(mask.data(), index.size())}, cpu()));
  std::vector<float> vectors(static_cast<size_t>(2 * info.dimension));
  try {
    index.reconstruct({found.ids(0), 2, {}}, {vectors.data(), 2, info.dimension}, cpu());
    answers.add("vectors", vectors.data(), 2 * info.dimension);
  } catch (const Unsupported&) {
    answers.add("vectors", "not to be had");
  }
  return answers.text();
}

GoldenRecipe of_index(const IndexRecipe& recipe, const std::string& name, bool kept) {
  GoldenRecipe golden{name, kept, recipe.trains(), {".kith", ".faiss"}, {}, {}, {}};
  golden.write = [recipe](const std::string& stem) {
    const Index index = make_index(recipe);
    index.save(stem + ".kith", cpu());
    try {
      write_faiss_index(index, stem + ".faiss", cpu());
    } catch (const Unsupported&) {  // FAISS has no such index
    }
  };
  golden.write_again = [](const std::string& stem, const std::string& other) {
    const Index index = Index::load(stem + ".kith", cpu());
    index.save(other + ".kith", cpu());
    try {
      write_faiss_index(index, other + ".faiss", cpu());
    } catch (const Unsupported&) {
    }
  };
  golden.answers = [recipe](const std::string& stem) {
    const GoldenRows queries = recipe.rows(kFirstQuery, kQueries);
    return index_answers(Index::load(stem + ".kith", cpu()), queries.view());
  };
  return golden;
}

// A factory string as a part of a file's name.
std::string file_name(std::string name) {
  for (char& c : name) {
    c = c == ',' ? '_' : c == '(' || c == ')' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return name;
}

std::string name_of_recipe(const IndexRecipe& recipe) {
  return file_name(recipe.factory) + "." + std::string(name_of(recipe.params.metric)) + "." +
         std::string(name_of(recipe.dtype)) + "." + std::string(kHistoryNames[static_cast<int>(recipe.history)]);
}

constexpr Metric kAllMetrics[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine,
                                  Metric::l1, Metric::linf,        Metric::chi_square,    Metric::hamming};
constexpr Metric kListMetrics[] = {Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine};

constexpr std::string_view kCodedKinds[] = {"SQ8",
                                            "SQ6",
                                            "SQ4",
                                            "SQfp16",
                                            "SQbf16",
                                            "PQ4x4",
                                            "PQ2x5",
                                            "PQ2",
                                            "LSQ3x4",
                                            "RQ3x4",
                                            "LSQ2x4_Ncqint8",
                                            "RQ2x4_Nqint8",
                                            "LSQ2x4_Nfloat",
                                            "IVF,Flat",
                                            "IVF5,Flat",
                                            "IVF5,SQ8",
                                            "IVF5,SQ6",
                                            "IVF5,SQ4",
                                            "IVF5,SQfp16",
                                            "IVF5,SQbf16",
                                            "IVF5,PQ4x4",
                                            "IVF5,PQ2x5",
                                            "IVF5,PQ2",
                                            "IVF5,LSQ3x4",
                                            "IVF5,RQ3x4",
                                            "IVF5,LSQ2x4_Ncqint8",
                                            "IVF5,RQ2x4_Nqint8",
                                            "IVF5,LSQ2x4_Nfloat",
                                            "OPQ4,PQ4x4",
                                            "OPQ2_4,IVF5,PQ2x4",
                                            "PCA4,Flat",
                                            "PCAR4,SQ8",
                                            "RR6,IVF5,Flat",
                                            "L2norm,IVF5,SQ8",
                                            "Pad12,PQ4x4",
                                            "Centre,Flat",
                                            "L2norm,PCA4,RR,Centre,Pad6,IVF5,SQ4,Refine(SQ8)",
                                            "PQ4x4,RFlat",
                                            "SQ4,Refine(SQfp16)",
                                            "IVF5,PQ4x4,RFlat",
                                            "IVF5,PQ4x4,Refine(SQ8)",
                                            "IVF5,LSQ3x4,Refine(SQ6)",
                                            "RaBitQ",
                                            "IVF5,RaBitQ"};

// One kind, metric and dtype: all histories for l2, for other metrics the one whose turn it is. Those whose bit is set
// in `kept` are kept as files.
void add_histories(IndexRecipe recipe, unsigned turn, unsigned kept, std::vector<GoldenRecipe>& to) {
  for (const History history : kHistories) {
    const auto number = static_cast<unsigned>(history);
    if (recipe.params.metric != Metric::l2 && turn % 4 != number) continue;
    recipe.history = history;
    to.push_back(of_index(recipe, name_of_recipe(recipe), (kept >> number & 1U) != 0));
  }
}

void add_indexes(std::vector<GoldenRecipe>& to) {
  unsigned turn = 0;
  for (const Metric metric : kAllMetrics) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::u8, DType::i8}) {
      if (metric == Metric::hamming && dtype != DType::u8) continue;
      const bool kept = dtype == (metric == Metric::hamming ? DType::u8 : DType::f32);
      add_histories({"Flat", {.metric = metric}, dtype}, turn++, kept ? 15U : metric == Metric::l2 ? 4U : 0U, to);
    }
  }
  turn = 0;
  for (const std::string_view kind : kCodedKinds) {
    // Each kind has one file, by another metric in turn; some kinds have one for each history.
    const bool all = kind == "IVF5,PQ4x4" || kind == "SQ8";
    unsigned metrics = 0;
    for (const Metric metric : kListMetrics) {
      const bool chosen = metrics == turn % 4;
      const unsigned history = turn + turn / 4 + metrics++;
      const unsigned kept = chosen ? 1U << history % 4 : 0U;
      add_histories({std::string(kind), {.metric = metric}}, history, all && metric == Metric::l2 ? 15U : kept, to);
    }
    ++turn;
  }
  add_histories({"LSQ2x4_Nnone", {.metric = Metric::inner_product}}, 0, 1, to);
  for (const DType dtype : {DType::f16, DType::bf16, DType::u8, DType::i8}) {
    add_histories({"IVF5,Flat", {.metric = Metric::l2}, dtype}, 0, dtype == DType::u8 ? 4 : 0, to);
    add_histories({"IVF5,PQ4x4", {.metric = Metric::l2}, dtype}, 0, 0, to);
  }
  const IndexParams params{.check_finite = false, .prepare = false, .expected_rows = 36, .seed = 12345678901};
  for (const std::string kind : {"Flat", "IVF,PQ4x4"})
    to.push_back(of_index({kind, params}, file_name(kind) + ".parameters", true));
  const IndexRecipe untrained{"Flat", {.metric = Metric::cosine}};
  GoldenRecipe none = of_index(untrained, "flat.without_rows", true);
  none.write = [](const std::string& stem) { Index("Flat", {.metric = Metric::cosine}).save(stem + ".kith", cpu()); };
  none.answers = [](const std::string& stem) {
    return std::to_string(Index::load(stem + ".kith", cpu()).size()) + " rows\n";
  };
  none.write_again = [](const std::string& stem, const std::string& other) {
    Index::load(stem + ".kith", cpu()).save(other + ".kith", cpu());
  };
  to.push_back(none);
  const IndexRecipe lists{"IVF5,PQ4x4", {.metric = Metric::l2}};
  none.name = "ivf5_pq4x4.without_rows";
  none.trained = true;
  none.write = [lists](const std::string& stem) { fresh_index(lists).save(stem + ".kith", cpu()); };
  to.push_back(none);
}

// An index of float64 vectors: an offset is subtracted, and saved with them.
struct DoublesRecipe {
  std::string factory;
  Metric metric = Metric::l2;
};

Index make_index(const DoublesRecipe& recipe) {
  const auto matrix = [](const std::vector<double>& values) {
    return MatrixView(values.data(), static_cast<int64_t>(values.size()) / kGoldenCols, kGoldenCols);
  };
  Index index(recipe.factory, {.metric = recipe.metric});
  if (recipe.factory != "Flat") index.train(matrix(golden_doubles(0, kTrainRows)), cpu());
  index.add(matrix(golden_doubles(0, kFirstRows)), Ownership::copy, cpu());
  index.add(matrix(golden_doubles(kFirstRows, kAllRows - kFirstRows)), Ownership::copy, cpu());
  const int64_t gone[] = {2, 40};
  index.remove({gone, 2, {}}, cpu());
  return index;
}

GoldenRecipe of_doubles(const DoublesRecipe& recipe) {
  GoldenRecipe golden{file_name(recipe.factory) + "." + std::string(name_of(recipe.metric)) + ".subtracted",
                      true,
                      recipe.factory != "Flat",
                      {".kith"},
                      {},
                      {},
                      {}};
  golden.write = [recipe](const std::string& stem) { make_index(recipe).save(stem + ".kith", cpu()); };
  golden.write_again = [](const std::string& stem, const std::string& other) {
    Index::load(stem + ".kith", cpu()).save(other + ".kith", cpu());
  };
  golden.answers = [](const std::string& stem) {
    const Index index = Index::load(stem + ".kith", cpu());
    Answers answers;
    char text[64];
    for (const double value : index.offset()) {
      std::snprintf(text, sizeof text, "%.17g", value);
      answers.add("subtracted", text);
    }
    // The vectors in the answers are those that are kept: only here does a recipe look inside the library.
    const auto [plain, offset] = IndexAccess::without_offset(index, cpu());
    const std::vector<double> queries = golden_doubles(kFirstQuery, kQueries);
    const NarrowedRows narrowed("queries", {queries.data(), kQueries, kGoldenCols}, offset, OfRounding::silent, cpu());
    return answers.text() + index_answers(plain, narrowed.view());
  };
  return golden;
}

// Graphs: a pair of files.
constexpr int64_t kGoldenGraphRows = 150;

struct GraphRecipe {
  std::string name;
  Metric metric = Metric::l2;
  std::function<KnnGraph(const MatrixView& rows)> make;
  bool kept = true;
  bool trained = false;
  std::string ids = ".ids.npy";
  std::string distances = ".distances.npy";
};

GoldenRecipe of_graph(const GraphRecipe& recipe) {
  GoldenRecipe golden{"graph." + recipe.name, recipe.kept, recipe.trained, {recipe.ids, recipe.distances}, {}, {}, {}};
  golden.write = [recipe](const std::string& stem) {
    const GoldenRows rows(DType::f32, recipe.metric == Metric::chi_square, 0, kGoldenGraphRows);
    save_graph(recipe.make(rows.view()), stem + recipe.ids, stem + recipe.distances, cpu());
  };
  golden.write_again = [recipe](const std::string& stem, const std::string& other) {
    const KnnGraph graph = load_graph(stem + recipe.ids, stem + recipe.distances, recipe.metric, cpu());
    save_graph(graph, other + recipe.ids, other + recipe.distances, cpu());
  };
  golden.answers = [recipe](const std::string& stem) {
    const KnnGraph graph = load_graph(stem + recipe.ids, stem + recipe.distances, recipe.metric, cpu());
    const int64_t* const ids = graph.ids();
    const int64_t sum = std::accumulate(ids, ids + graph.rows() * graph.k(), int64_t{0});
    Answers answers;
    answers.add("graph", std::to_string(graph.rows()) + " x " + std::to_string(graph.k()) + ", ids add up to " +
                             std::to_string(sum));
    answers.add("first", graph.distances(), graph.k());
    answers.add("last", graph.distances(graph.rows() - 1), graph.k());
    return answers.text();
  };
  return golden;
}

void add_graphs(std::vector<GoldenRecipe>& to) {
  const auto made = [](KnnGraphParams params) {
    params.k = 4;
    return [params](const MatrixView& rows) { return knn_graph(rows, params, cpu()); };
  };
  for (const Metric metric : kAllMetrics) {
    if (metric == Metric::hamming) continue;
    const std::string behind = "." + std::string(name_of(metric));
    const bool kept = metric == Metric::l2;
    to.push_back(of_graph({"exact" + behind, metric, made({.metric = metric, .method = GraphMethod::exact}), kept}));
    const KnnGraphParams descent{.metric = metric, .method = GraphMethod::nn_descent, .start = GraphStart::random};
    to.push_back(of_graph({"nn_descent" + behind, metric, made(descent), kept}));
  }
  for (const Metric metric : kListMetrics) {
    const KnnGraphParams cells{.metric = metric, .method = GraphMethod::cells, .recall = 0.9, .cells = 6, .probes = 2};
    const bool kept = metric == Metric::l2;
    to.push_back(of_graph({"cells." + std::string(name_of(metric)), metric, made(cells), kept, true}));
  }
  const auto exact = made({.method = GraphMethod::exact});
  to.push_back(of_graph({"ibin", Metric::l2, exact, true, false, ".ids.ibin", ".distances.fbin"}));
  to.push_back(of_graph({"vecs", Metric::l2, exact, true, false, ".ids.ivecs", ".distances.fvecs"}));
  to.push_back(of_graph({"hdf5", Metric::l2, exact, true, false, ".ids.hdf5", ".distances.hdf5"}));
  to.push_back(of_graph({"merged", Metric::l2, [exact](const MatrixView& rows) {
                           const MatrixView one = rows.slice(0, 60);
                           const MatrixView two = rows.slice(60, kGoldenGraphRows - 60);
                           return merge_graphs(exact(one), one, exact(two), two, {}, cpu());
                         }}));
  to.push_back(of_graph({"extended", Metric::l2, [exact](const MatrixView& rows) {
                           const MatrixView one = rows.slice(0, 140);
                           return extend_graph(exact(one), one, rows.slice(140, kGoldenGraphRows - 140), {}, cpu());
                         }}));
  to.push_back(of_graph({"of_index", Metric::l2,
                         [](const MatrixView& rows) {
                           Index index("IVF5,PQ4x4", {.metric = Metric::l2});
                           index.train(rows, cpu());
                           index.add(rows, Ownership::copy, cpu());
                           return knn_graph(index, rows, {.k = 4, .probes = 2}, cpu());
                         },
                         true, true}));
}

// Quantizers and transforms.
void save_any(const Quantizer& quantizer, const std::string& path) {
  std::visit([&](const auto& one) { save_quantizer(one, path, cpu()); }, quantizer);
}

GoldenRecipe of_quantizer(const std::string& factory, uint64_t seed, bool check_finite) {
  GoldenRecipe golden{"quantizer." + file_name(factory) + (seed == 0 ? "" : ".parameters"),
                      true,
                      factory.find("SQ") != 0,
                      {".kith"},
                      {},
                      {},
                      {}};
  golden.write = [=](const std::string& stem) {
    Quantizer quantizer = make_quantizer(factory, seed, check_finite);
    const GoldenRows rows(DType::f32, false, 0, kTrainRows);
    std::visit([&](auto& one) { one.train(rows.view(), cpu()); }, quantizer);
    save_any(quantizer, stem + ".kith");
  };
  golden.write_again = [](const std::string& stem, const std::string& other) {
    save_any(load_quantizer(stem + ".kith", cpu()), other + ".kith");
  };
  golden.answers = [](const std::string& stem) {
    const Quantizer quantizer = load_quantizer(stem + ".kith", cpu());
    return std::visit(
        [](const auto& one) {
          const GoldenRows rows(DType::f32, false, kFirstQuery, kAllRows);
          std::vector<uint8_t> codes(static_cast<size_t>(kAllRows * one.code_bytes()));
          one.encode(rows.view(), {codes.data(), kAllRows, one.code_bytes()}, cpu());
          std::vector<float> vectors(static_cast<size_t>(kAllRows * one.dimension()));
          one.decode({codes.data(), kAllRows, one.code_bytes()}, {vectors.data(), kAllRows, one.dimension()}, cpu());
          Answers answers;
          answers.add("codes", golden_hash({reinterpret_cast<const char*>(codes.data()), codes.size()}));
          answers.add("first vector", vectors.data(), one.dimension());
          answers.add("last vector", vectors.data() + (kAllRows - 1) * one.dimension(), one.dimension());
          return answers.text();
        },
        quantizer);
  };
  return golden;
}

GoldenRecipe of_transform(const std::string& steps, uint64_t seed) {
  const bool trained = steps.find("OPQ") != std::string::npos;
  GoldenRecipe golden{"transform." + file_name(steps), true, trained, {".kith"}, {}, {}, {}};
  golden.write = [=](const std::string& stem) {
    VectorTransform transform({.steps = steps, .seed = seed});
    transform.train(GoldenRows(DType::f32, false, 0, kTrainRows).view(), cpu());
    save_transform(transform, stem + ".kith", cpu());
  };
  golden.write_again = [](const std::string& stem, const std::string& other) {
    save_transform(load_transform(stem + ".kith", cpu()), other + ".kith", cpu());
  };
  golden.answers = [](const std::string& stem) {
    const VectorTransform transform = load_transform(stem + ".kith", cpu());
    const GoldenRows rows(DType::f32, false, kFirstQuery, kQueries);
    std::vector<float> vectors(static_cast<size_t>(kQueries * transform.dimension_out()));
    transform.apply(rows.view(), {vectors.data(), kQueries, transform.dimension_out()}, cpu());
    Answers answers;
    answers.add("vectors", vectors.data(), kQueries * transform.dimension_out());
    return answers.text();
  };
  return golden;
}

}  // namespace

const std::vector<GoldenRecipe>& golden_recipes() {
  static const std::vector<GoldenRecipe> recipes = [] {
    std::vector<GoldenRecipe> made;
    add_indexes(made);
    for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::l1, Metric::linf}) {
      made.push_back(of_doubles({"Flat", metric}));
    }
    for (const char* const factory : {"IVF5,Flat", "IVF5,SQ8", "SQ8", "PCA4,IVF5,PQ4x4,RFlat"}) {
      made.push_back(of_doubles({factory, Metric::l2}));
    }
    add_graphs(made);
    for (const char* const factory : {"PQ4x4", "PQ2x5", "PQ2", "SQ8", "SQ6", "SQ4", "SQfp16", "LSQ3x4", "RQ3x4"}) {
      made.push_back(of_quantizer(factory, 0, true));
    }
    for (const char* const factory : {"PQ4x4", "LSQ3x4", "RQ3x4"}) made.push_back(of_quantizer(factory, 77, false));
    for (const char* const steps :
         {"PCA4", "OPQ4", "OPQ2_4", "OPQ4_12", "RR6", "RR", "Centre", "L2norm", "Pad12", "L2norm,PCA4,Centre,Pad6"}) {
      made.push_back(of_transform(steps, 0));
    }
    return made;
  }();
  return recipes;
}

std::string golden_hash(std::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001B3u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::string golden_file_hash(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "refused";
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return golden_hash(bytes);
}

}  // namespace kith::testing
