// HDF5: files as h5py writes them (the fuzzer's seeds), datasets by name, and what is refused.
#include <kith/error.hpp>
#include <kith/mapped_vectors.hpp>
#include <kith/vector_file.hpp>

#include "io/needs_zlib.hpp"
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
std::string seed(const TemporaryDirectory& directory, const std::string& name, const std::string& of = "") {
  const std::string path = directory.path(name + ".hdf5");
  std::filesystem::copy_file(std::filesystem::path(KITH_FUZZ_CORPUS) / "hdf5" / (of.empty() ? name : of), path);
  return path;
}

auto opening_hdf5(const std::string& path) {
  return [path] { VectorFile file(path); };
}

void expect_counted_values(const std::string& path) {
  const VectorFile file(path);
  ASSERT_EQ(file.rows(), 6) << path;
  ASSERT_EQ(file.cols(), 4) << path;
  const MatrixBuffer all = read_vectors(path, {}, DType::f32);
  const auto* values = static_cast<const float*>(all.view().data());
  for (int i = 0; i < 24; ++i) EXPECT_EQ(values[i], static_cast<float>(i - 5)) << path;
  const MatrixBuffer part = read_vectors(path, {3, 2}, DType::f32);
  EXPECT_EQ(static_cast<const float*>(part.view().data())[7], 14.0F) << path;
}

TEST(Hdf5File, ReadsEveryStorageAndDtype) {
  const TemporaryDirectory directory;
  for (const char* name : {"f32",
                           "f16",
                           "i8",
                           "chunked",
                           "compact",
                           "user_block",
                           "ann_latest",
                           "v0_lzf",
                           "v0_many_links",
                           "v0_nested",
                           "v0_ordered",
                           "v0_attributes",
                           "v0_committed",
                           "v0_offsets_8_lengths_4",
                           "v0_offsets_4_lengths_8",
                           "v0_offsets_2_lengths_8",
                           "v3_offsets_4_lengths_2",
                           "v3_plain",
                           "v3_single_chunk",
                           "v3_implicit",
                           "v3_fixed_array",
                           "v3_extensible",
                           "v3_tree",
                           "v3_nested",
                           "v3_many_links",
                           "v3_attributes"}) {
    expect_counted_values(seed(directory, name));
  }
  EXPECT_EQ(VectorFile(seed(directory, "f16_again", "f16")).dtype(), DType::f16);
  EXPECT_EQ(VectorFile(seed(directory, "i8_again", "i8")).dtype(), DType::i8);
  EXPECT_EQ(VectorFile(seed(directory, "u8")).dtype(), DType::u8);
  EXPECT_EQ(VectorFile(seed(directory, "no_rows")).cols(), 4);
  const MatrixBuffer unwritten = read_vectors(seed(directory, "never_written"));
  EXPECT_EQ(static_cast<const float*>(unwritten.view().data())[23], 7.0F);
}

TEST(Hdf5File, ReadsCompressedChunks) {
  KITH_NEEDS_ZLIB();
  const TemporaryDirectory directory;
  for (const char* name :
       {"gzip", "v0_shuffle", "v0_fletcher", "v1_shuffle", "v2_gzip", "v3_single_gzip", "v3_fixed_gzip"}) {
    expect_counted_values(seed(directory, name));
  }
}

// 1,200 chunks: trees of two levels, and arrays of more than one page.
TEST(Hdf5File, ReadsManyChunks) {
  const TemporaryDirectory directory;
  for (const char* name : {"v0_tree", "v3_fixed_pages", "v3_extensible", "v3_tree"}) {
    const std::string path = directory.path(std::string(name) + ".hdf5");
    std::filesystem::copy_file(std::filesystem::path(KITH_MANY_CHUNKS) / name, path);
    const MatrixBuffer all = read_vectors(path);
    const auto* values = reinterpret_cast<const uint8_t*>(all.view().data());
    const int64_t count = all.view().rows() * all.view().cols();
    ASSERT_GE(count, 1200) << name;
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) wrong += values[i] != static_cast<uint8_t>(i % 1200) ? 1 : 0;
    EXPECT_EQ(wrong, 0) << name;
  }
}

