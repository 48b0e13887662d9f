// Vectors in several files that are read as one: patterns, lists, errors, few descriptors; and rows from elsewhere.
#include <kith/error.hpp>
#include <kith/file_info.hpp>
#include <kith/graph_of_files.hpp>
#include <kith/index.hpp>
#include <kith/kmeans.hpp>
#include <kith/knn.hpp>
#include <kith/vector_file.hpp>

#include "core/memory_budget.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using testing::TemporaryDirectory;

// Rows in shards of these sizes, named so that their names come in the order of their rows.
class Shards {
 public:
  explicit Shards(const std::vector<int64_t>& sizes, int64_t cols = 8, const char* ending = ".npy")
      : rows_(make_floats(Shape::gaussian, std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), cols, 3)) {
    int64_t first = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      paths_.push_back(directory_.path("part-" + std::to_string(100 + i) + ending));
      write_vectors(paths_.back(), rows_.view().slice(first, sizes[i]));
      first += sizes[i];
    }
  }

  MatrixView all() const { return rows_.view(); }
  std::string pattern() const { return directory_.path("part-*"); }
  std::string path(size_t i) const { return paths_[i]; }
  const std::vector<std::string>& paths() const { return paths_; }
  std::string beside(const char* name) const { return directory_.path(name); }

 private:
  TemporaryDirectory directory_;
  reference::Matrix<float> rows_;
  std::vector<std::string> paths_;
};

// The error says all of this.
template <typename Expected, typename Work>
void expect_words(const Work& work, const std::vector<std::string>& words) {
  const auto error = testing::thrown<Expected>(work);
  if (!error) return;
  for (const std::string& word : words) EXPECT_THAT(error->what(), ::testing::HasSubstr(word));
}

bool same_rows(const MatrixView& a, const MatrixView& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols() || a.dtype() != b.dtype()) return false;
  for (int64_t i = 0; i < a.rows(); ++i) {
    if (std::memcmp(a.row(i), b.row(i), static_cast<size_t>(a.cols() * size_of(a.dtype()))) != 0) return false;
  }
  return true;
}

TEST(FileList, APatternIsItsFilesInTheOrderOfTheirNames) {
  const Shards shards({5, 0, 1, 7, 3});
  const VectorFile file(shards.pattern());
  EXPECT_EQ(file.rows(), 16);
  EXPECT_EQ(file.cols(), 8);
  EXPECT_EQ(file.files(), 5);
  EXPECT_EQ(file.path(), shards.pattern());
  EXPECT_TRUE(same_rows(read_vectors(shards.pattern()).view(), shards.all()));
  EXPECT_EQ(files_of(shards.pattern()), shards.paths());
  EXPECT_EQ(files_of(shards.path(1)), std::vector<std::string>{shards.path(1)});
}

TEST(FileList, EveryRangeIsThatOfTheRows) {
  const Shards shards({5, 0, 1, 7, 3});
  const VectorFile file(shards.pattern());
  for (int64_t first = 0; first <= 16; ++first) {
    for (int64_t count = 0; first + count <= 16; ++count) {
      MatrixBuffer out(DType::f32, count, 8, "rows", Resources());
      file.read(first, out.mutable_view());
      EXPECT_TRUE(same_rows(out.view(), shards.all().slice(first, count))) << first << ", " << count;
      MatrixBuffer halves(DType::f16, count, 8, "rows", Resources());
      file.read(first, halves.mutable_view());
    }
  }
}

TEST(FileList, SaysInWhichFileARowLies) {
  const Shards shards({5, 0, 1, 7, 3});
  const VectorFile file(shards.pattern());
  EXPECT_EQ(file.place_of(4).path, shards.path(0));
  EXPECT_EQ(file.place_of(5).path, shards.path(2));
  EXPECT_EQ(file.place_of(12).path, shards.path(3));
  EXPECT_EQ(file.place_of(12).row, 6);
  EXPECT_EQ(file.place_of(15).row, 2);
  EXPECT_THROW((void)file.place_of(16), InvalidArgument);
  EXPECT_EQ(VectorFile(shards.path(3)).place_of(6).row, 6);
}

