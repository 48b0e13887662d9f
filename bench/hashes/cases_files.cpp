// Files of vectors and ids: every format written, read and searched, under memory limits too.
#include "case.hpp"

namespace hashes {
namespace {

using namespace kith;

struct Format {
  const char* name;
  DType dtype;
};
constexpr Format kFormats[] = {
    {"v.fvecs", DType::f32},     {"v.bvecs", DType::u8},     {"v.fbin", DType::f32}, {"v.f16bin", DType::f16},
    {"v.bf16bin", DType::bf16},  {"v.u8bin", DType::u8},     {"v.i8bin", DType::i8}, {"v.npy", DType::f32},
    {"v.npy", DType::f16},       {"v.npy", DType::u8},       {"v.npy", DType::i8},   {"v.hdf5::set", DType::f32},
    {"v.hdf5::set", DType::f16}, {"v.hdf5::set", DType::u8},
};

void vectors_case(Case& c) {
  Draws& draws = c.draws;
  const Format& format = kFormats[c.number % static_cast<int64_t>(std::size(kFormats))];
  const int64_t rows = draws.between(1, 300);
  const int64_t cols = draw_cols(draws);
  const int64_t gap = draws.chance(20) ? 3 : 0;
  const Rows x(draw_source(draws, Metric::l2), format.dtype, 0, rows, cols, gap);
  const std::string path = c.path(format.name);
  c.note(format.name);
  c.note(x);
  c.call("write", [&](Hash& hash) {
    write_vectors(path, x.host(), c.resources);
    hash.file(file_of(path));
  });
  c.call("info", [&](Hash& hash) {
    const FileInfo info = file_info(path);
    hash.text(info.format);
    hash.number(static_cast<int64_t>(info.content));
    hash.text(info.dtype);
    hash.number(info.rows);
    hash.number(info.cols);
    hash.number(info.file_bytes);
    hash.number(static_cast<int64_t>(content_of(path)));
    hash.number(content_by_extension(path).has_value());
    hash.text(name_of(dtype_in(path, DType::i8)));
  });
  const int64_t first = draws.between(0, rows - 1);
  const int64_t count = draws.chance(30) ? -1 : draws.between(0, rows - first);
  c.call("read", [&](Hash& hash) { hash.add(read_vectors(path, {first, count}, c.resources).view()); });
  c.call("read_f32", [&](Hash& hash) { hash.add(read_vectors(path, {first, count}, DType::f32, c.resources).view()); });
  if (draws.chance(50)) {
    c.call("map", [&](Hash& hash) {
      const MappedVectors mapped(path, c.resources);
      hash.number(mapped.is_mapped());
      hash.add(mapped.view());
    });
  }
  if (draws.chance(50)) {
    c.call("append", [&](Hash& hash) {
      VectorFileWriter writer(path, format.dtype, rows, cols);
      writer.append(x.host().slice(0, first));
      writer.append(x.host().slice(first, rows - first));
      writer.sync();
      writer.commit();
      hash.file(file_of(path));
    });
  }
}

void ids_case(Case& c) {
  Draws& draws = c.draws;
  const int64_t rows = draws.between(1, 200);
  const int64_t cols = draws.between(1, 30);
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < rows * cols; ++i) ids.push_back(draws.between(-1, 1000000));
  const std::string path = c.path(draws.of({"i.ibin", "i.ivecs", "i.npy", "i.hdf5::set"}));
  c.call("write", [&](Hash& hash) {
    IdFileWriter writer(path, rows, cols);
    writer.append(ids.data(), rows / 2);
    writer.append(ids.data() + rows / 2 * cols, rows - rows / 2);
    writer.commit();
    hash.file(file_of(path));
  });
  c.call("read", [&](Hash& hash) {
    const IdFile file(path);
    const int64_t first = rows / 3;
    std::vector<int64_t> some(static_cast<size_t>((rows - first) * cols));
    file.read(first, rows - first, some.data());
    hash.add(some);
  });
}

void column_case(Case& c) {
  Draws& draws = c.draws;
  const int64_t rows = draws.between(1, 300);
  const Format format =
      draws.of({Format{"w.fbin", DType::f32}, Format{"w.npy", DType::f32}, Format{"w.u8bin", DType::u8}});
  const Rows x(draw_source(draws, Metric::l2), format.dtype, 0, rows, 1);
  const std::string path = c.path(format.name);
  write_vectors(path, x.host());
  c.call("", [&](Hash& hash) { hash.add(read_column(path, c.resources).view()); });
}

// A base and queries in files.
struct SearchFiles {
  Metric metric = Metric::l2;
  SearchData data;
  std::string base;
  std::string queries;
};

SearchFiles draw_search_files(Case& c) {
  Draws& draws = c.draws;
  SearchFiles files;
  files.metric = draw_metric(draws);
  SearchShape shape;
  shape.queries = draws.between(1, 60);
  shape.rows = draws.between(1, 2500);
  shape.cols = draws.between(1, 64);
  files.data = draw_search_data(draws, files.metric, shape);
  c.note(files.data);
  const auto name = [](std::string_view stem, DType dtype) {
    const char* endings[] = {".fbin", ".f16bin", ".bf16bin", ".u8bin", ".i8bin"};
    return std::string(stem) + endings[static_cast<int>(dtype)];
  };
  files.base = c.path(name("base", files.data.base.dtype()));
  files.queries = c.path(name("queries", files.data.queries.dtype()));
  write_vectors(files.base, files.data.base.host());
  write_vectors(files.queries, files.data.queries.host());
  return files;
}

void knn_files_case(Case& c) {
  const SearchFiles files = draw_search_files(c);
  KnnParams params{.k = c.draws.between(1, 40), .metric = files.metric};
  DrawnFilter filter;
  if (c.draws.chance(30)) {
    filter = draw_filter(c.draws, files.data.base.rows());
    params.filter = filter.filter;
  }
  // All results in one row: how the queries are divided depends on limits and threads.
  const auto search = [&](const Resources& resources) {
    const VectorFile queries(files.queries);
    const VectorFile base(files.base);
    std::pair<std::vector<int64_t>, std::vector<float>> all;
    knn(
        queries, base,
        [&](int64_t, const NeighborsView& part) {
          all.first.insert(all.first.end(), part.ids, part.ids + part.queries * part.k);
          all.second.insert(all.second.end(), part.distances, part.distances + part.queries * part.k);
        },
        params, resources);
    return all;
  };
  const bool limited = c.draws.chance(70);
  c.call("", [&](Hash& hash) {
    const auto found = limited ? c.under_least_memory(search) : search(c.resources);
    hash.add(found.first);
    hash.add(found.second);
  });
}

void range_files_case(Case& c) {
  const SearchFiles files = draw_search_files(c);
  RangeParams params;
  params.metric = files.metric;
  const Neighbors near = knn(files.data.queries.host().slice(0, 1), files.data.base.host(),
                             {.k = std::min<int64_t>(30, files.data.base.rows()), .metric = files.metric},
                             c.resources.with_device(Device::cpu()));
  params.radius = near.distances()[near.k() - 1];
  // For each query its number of rows, and all of them.
  const auto search = [&](const Resources& resources) {
    const VectorFile queries(files.queries);
    const VectorFile base(files.base);
    std::pair<std::vector<int64_t>, std::vector<float>> all;
    range_search(
        queries, base,
        [&](int64_t, const RangeView& part) {
          for (int64_t i = 0; i < part.queries; ++i) {
            all.first.push_back(part.offsets[i + 1] - part.offsets[i]);
            all.first.insert(all.first.end(), part.ids + part.offsets[i], part.ids + part.offsets[i + 1]);
            all.second.insert(all.second.end(), part.distances + part.offsets[i], part.distances + part.offsets[i + 1]);
          }
        },
        params, resources);
    return all;
  };
  const bool limited = c.draws.chance(70);
  c.call("", [&](Hash& hash) {
    const auto found = limited ? c.under_least_memory(search) : search(c.resources);
    hash.add(found.first);
    hash.add(found.second);
  });
}

// Files that do not hold what they promise.
void corrupt_case(Case& c) {
  const Rows x({.pattern = Pattern::bell, .key = c.draws.bits()}, DType::f32, 0, 50, 8);
  const std::string path = c.path(c.draws.of({"c.fbin", "c.npy", "c.kith"}));
  if (path.ends_with(".kith")) {
    Index index("SQ8");
    index.train(x.host(), c.resources);
    index.add(x.host(), Ownership::copy, c.resources);
    index.save(path);
  } else {
    write_vectors(path, x.host());
  }
  std::string content;
  {
    std::ifstream in(path, std::ios::binary);
    content.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  content.resize(content.size() - static_cast<size_t>(c.draws.between(1, 200)));
  std::ofstream(path, std::ios::binary) << content;
  c.call("", [&](Hash& hash) {
    if (path.ends_with(".kith")) {
      hash.add(Index::load(path, c.resources).info());
    } else {
      hash.add(read_vectors(path, {}, c.resources).view());
    }
  });
}

}  // namespace

std::vector<EntryPoint> file_cases() {
  return {{"vector_file", 112, vectors_case},    {"id_file", 24, ids_case},
          {"column_file", 12, column_case},      {"knn_files", 90, knn_files_case},
          {"range_files", 50, range_files_case}, {"corrupt_file", 12, corrupt_case}};
}

}  // namespace hashes