TEST(Hdf5File, WhatWasNeverWrittenIsTheFillValue) {
  KITH_NEEDS_ZLIB();
  const TemporaryDirectory directory;
  for (const char* name : {"v0_sparse", "v3_sparse"}) {
    const MatrixBuffer all = read_vectors(seed(directory, name));
    const auto* values = reinterpret_cast<const float*>(all.view().data());
    for (int i = 0; i < 24; ++i) EXPECT_EQ(values[i], i / 8 == 1 ? static_cast<float>(i - 5) : 7.0F) << name;
  }
}

TEST(Hdf5File, FollowsLinksInsideTheFile) {
  const TemporaryDirectory directory;
  for (const char* name : {"v0_nested", "v3_nested"}) {
    const std::string path = seed(directory, name);
    EXPECT_EQ(VectorFile(path + "::a/b/data").rows(), 6);
    EXPECT_EQ(VectorFile(path + "::/a//./link").rows(), 6);
    expect_refusal<InvalidArgument>(opening_hdf5(path + "::circle"), "do they lead in a circle?");
    expect_refusal<InvalidArgument>(opening_hdf5(path + "::a/b"), "is not a dataset but a group");
    expect_refusal<InvalidArgument>(opening_hdf5(path + "::/"), "is not a dataset but a group");
    expect_refusal<InvalidArgument>(opening_hdf5(path + "::a/c"), "it holds: a, circle, train. Name one");
  }
  for (const char* name : {"v0_many_links", "v3_many_links"}) {
    const std::string path = directory.path(std::string(name) + "_2.hdf5");
    seed(directory, std::string(name) + "_2", name);
    EXPECT_EQ(VectorFile(path + "::link000").rows(), 6);
    EXPECT_EQ(VectorFile(path + "::link017").rows(), 6);
    expect_refusal<InvalidArgument>(opening_hdf5(path + "::link"), "has no dataset 'link'; it holds: link0");
    expect_refusal<InvalidArgument>(opening_hdf5(path + "::zzz"), ", ...");
  }
}

TEST(Hdf5File, ReadsTheDatasetsOfAnnBenchmarks) {
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
  expect_refusal<InvalidArgument>(opening_hdf5(path + "::neighbors"), "holds ids (i32), not vectors");
  expect_refusal<InvalidArgument>(opening_hdf5(path + "::train/nothing"), "has no dataset 'train/nothing'");
  expect_refusal<InvalidArgument>(opening_hdf5(path + "::nothing/train"), "has no dataset 'nothing/train'");
  expect_refusal<InvalidArgument>(opening_hdf5(path + "::nothing"),
                                  "it holds: distances, neighbors, test, train. Name one as");
  EXPECT_EQ(file_info(path + "::test").file_bytes, static_cast<int64_t>(std::filesystem::file_size(path)));
}

TEST(Hdf5File, RefusesOtherTypesAndShapes) {
  const TemporaryDirectory directory;
  const auto refuse = [&](const std::string& name, const std::string& reason) {
    const std::string path = seed(directory, name);
    expect_refusal<InvalidArgument>(opening_hdf5(path), "'" + path + "'");
    expect_refusal<InvalidArgument>(opening_hdf5(path), reason);
    std::filesystem::remove(path);
  };
  refuse("f64", "holds 64-bit floating-point numbers; supported are");
  refuse("f64", "little-endian; store x.astype('<f4')");
  refuse("big_endian", "holds 32-bit big-endian floating-point numbers; supported are");
  refuse("big_endian", "; store x.astype('<f4')");
  refuse("v0_bfloat16", "holds 16-bit floating-point numbers with 8 bits of exponent and 7 of mantissa (bfloat16);");
  refuse("v0_seven_bits", "holds 8-bit unsigned integers with 7 bits in use from bit 0; supported are");
  refuse("v0_u32", "holds 32-bit unsigned integers; supported are");
  refuse("v0_u32", "; store vectors as x.astype('u1') or x.astype('<f4'), ids as x.astype('<i8')");
  refuse("bool", "holds an enumeration");
  refuse("one_axis", "the dataset has 1 dimensions");
  refuse("huge_chunk", "chunks of 16384 x 1024 values take 64 MiB; the limit is 16 MiB");
  refuse("group", "is not a dataset but a group");
  refuse("no_train", "has no dataset 'train'; it holds: test. Name one as");
  const auto unsupported = [&](const std::string& name, const std::string& reason) {
    expect_refusal<Unsupported>(opening_hdf5(seed(directory, name)), reason);
  };
  unsupported("external_link", "'train' is a link to another file");
  unsupported("external_values", "are in other files");
  unsupported("v3_virtual", "are in other files");
  unsupported("v0_scale_offset", "compressed by scale-offset; known are gzip");
}