TEST(FileList, AListHasItsOwnOrderAndMayHoldPatterns) {
  const Shards shards({2, 3});
  const VectorFile file = VectorFile::of_files({shards.path(1), shards.pattern()});
  EXPECT_EQ(file.rows(), 8);
  EXPECT_EQ(file.path(), shards.path(1) + " and 2 more");
  MatrixBuffer out(DType::f32, 3, 8, "rows", Resources());
  file.read(0, out.mutable_view());
  EXPECT_TRUE(same_rows(out.view(), shards.all().slice(2, 3)));
  EXPECT_EQ(VectorFile::of_files({shards.path(1)}).path(), shards.path(1));
  EXPECT_THROW(VectorFile::of_files({}), InvalidArgument);
}

TEST(FileList, AFileOfThatVeryNameComesBeforeThePattern) {
  const TemporaryDirectory directory;
  const auto one = make_floats(Shape::gaussian, 2, 4, 1);
  const auto other = make_floats(Shape::gaussian, 3, 4, 2);
  write_vectors(directory.path("x[1].npy"), one.view());
  write_vectors(directory.path("x1.npy"), other.view());
  EXPECT_EQ(VectorFile(directory.path("x[1].npy")).rows(), 2);
  EXPECT_EQ(VectorFile(directory.path("x[0-9].npy")).rows(), 3);
  EXPECT_THROW(VectorFile(directory.path("y*.npy")), IoError);
}

TEST(FileList, DatasetsOfSeveralFiles) {
  const Shards shards({4, 6}, 8, ".hdf5::vectors");
  const VectorFile file(shards.pattern() + ".hdf5::vectors");
  EXPECT_EQ(file.rows(), 10);
  EXPECT_TRUE(same_rows(read_vectors(file.path()).view(), shards.all()));
}

TEST(FileList, FilesThatDifferAreRefused) {
  const Shards shards({4, 6});
  write_vectors(shards.beside("part-200.npy"), make_floats(Shape::gaussian, 2, 9, 1).view());
  expect_words<InvalidArgument>([&] { VectorFile file(shards.pattern()); }, {"part-200.npy", "2 x 9 f32", "8 columns"});
  write_vectors(shards.beside("part-200.npy"), shards.all().slice(0, 2), DType::f16);
  expect_words<InvalidArgument>([&] { VectorFile file(shards.pattern()); }, {"part-200.npy", "2 x 8 f16", "of f32"});
}

TEST(FileList, AFileThatChangesIsCorrupt) {
  const Shards shards({4, 6, 4, 4, 4, 4});
  const VectorFile file(shards.pattern());
  write_vectors(shards.path(1), shards.all().slice(0, 5));
  MatrixBuffer out(DType::f32, 26, 8, "rows", Resources());
  expect_words<CorruptFile>([&] { file.read(0, out.mutable_view()); }, {"part-101.npy", "5 x 8 f32", "6 x 8 f32"});
}

// Room for so many descriptors beside those that are open, while it lives. A GPU's driver holds some.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t more) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit few = before_;
    few.rlim_cur = first_free() + more;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  // Above all that are open.
  static rlim_t first_free() {
    rlim_t last = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      last = std::max(last, static_cast<rlim_t>(std::stoul(entry.path().filename().string())));
    }
    return last + 1;
  }

  rlimit before_{};
};

TEST(FileList, ManyFilesNeedFewDescriptors) {
  const Shards shards(std::vector<int64_t>(200, 3));
  const FewDescriptors few(48);
  EXPECT_TRUE(same_rows(read_vectors(shards.pattern()).view(), shards.all()));
}

// Rows one by one from every file in turn: files stay open between them, and are given up where descriptors run out.
TEST(FileList, SingleRowsOfManyFilesWithFewDescriptors) {
  const Shards shards(std::vector<int64_t>(50, 4));
  const VectorFile file(shards.pattern());
  for (const rlim_t more : {rlim_t{16}, rlim_t{48}}) {
    const FewDescriptors few(more);
    MatrixBuffer row(DType::f32, 1, 8, "a row", Resources());
    bool same = true;
    for (int64_t i = 0; i < 400; ++i) {
      const int64_t at = i * 77 % file.rows();
      file.read(at, row.mutable_view());
      same = same && same_rows(row.view(), shards.all().slice(at, 1));
    }
    EXPECT_TRUE(same);
  }
}

