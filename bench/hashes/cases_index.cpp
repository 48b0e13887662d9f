// Index: every kind that a factory string can name, through its life: trained, filled, searched, changed, saved.
#include "case.hpp"

#include <iterator>
#include <string>
#include <string_view>

namespace hashes {
namespace {

using namespace kith;

// A kind, with the vectors that fit it.
struct Kind {
  std::string factory;
  Metric metric = Metric::l2;
  int64_t cols = 0;
  bool lists = false;
  bool refined = false;
};

std::string with_number(std::string_view name, int64_t number) { return std::string(name) + std::to_string(number); }

// What is done to vectors first; `cols` are those that reach the code afterwards, still a multiple of 4.
std::string draw_prefix(Draws& draws, int64_t& cols) {
  switch (draws.between(0, 9)) {
    case 0: cols /= 2; return with_number("PCA", cols) + ",";
    case 1: cols /= 2; return with_number("PCAR", cols) + ",";
    case 2: return with_number("OPQ", draws.of<int64_t>({2, 4})) + ",";
    case 3: cols /= 2; return "OPQ2_" + std::to_string(cols) + ",";
    case 4: return "RR,";
    case 5: cols /= 2; return with_number("RR", cols) + ",";
    case 6: return "L2norm,";
    case 7: cols += 8; return with_number("Pad", cols) + ",";
    case 8: return "Centre,";
    default: cols /= 2; return "IDMap,L2norm," + with_number("PCA", cols) + ",";
  }
}

constexpr int64_t kCodes = 14;
std::string code_named(Draws& draws, int64_t which, int64_t cols) {
  const int64_t parts = draws.of<int64_t>({1, 2, cols / 2, cols});
  const std::string bits = std::to_string(draws.between(4, 6));
  switch (which) {
    case 0:
    case 1: return "Flat";
    case 2: return "SQ8";
    case 3: return "SQ6";
    case 4: return "SQ4";
    case 5: return "SQfp16";
    case 6: return "SQbf16";
    case 7: return with_number("PQ", parts) + "x" + bits;
    case 8: return with_number("PQ", parts) + "x4fs";
    case 9: return with_number("PQ", cols / 2) + "x4";
    case 10: return with_number("PQ", cols / 4);
    case 11: return with_number("RQ", draws.between(1, 4)) + "x" + bits;
    case 12: return "RQ3x4" + std::string(draws.of({"_Ncqint8", "_Nqint8", "_Nfloat"}));
    default: {
      const std::string name = with_number("RQ", draws.between(1, 3));
      return with_number(name + "x", draws.between(1, 3));
    }
  }
}

Kind draw_kind(Case& c) {
  Draws& draws = c.draws;
  Kind kind;
  kind.cols = draws.of<int64_t>({8, 16, 24, 32, 48});
  int64_t cols = kind.cols;
  const bool prefix = draws.chance(35);
  if (prefix) kind.factory = draw_prefix(draws, cols);
  kind.lists = draws.chance(60);
  if (kind.lists)
    kind.factory += draws.chance(20) ? "IVF," : with_number("IVF", draws.of<int64_t>({1, 4, 8, 16})) + ",";
  const std::string code = code_named(draws, c.number % kCodes, cols);
  kind.factory += code;
  kind.refined = draws.chance(25);
  if (kind.refined)
    kind.factory += draws.of({",RFlat", ",Refine(SQ8)", ",Refine(SQfp16)", ",Refine(PQ4x4)", ",Refine(Flat)"});
  kind.metric = draws.of({Metric::l2, Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine});
  const bool plain = code == "Flat" && !prefix && !kind.lists && !kind.refined;
  if (plain) kind.metric = draw_metric(draws);  // which takes them all
  return kind;
}

// An index with its vectors, and the ids that are in it.
struct Filled {
  Index index;
  Rows x;
  Rows queries;
  std::vector<int64_t> ids;
  Kind kind;
};

SearchParams draw_search(Draws& draws, const Filled& it) {
  SearchParams params;
  params.k = draws.chance(10) ? it.index.size() + 2 : draws.of<int64_t>({1, 2, 5, 10, 17, 33});
  if (it.kind.lists && draws.chance(60)) params.probes = draws.between(1, 20);
  if (draws.chance(30)) params.refine = draws.between(1, 6);
  return params;
}

// Less what such an index refuses: the second look of one that keeps no vectors for it.
SearchParams taken(const Filled& it, SearchParams params) {
  if (!it.kind.refined) params.refine = 0;
  return params;
}

// The radius is that of a neighbour; half of the searches are filtered.
void range_call(Case& c, const Filled& it) {
  const bool filtered = c.draws.chance(50);
  const DrawnFilter filter = draw_filter(c.draws, it.index.size(), it.ids);
  RangeSearchParams params;
  if (it.kind.lists && c.draws.chance(60)) params.probes = c.draws.between(1, 20);
  c.call("range_search", [&](Hash& hash) {
    const Neighbors near =
        it.index.search(it.queries.host(), {.k = std::min<int64_t>(12, it.index.size())}, c.resources);
    params.radius = near.distances()[near.k() - 1];
    if (filtered) params.filter = filter.filter;
    hash.add(it.index.range_search(it.queries.view(), params, c.resources).view());
  });
}

void search_calls(Case& c, const Filled& it) {
  SearchParams params = taken(it, draw_search(c.draws, it));
  const bool limited = c.draws.chance(10);
  c.call("search", [&](Hash& hash) {
    hash.add(limited ? c.under_least_memory(
                           [&](const Resources& r) { return it.index.search(it.queries.view(), params, r); })
                     : it.index.search(it.queries.view(), params, c.resources));
  });
  if (c.draws.chance(50)) {
    const DrawnFilter filter = draw_filter(c.draws, it.index.size(), it.ids);
    c.call("filtered", [&](Hash& hash) {
      params.filter = filter.filter;
      std::vector<int64_t> ids(static_cast<size_t>(it.queries.rows() * params.k));
      std::vector<float> distances(ids.size());
      const NeighborsView out{ids.data(), distances.data(), it.queries.rows(), params.k, {}};
      it.index.search(it.queries.view(), out, params, c.resources);
      hash.add(out);
    });
  }
  if (c.draws.chance(45)) range_call(c, it);
}

void reconstruct_call(Case& c, const Filled& it) {
  std::vector<int64_t> some;
  for (int i = 0; i < 9; ++i) some.push_back(c.draws.of(it.ids));
  c.call("reconstruct", [&](Hash& hash) {
    std::vector<float> out(some.size() * static_cast<size_t>(it.kind.cols));
    it.index.reconstruct({some.data(), 9, {}}, MutableMatrixView(out.data(), 9, it.kind.cols), c.resources);
    hash.add(out);
  });
}

void file_calls(Case& c, const Filled& it) {
  const SearchParams params = taken(it, draw_search(c.draws, it));
  const std::string path = c.path("index.kith");
  c.call("save", [&](Hash& hash) {
    it.index.save(path, c.resources);
    hash.file(path);
  });
  c.call("load", [&](Hash& hash) {
    const Index loaded = Index::load(path, c.resources);
    hash.add(loaded.info());
    hash.add(loaded.search(it.queries.view(), params, c.resources));
  });
}

// FAISS knows two of the metrics, and has no such file for some kinds: those cases are an intended error.
void faiss_call(Case& c, const Filled& it) {
  const SearchParams params = taken(it, draw_search(c.draws, it));
  const std::string path = c.path("index.faiss");
  c.call("faiss", [&](Hash& hash) {
    write_faiss_index(it.index, path, c.resources);
    hash.file(path);
    const Index read = read_faiss_index(path, c.resources);
    hash.add(read.info());
    hash.add(read.search(it.queries.view(), params, c.resources));
  });
}

void change_calls(Case& c, Filled& it) {
  const SearchParams params = taken(it, draw_search(c.draws, it));
  if (c.draws.chance(40)) {
    const Device device = c.draws.chance(50) ? c.device() : Device::cpu();
    c.call("to", [&](Hash& hash) {
      const Index other = it.index.to(device, c.resources);
      hash.add(other.info());
      hash.add(other.search(it.queries.view(), params, c.resources));
    });
  }
  if (c.draws.chance(40)) {
    c.call("merge", [&](Hash& hash) {
      Index both = it.index.to(Device::automatic(), c.resources);
      both.merge(it.index, {.shift_ids = true}, c.resources);
      hash.add(both.info());
      hash.add(both.search(it.queries.view(), params, c.resources));
    });
  }
  if (c.draws.chance(50)) {
    std::vector<int64_t> gone = {1 << 30};  // which is not there
    for (const int64_t id : it.ids) {
      if (c.draws.chance(30)) gone.push_back(id);
    }
    c.call("remove", [&](Hash& hash) {
      hash.number(it.index.remove({gone.data(), static_cast<int64_t>(gone.size()), {}}, c.resources));
      hash.add(it.index.info());
      hash.add(it.index.search(it.queries.view(), params, c.resources));
    });
    c.call("add_again", [&](Hash& hash) {
      it.index.add(it.x.view().slice(0, 5), Ownership::copy, c.resources);
      hash.add(it.index.search(it.queries.view(), params, c.resources));
    });
  }
}

// The index must have its row numbers as ids.
void whole_calls(Case& c, const Filled& it) {
  const SearchParams params = draw_search(c.draws, it);
  if (c.draws.chance(40)) {
    IndexGraphParams graph_params;
    graph_params.k = c.draws.between(1, 12);
    if (it.kind.lists) graph_params.probes = c.draws.between(1, 6);
    const bool into = c.draws.chance(30);
    c.call("knn_graph", [&](Hash& hash) {
      if (!into) return hash.add(knn_graph(it.index, it.x.view(), graph_params, c.resources), c.resources);
      Neighbors out(it.x.rows(), graph_params.k, c.resources);
      (void)knn_graph(it.index, it.x.host(), out.view(), graph_params, c.resources);
      hash.add(out);
    });
  }
  if (it.kind.metric != Metric::hamming && !it.kind.refined && c.draws.chance(30)) {
    c.call("refine_from", [&](Hash& hash) {
      const std::string path = c.path("vectors.npy");
      write_vectors(path, it.x.host(), it.x.dtype() == DType::bf16 ? DType::f32 : it.x.dtype());
      const VectorFile file(path);
      SearchParams refined = params;
      refined.refine_from = &file;
      hash.add(it.index.search(it.queries.view(), refined, c.resources));
    });
  }
}

// From training to the end; training runs with `training`.
void life(Case& c, const Kind& kind, int64_t rows, const Resources& training) {
  Draws& draws = c.draws;
  IndexParams params;
  params.metric = kind.metric;
  params.seed = draws.bits();
  params.prepare = draws.chance(80);
  if (draws.chance(30)) params.expected_rows = draws.between(50, 2000);
  const Source source = draws.chance(75) ? draw_plain_source(draws) : draw_source(draws, kind.metric);
  const Source allowed{.pattern = source.pattern, .key = source.key, .negative = kind.metric != Metric::chi_square};
  const DType dtype = draw_dtype(draws, kind.metric);
  const DType asked = kind.metric == Metric::hamming || draws.chance(70) ? dtype : DType::f32;
  Filled it{c.placed(Index(kind.factory, params)),
            Rows(allowed, dtype, 0, rows, kind.cols),
            Rows(allowed, asked, rows, 6, kind.cols),
            {},
            kind};
  if (draws.chance(40)) it.x.move_to_device();
  if (draws.chance(40)) it.queries.move_to_device();
  c.note(kind.factory);
  c.note(name_of(kind.metric));
  c.note(it.x);
  const int64_t form = draws.between(0, 9);
  const bool own_ids = form >= 7;
  for (int64_t i = 0; i < rows; ++i) it.ids.push_back(own_ids ? 3 * ((i * 7919) % rows) + 5 : i);

  const bool from_file = form == 9 && dtype != DType::bf16;
  const std::string file = c.path("added.npy");
  if (from_file) write_vectors(file, it.x.host());
  c.call("train", [&](Hash& hash) {
    if (from_file) {
      it.index.train(VectorFile(file), training);
    } else {
      it.index.train(training.device() == c.resources.device() ? it.x.view() : it.x.host(), training);
    }
    hash.add(it.index.info());
  });
  c.call("add", [&](Hash& hash) {
    const int64_t first = form < 3 ? rows : rows * 2 / 3;
    const VectorView<const int64_t> ids{it.ids.data(), rows, {}};
    if (from_file) {
      it.index.add(VectorFile(file), ids, c.resources);
    } else if (own_ids) {
      it.index.add(it.x.view().slice(0, first), {it.ids.data(), first, {}}, Ownership::copy, c.resources);
      it.index.add(it.x.view().slice(first, rows - first), {it.ids.data() + first, rows - first, {}}, Ownership::copy,
                   c.resources);
    } else {
      it.index.add(it.x.view().slice(0, first), form == 0 ? Ownership::borrow : Ownership::copy, c.resources);
      if (first < rows) it.index.add(it.x.view().slice(first, rows - first), Ownership::copy, c.resources);
    }
    hash.add(it.index.info());
  });
  if (it.index.size() == 0) return;
  search_calls(c, it);
  if (draws.chance(50)) reconstruct_call(c, it);
  if (draws.chance(60)) file_calls(c, it);
  const bool has_faiss =
      kind.metric == Metric::l2 || kind.metric == Metric::sqeuclidean || kind.metric == Metric::inner_product;
  if (has_faiss && dtype == DType::f32 && draws.chance(70)) faiss_call(c, it);
  if (!own_ids) whole_calls(c, it);
  change_calls(c, it);
}

void index_case(Case& c) {
  const Kind kind = draw_kind(c);
  life(c, kind, c.draws.between(260, 420), c.resources);
}

// "Flat" alone, by every metric and dtype.
void flat_case(Case& c) {
  Kind kind;
  kind.factory = "Flat";
  kind.metric = draw_metric(c.draws);
  kind.cols = draw_cols(c.draws);
  life(c, kind, draw_rows(c.draws) + 5, c.resources);
}

Kind draw_lsq_kind(Draws& draws) {
  Kind kind;
  kind.cols = draws.of<int64_t>({8, 16, 24});
  kind.lists = draws.chance(60);
  kind.metric = draws.of({Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine});
  const bool norms = draws.chance(40) && kind.metric != Metric::cosine;
  const std::string norm = !norms                                 ? ""
                           : kind.metric == Metric::inner_product ? "_Nnone"
                                                                  : draws.of({"_Ncqint8", "_Nqint8", "_Nfloat"});
  if (kind.lists) kind.factory = with_number("IVF", draws.of<int64_t>({1, 4, 8})) + ",";
  kind.factory += with_number("LSQ", draws.between(1, 3)) + "x";
  kind.factory += std::to_string(draws.between(2, 4)) + norm;
  kind.refined = draws.chance(20);
  if (kind.refined) kind.factory += draws.of({",RFlat", ",Refine(SQ8)"});
  return kind;
}

// Trained on the CPU, so that all other calls have the same bytes on every device.
void lsq_case(Case& c) {
  const Kind kind = draw_lsq_kind(c.draws);
  life(c, kind, c.draws.between(260, 300), c.resources.with_device(Device::cpu()));
}

void lsq_train_case(Case& c) {
  const Kind kind = draw_lsq_kind(c.draws);
  life(c, kind, c.draws.between(260, 300), c.resources);
}

void rabitq_case(Case& c) {
  Draws& draws = c.draws;
  Kind kind;
  kind.cols = draws.of<int64_t>({5, 16, 24, 64, 100});
  kind.lists = draws.chance(60);
  kind.metric = draws.of({Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine});
  if (draws.chance(30)) kind.factory = "RR,";
  if (kind.lists) kind.factory += with_number("IVF", draws.of<int64_t>({1, 4, 8})) + ",";
  kind.factory += "RaBitQ";
  kind.refined = draws.chance(30);
  if (kind.refined) kind.factory += draws.of({",RFlat", ",Refine(SQ8)"});
  life(c, kind, draws.between(260, 420), c.resources);
}

// Many queries at once, so that they are cut into blocks, in prepared rows that are enough for a screen; beside them
// some of the same queries, which go other ways.
void blocks_case(Case& c) {
  constexpr std::string_view kKinds[] = {
      "Flat",     "Flat",     "SQ8",         "SQ4",      "SQfp16",      "PQ8",       "PQ16x4",        "IVF8,Flat",
      "IVF8,SQ8", "IVF8,SQ4", "IVF8,SQfp16", "IVF8,PQ8", "IVF8,PQ16x4", "PCA16,SQ8", "OPQ4,IVF8,PQ4", "IVF8,PQ4,RFlat"};
  constexpr int64_t kCount = std::size(kKinds);
  Draws& draws = c.draws;
  const Metric metric = draws.of({Metric::l2, Metric::inner_product, Metric::cosine});
  const Source source = draw_plain_source(draws);
  const int64_t rows = draws.between(2048, 2600);
  const int64_t cols = draws.of<int64_t>({32, 64});
  const int64_t asked = c.number % 2 == c.number / kCount % 2 ? 300 : 1100;
  const Rows x(source, DType::f32, 0, rows, cols);
  const Rows queries(source, DType::f32, rows, asked, cols);
  const std::string factory(kKinds[c.number % kCount]);
  Index index(factory, {.metric = metric, .seed = draws.bits()});
  const bool lists = factory.find("IVF") != std::string::npos;
  const SearchParams params{.k = draws.of<int64_t>({1, 10, 33}), .probes = lists ? 3 : 0};
  c.note(index.factory());
  c.note(name_of(metric));
  c.note(queries);
  const auto hash_search = [&](std::string_view step, int64_t count) {
    c.call(step, [&](Hash& hash) { hash.add(index.search(queries.view().slice(0, count), params, c.resources)); });
  };
  c.call("fill", [&](Hash& hash) {
    index.train(x.view(), c.resources);
    index.add(x.view(), Ownership::copy, c.resources);
    hash.add(index.info());
  });
  hash_search("all", asked);
  hash_search("some", 100);
  hash_search("few", 7);
}

// Graphs that are walked over, by codes of bytes and of four bits: as built, grown, and with rows removed.
void walk_case(Case& c) {
  constexpr std::string_view kKinds[] = {"Graph16", "Graph16x4",     "Graph32",       "Graph32x4",
                                         "Graph48", "Graph16x4,SQ8", "PCA16,Graph32", "PCA16,Graph16x4"};
  Draws& draws = c.draws;
  const std::string_view factory = kKinds[c.number % std::ssize(kKinds)];
  const Metric metric = draws.of({Metric::l2, Metric::l2, Metric::sqeuclidean, Metric::inner_product, Metric::cosine});
  const Source source = draw_plain_source(draws);
  const DType dtype = draws.of({DType::f32, DType::f32, DType::f16, DType::u8, DType::i8});
  const int64_t rows = draws.between(4200, 5000);
  const int64_t cols = draws.of<int64_t>({16, 24, 33, 64, 100});
  const Rows x(source, dtype, 0, rows, cols);
  const Rows queries(source, draws.of({dtype, DType::f32}), rows, 40, cols);
  Index index(std::string(factory), {.metric = metric, .seed = draws.bits()});
  SearchParams params{.k = draws.of<int64_t>({1, 10}), .beam = draws.of<int64_t>({8, 24, 64})};
  c.note(index.factory());
  c.note(name_of(metric));
  c.note(x);
  const std::string path = c.path("walked.kith");
  const auto hash_state = [&](Hash& hash) {
    hash.add(index.info());
    index.save(path, c.resources);
    hash.file(path);
    hash.add(index.search(queries.view(), params, c.resources));
    hash.add(index.search(queries.view().slice(0, 1), params, c.resources));
  };
  const int64_t first = rows - 300;
  c.call("build", [&](Hash& hash) {
    index.train(x.view().slice(0, first), c.resources);
    index.add(x.view().slice(0, first), Ownership::copy, c.resources);
    hash_state(hash);
  });
  const DrawnFilter filter = draw_filter(draws, index.size());
  c.call("filtered", [&](Hash& hash) {
    SearchParams filtered = params;
    filtered.filter = filter.filter;
    hash.add(index.search(queries.view(), filtered, c.resources));
  });
  c.call("grow", [&](Hash& hash) {
    index.add(x.view().slice(first, 20), Ownership::copy, c.resources);
    hash_state(hash);
    index.add(x.view().slice(first + 20, 280), Ownership::copy, c.resources);
    hash_state(hash);
  });
  c.call("remove", [&](Hash& hash) {
    std::vector<int64_t> gone;
    for (int64_t id = 0; id < 2 * index.size() / 3; id += 7) gone.push_back(id);
    index.remove({gone.data(), std::ssize(gone), {}}, c.resources);
    hash.add(index.search(queries.view(), params, c.resources));
    index.compact(c.resources);
    hash_state(hash);
  });
}

}  // namespace

std::vector<EntryPoint> index_cases() {
  return {{"index", 280, index_case},        {"index_flat", 80, flat_case},
          {"index_lsq", 30, lsq_case},       {"index_lsq_train", 10, lsq_train_case},
          {"index_blocks", 32, blocks_case}, {"index_walk", 24, walk_case},
          {"index_rabitq", 40, rabitq_case}};
}

}  // namespace hashes