TEST(Hdf5File, DamagedFiles) {
  const TemporaryDirectory directory;
  for (const char* name : {"empty", "text"}) {
    const std::string path = seed(directory, name);
    expect_corrupt(opening_hdf5(path), path, 0, "not an HDF5 file: its signature is neither at the beginning");
  }
  const std::string alone = seed(directory, "signature_alone");
  expect_corrupt(opening_hdf5(alone), alone, 8, "the superblock ends 1 bytes early");
  const std::string cut = seed(directory, "cut");
  expect_corrupt(opening_hdf5(cut), cut, 2135, "promises 9 bytes more; it is truncated");
}

TEST(Hdf5File, DamagedChunks) {
  KITH_NEEDS_ZLIB();
  const TemporaryDirectory directory;
  const auto damage = [&](const std::string& name, const std::string& reason) {
    const std::string path = seed(directory, name);
    std::string bytes = directory.read(name + ".hdf5");
    bytes[bytes.size() - 3] ^= '\x10';  // inside of the last chunk
    directory.write(name + ".hdf5", bytes);
    const auto error = thrown<CorruptFile>([&] { read_vectors(path); });
    ASSERT_TRUE(error);
    EXPECT_THAT(error->what(), ::testing::HasSubstr(reason));
  };
  damage("v0_shuffle", "a chunk is not valid gzip data");
  damage("v0_fletcher", "the checksum of a chunk is wrong");
  damage("v3_fixed_gzip", "the checksum of a chunk is wrong");
}

TEST(Hdf5File, AHugePromiseIsAnErrorOfMemory) {
  const TemporaryDirectory directory;
  const std::string path = seed(directory, "huge_sparse");
  ResourceOptions options;
  options.host_memory_limit = 1 << 20;
  EXPECT_THROW(read_vectors(path, {}, Resources(options)), OutOfMemory);
  EXPECT_EQ(read_vectors(path, {int64_t{1} << 39, 3}, Resources(options)).cols(), 1024);
}

