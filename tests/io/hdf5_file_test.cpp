// HDF5: files as h5py writes them (the fuzzer's seeds), datasets by name, and what is refused.
#include <kith/error.hpp>
#include <kith/mapped_vectors.hpp>
#include <kith/vector_file.hpp>

#include "io/needs_hdf5.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>
#include <vector>

namespace kith {
namespace {

using testing::expect_corrupt;
using testing::expect_refusal;
using testing::TemporaryDirectory;
using testing::thrown;

// The seeds hold 6 x 4 values, counted from -5 along the rows, as `train`.
std::string seed(const TemporaryDirectory& directory, const std::string& name) {
  const std::string path = directory.path(name + ".hdf5");
  std::filesystem::copy_file(std::filesystem::path(KITH_FUZZ_CORPUS) / "hdf5" / name, path);
  return path;
}

auto opening(const std::string& path) {
  return [path] { VectorFile file(path); };
}

TEST(Hdf5File, ReadsEveryStorageAndDtype) {
  KITH_NEEDS_HDF5();
  const TemporaryDirectory directory;
  for (const auto& [name, dtype] : {std::pair{"f32", DType::f32},
                                    {"f16", DType::f16},
                                    {"i8", DType::i8},
                                    {"chunked", DType::f32},
                                    {"gzip", DType::f32},
                                    {"compact", DType::f32},
                                    {"user_block", DType::f32},
                                    {"ann_latest", DType::f32}}) {
    const std::string path = seed(directory, name);
    const VectorFile file(path);
    EXPECT_EQ(file.dtype(), dtype) << name;
    ASSERT_EQ(file.rows(), 6) << name;
    ASSERT_EQ(file.cols(), 4) << name;
    const MatrixBuffer all = read_vectors(path, {}, DType::f32);
    const auto* values = static_cast<const float*>(all.view().data());
    for (int i = 0; i < 24; ++i) EXPECT_EQ(values[i], static_cast<float>(i - 5)) << name;
    const MatrixBuffer part = read_vectors(path, {3, 2}, DType::f32);
    EXPECT_EQ(static_cast<const float*>(part.view().data())[7], 14.0F) << name;
  }
  EXPECT_EQ(VectorFile(seed(directory, "u8")).dtype(), DType::u8);
  EXPECT_EQ(VectorFile(seed(directory, "no_rows")).cols(), 4);
  const MatrixBuffer unwritten = read_vectors(seed(directory, "never_written"));
  EXPECT_EQ(static_cast<const float*>(unwritten.view().data())[23], 7.0F);
}

TEST(Hdf5File, ReadsTheDatasetsOfAnnBenchmarks) {
  KITH_NEEDS_HDF5();
  const TemporaryDirectory directory;
  const std::string path = seed(directory, "ann_benchmarks");
  EXPECT_EQ(VectorFile(path).rows(), 6);
  EXPECT_EQ(VectorFile(path + "::train").rows(), 6);
  EXPECT_EQ(VectorFile(path + "::test").rows(), 2);
  EXPECT_EQ(VectorFile(path + "::/distances").cols(), 2);
  EXPECT_EQ(content_of(path + "::neighbors"), FileContent::ids);
  const IdFile neighbors(path + "::neighbors");
  std::vector<int64_t> ids(4);
  neighbors.read(0, 2, ids.data());
  EXPECT_EQ(ids, (std::vector<int64_t>{1, 0, 0, 1}));
  expect_refusal<InvalidArgument>(opening(path + "::neighbors"), "holds ids (i32), not vectors");
  expect_refusal<InvalidArgument>(opening(path + "::train/nothing"), "has no dataset 'train/nothing'");
  expect_refusal<InvalidArgument>(opening(path + "::nothing/train"), "has no dataset 'nothing/train'");
  expect_refusal<InvalidArgument>(opening(path + "::nothing"),
                                  "it holds: distances, neighbors, test, train. Name one as");
  EXPECT_EQ(file_info(path + "::test").file_bytes, static_cast<int64_t>(std::filesystem::file_size(path)));
}

TEST(Hdf5File, RefusesOtherTypesAndShapes) {
  KITH_NEEDS_HDF5();
  const TemporaryDirectory directory;
  const auto refuse = [&](const std::string& name, const std::string& reason) {
    const std::string path = seed(directory, name);
    expect_refusal<InvalidArgument>(opening(path), "'" + path + "'");
    expect_refusal<InvalidArgument>(opening(path), reason);
  };
  refuse("f64", "holds 64-bit floating-point numbers");
  refuse("big_endian", "holds 32-bit big-endian floating-point numbers");
  refuse("bool", "holds an enumeration");
  refuse("one_axis", "the dataset has 1 dimensions");
  refuse("huge_chunk", "chunks of 16384 x 1024 values take 64 MiB; at most 16 MiB");
  refuse("group", "is no dataset that libhdf5 can open: not a dataset");
  refuse("external_link", "is no dataset that libhdf5 can open: ");
  refuse("no_train", "has no dataset 'train'; it holds: test. Name one as");
  refuse("external_values", "lie in other files");
}

TEST(Hdf5File, DamagedFiles) {
  KITH_NEEDS_HDF5();
  const TemporaryDirectory directory;
  for (const char* name : {"cut", "empty", "text", "signature_alone"}) {
    const std::string path = seed(directory, name);
    expect_corrupt(opening(path), path, 0, "libhdf5 cannot open the file: ");
  }
  const std::string path = seed(directory, "gzip");
  std::string bytes = directory.read("gzip.hdf5");
  for (size_t i = bytes.size() - 60; i < bytes.size(); ++i) bytes[i] = '\x55';  // inside of the last chunk
  directory.write("gzip.hdf5", bytes);
  const auto error = thrown<CorruptFile>([&] { read_vectors(path); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), ::testing::HasSubstr("libhdf5 cannot read"));
}

TEST(Hdf5File, AHugePromiseIsAnErrorOfMemory) {
  KITH_NEEDS_HDF5();
  const TemporaryDirectory directory;
  const std::string path = seed(directory, "huge_sparse");
  ResourceOptions options;
  options.host_memory_limit = 1 << 20;
  EXPECT_THROW(read_vectors(path, {}, Resources(options)), OutOfMemory);
  EXPECT_EQ(read_vectors(path, {int64_t{1} << 39, 3}, Resources(options)).cols(), 1024);
}

TEST(Hdf5File, WritesOneDatasetTheSameEveryTime) {
  KITH_NEEDS_HDF5();
  const TemporaryDirectory directory;
  const float values[] = {1, 2, 3, 4, 5, 6};
  write_vectors(directory.path("a.hdf5"), MatrixView(values, 2, 3));
  write_vectors(directory.path("b.h5"), MatrixView(values, 2, 3));
  EXPECT_EQ(directory.read("a.hdf5") == directory.read("b.h5"), true);
  write_vectors(directory.path("a.hdf5") + "::group/inner/x", MatrixView(values, 3, 2));
  EXPECT_EQ(read_vectors(directory.path("a.hdf5") + "::/group/inner/x").rows(), 3);
  expect_refusal<InvalidArgument>(opening(directory.path("a.hdf5")), "it holds: group");
  EXPECT_EQ(directory.names(), (std::set<std::string>{"a.hdf5", "b.h5"}));
  expect_refusal<InvalidArgument>([&] { VectorFileWriter writer(directory.path("c.hdf5"), DType::bf16, 1, 1); },
                                  "write .bf16bin, or convert");
  expect_refusal<IoError>([&] { VectorFileWriter writer(directory.path("c.hdf5") + "::/", DType::f32, 1, 1); },
                          "libhdf5: ");
  EXPECT_EQ(directory.names(), (std::set<std::string>{"a.hdf5", "b.h5"}));
}

TEST(Hdf5File, IsMappedWhereItLiesInOnePiece) {
  KITH_NEEDS_HDF5();
  const TemporaryDirectory directory;
  const MappedVectors mapped(seed(directory, "f32"));
  EXPECT_EQ(reinterpret_cast<const float*>(mapped.view().row(5))[3], 18.0F);
  for (const char* name : {"chunked", "gzip", "user_block"}) {
    const std::string path = seed(directory, name);
    expect_refusal<InvalidArgument>([&] { MappedVectors refused(path); }, "cannot be mapped");
  }
}

TEST(Hdf5File, ManyThreadsReadChunks) {
  KITH_NEEDS_HDF5();
  const TemporaryDirectory directory;
  const std::string path = seed(directory, "gzip");
  std::vector<int> failures(4, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        const VectorFile file(path);
        std::vector<float> row(4);
        const int first = (i + static_cast<int>(t)) % 6;
        file.read(first, MutableMatrixView(row.data(), 1, 4));
        if (row[3] != static_cast<float>(first * 4 + 3 - 5)) ++failures[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace kith