TEST(FileList, ThreadsReadAtOnce) {
  const Shards shards(std::vector<int64_t>(12, 50));
  const VectorFile file(shards.pattern());
  std::vector<std::thread> threads;
  std::vector<int> same(4, 0);
  for (size_t t = 0; t < same.size(); ++t) {
    threads.emplace_back([&, t] {
      MatrixBuffer out(DType::f32, 40, 8, "rows", Resources());
      same[t] = 1;
      for (int64_t first = static_cast<int64_t>(t); first + 40 <= file.rows(); first += 7) {
        file.read(first, out.mutable_view());
        same[t] &= same_rows(out.view(), shards.all().slice(first, 40)) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, std::vector<int>(4, 1));
}

// What is made of shards is what is made of their rows in memory.

TEST(FileList, SearchesAndCentresAreThoseOfTheRows) {
  const Shards shards({300, 0, 1, 700, 199});
  const VectorFile file(shards.pattern());
  const KnnParams params{5, Metric::l2};
  const Neighbors truth = knn(shards.all(), shards.all(), params);
  int64_t differ = 0;
  ResourceOptions few;
  few.host_memory_limit = 300000;
  few.device = Device::cpu();
  knn(
      file, file,
      [&](int64_t first, const NeighborsView& part) {
        for (int64_t i = 0; i < part.queries * part.k; ++i) differ += part.ids[i] != truth.ids(first)[i] ? 1 : 0;
      },
      params, Resources(few));
  EXPECT_EQ(differ, 0);

  KMeansParams seven;
  seven.clusters = 7;
  KMeans of_files(seven);
  KMeans of_rows(seven);
  of_files.fit(file);
  of_rows.fit(shards.all());
  EXPECT_TRUE(same_rows(of_files.snapshot().centres, of_rows.snapshot().centres));

  const KnnGraph graph = knn_graph(file, {.k = 5});
  const KnnGraph of_memory = knn_graph(shards.all(), {.k = 5});
  EXPECT_EQ(std::memcmp(graph.ids(), of_memory.ids(), static_cast<size_t>(graph.rows() * 5 * 8)), 0);

  Index index("IVF4,PQ4x4");
  index.train(file);
  index.add(file);
  EXPECT_EQ(index.size(), 1200);
}

TEST(FileList, ANanIsNamedByItsFileAndItsRowThere) {
  const Shards shards({300, 200, 100});
  auto bad = make_floats(Shape::gaussian, 100, 8, 9);
  bad.values[17 * 8 + 3] = std::numeric_limits<float>::quiet_NaN();
  write_vectors(shards.path(2), bad.view());
  const VectorFile file(shards.pattern());
  const auto refused = [](const auto& work) {
    expect_words<InvalidArgument>(work, {"row 517 (row 17 of '", "part-102.npy')"});
  };
  refused([&] { knn(file, file, [](int64_t, const NeighborsView&) {}, {5, Metric::l2}); });
  refused([&] { KMeans({.clusters = 4}).fit(file); });
  refused([&] { knn_graph(file, {.k = 5}); });
  refused([&] {
    Index flat("Flat");
    flat.add(file);
  });
}

// Rows that nobody stores.
class Counting final : public RowReader {
 public:
  const std::string& path() const override { return name_; }
  DType dtype() const override { return DType::u8; }
  int64_t rows() const override { return 1000; }
  int64_t cols() const override { return 5; }
  void read_rows(int64_t first, int64_t count, void* out) const override {
    for (int64_t i = 0; i < count * 5; ++i) static_cast<uint8_t*>(out)[i] = static_cast<uint8_t>((first * 5 + i) % 251);
  }

 private:
  std::string name_ = "counted rows";
};

TEST(RowReader, RowsFromElsewhereAreReadLikeAFile) {
  const VectorFile file(std::make_shared<const Counting>());
  EXPECT_EQ(file.path(), "counted rows");
  MatrixBuffer bytes(DType::u8, 1000, 5, "rows", Resources());
  file.read(0, bytes.mutable_view());
  std::vector<float> floats(10 * 9, -1);
  file.read(7, MutableMatrixView(floats.data(), DType::f32, {10, 5, 9}));
  for (int64_t i = 0; i < 10; ++i) {
    const float* const row = floats.data() + i * 9;
    for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(row[c], static_cast<float>(((7 + i) * 5 + c) % 251));
    EXPECT_EQ(row[5], -1);
  }
  KMeans of_reader({.clusters = 3});
  KMeans of_rows({.clusters = 3});
  of_reader.fit(file);
  of_rows.fit(bytes.view());
  EXPECT_TRUE(same_rows(of_reader.snapshot().centres, of_rows.snapshot().centres));
  EXPECT_THROW(VectorFile(std::shared_ptr<const RowReader>()), InvalidArgument);
}

}  // namespace
}  // namespace kith