TEST(Hdf5File, WritesOneDatasetTheSameEveryTime) {
  const TemporaryDirectory directory;
  const float values[] = {1, 2, 3, 4, 5, 6};
  write_vectors(directory.path("a.hdf5"), MatrixView(values, 2, 3));
  write_vectors(directory.path("b.h5"), MatrixView(values, 2, 3));
  EXPECT_EQ(directory.read("a.hdf5") == directory.read("b.h5"), true);
  std::filesystem::remove(directory.path("a.hdf5"));
  for (const std::string name : {"group/inner/x", "/group//inner/x"}) {  // the second takes the place of the first
    write_vectors(directory.path("a.hdf5") + "::" + name, MatrixView(values, 3, 2));
  }
  EXPECT_EQ(read_vectors(directory.path("a.hdf5") + "::/group/inner/x").rows(), 3);
  expect_refusal<InvalidArgument>(opening_hdf5(directory.path("a.hdf5")), "it holds: group");
  EXPECT_EQ(directory.names(), (std::set<std::string>{"a.hdf5", "b.h5"}));
  expect_refusal<InvalidArgument>([&] { VectorFileWriter writer(directory.path("c.hdf5"), DType::bf16, 1, 1); },
                                  "write .bf16bin, or convert");
  for (const std::string name : {"/", ".", "//./"}) {
    expect_refusal<InvalidArgument>(
        [&] { VectorFileWriter writer(directory.path("c.hdf5") + "::" + name, DType::f32, 1, 1); }, "names no dataset");
  }
  const std::string long_name(40'000, 'x');
  expect_refusal<InvalidArgument>(
      [&] { VectorFileWriter writer(directory.path("c.hdf5") + "::" + long_name, DType::f32, 1, 1); },
      "no part of a dataset's name has a zero byte or more than");
  EXPECT_EQ(directory.names(), (std::set<std::string>{"a.hdf5", "b.h5"}));
}

TEST(Hdf5File, NamesOfDatasetsMayHoldColons) {
  const TemporaryDirectory directory;
  const float values[] = {1, 2, 3, 4, 5, 6};
  for (const std::string name : {":x", "a::b", "c.h5::d"}) {
    const std::string path = directory.path("f" + std::to_string(name.size()) + ".h5") + "::" + name;
    write_vectors(path, MatrixView(values, 2, 3));
    EXPECT_EQ(read_vectors(path).rows(), 2) << name;
  }
  EXPECT_EQ(directory.names(), (std::set<std::string>{"f2.h5", "f4.h5", "f7.h5"}));
}

TEST(Hdf5File, AFileThatHoldsMoreIsNotReplaced) {
  const TemporaryDirectory directory;
  const float values[] = {1, 2, 3, 4, 5, 6};
  const auto write = [&](const std::string& path) {
    return [path, &values] { write_vectors(path, MatrixView(values, 2, 3)); };
  };
  const auto keeps = [&](const std::string& of, const std::string& dataset, const std::string& reason) {
    const std::string path = seed(directory, "kept", of);
    const std::string before = directory.read("kept.hdf5");
    expect_refusal<InvalidArgument>(write(path + dataset), "'" + path + "' already exists and ");
    expect_refusal<InvalidArgument>(write(path + dataset), reason);
    expect_refusal<InvalidArgument>(write(path + dataset), "choose another file name, or remove the file first");
    EXPECT_EQ(directory.read("kept.hdf5") == before, true) << of;
    EXPECT_EQ(directory.names(), (std::set<std::string>{"kept.hdf5"}));
    std::filesystem::remove(path);
  };
  const std::string all = "holds: distances, neighbors, test, train, and attributes; writing '";
  keeps("ann_benchmarks", "::extra", all + "extra' would replace all of it");
  keeps("ann_benchmarks", "", all + "train' would replace all of it");
  keeps("ann_latest", "::test", all);
  keeps("f32", "::test", "holds: train;");
  keeps("f32", "::train/inner", "holds: train;");
  keeps("v0_nested", "::a/b/data", "holds: a, circle, train;");
  keeps("v3_many_links", "", ", ...; writing");
  keeps("v3_many_links", "::extra", ", ...; writing");
  keeps("group", "", "holds: train;");
  keeps("v0_root_attribute", "", "holds: train, and attributes;");
  keeps("v3_root_attributes", "", "holds: train, and attributes;");
  keeps("external_link", "", "holds: train;");
  keeps("text", "", "cannot be read as HDF5");
  keeps("cut", "", "cannot be read as HDF5");
}

TEST(Hdf5File, AFileOfThatOneDatasetIsReplaced) {
  const TemporaryDirectory directory;
  const float values[] = {1, 2, 3, 4, 5, 6};
  for (const char* name : {"f32", "f64", "i32", "gzip", "v3_plain", "v3_attributes", "user_block", "empty"}) {
    const std::string path = seed(directory, name);
    write_vectors(path, MatrixView(values, 2, 3));
    EXPECT_EQ(VectorFile(path).rows(), 2) << name;
  }
}

TEST(Hdf5File, IsMappedWhereItLiesInOnePiece) {
  const TemporaryDirectory directory;
  for (const char* name : {"f32", "user_block"}) {
    const MappedVectors mapped(seed(directory, name));
    EXPECT_EQ(reinterpret_cast<const float*>(mapped.view().row(5))[3], 18.0F);
  }
  for (const char* name : {"chunked", "gzip", "never_written"}) {
    const std::string path = seed(directory, name);
    expect_refusal<InvalidArgument>([&] { MappedVectors refused(path); }, "cannot be mapped");
  }
}

TEST(Hdf5File, ManyThreadsReadChunks) {
  KITH_NEEDS_ZLIB();
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
