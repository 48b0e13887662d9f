// What names and headers say: formats by their endings, datasets behind them, and the facts of a file.
#include <kith/file_info.hpp>

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "io/file_format.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>

namespace kith {
namespace {

using testing::expect_refusal;
using testing::TemporaryDirectory;

TEST(FileName, TheEndingTellsTheFormat) {
  for (const auto& [path, format] : {std::pair{"a.fvecs", "fvecs"},
                                     {"a.bvecs", "bvecs"},
                                     {"a.ivecs", "ivecs"},
                                     {"d/a.fbin", "fbin"},
                                     {"a.f16bin", "f16bin"},
                                     {"a.bf16bin", "bf16bin"},
                                     {"a.u8bin", "u8bin"},
                                     {"a.i8bin", "i8bin"},
                                     {"a.ibin", "ibin"},
                                     {"a.npy", "npy"},
                                     {"a.hdf5", "hdf5"},
                                     {"a.h5", "hdf5"},
                                     {"train-images-idx3-ubyte", "idx"},
                                     {"train-images-idx3-ubyte.gz", "idx"},
                                     {"train-labels.idx1-ubyte", "idx"}}) {
    EXPECT_EQ(name_of(parse_file_name(path).format), format) << path;
  }
}

TEST(FileName, ADatasetStandsBehindAnHdf5File) {
  const FileName plain = parse_file_name("d/sift.hdf5");
  EXPECT_EQ(plain.file, "d/sift.hdf5");
  EXPECT_EQ(plain.dataset, "train");
  const FileName named = parse_file_name("d/sift.hdf5::test");
  EXPECT_EQ(named.path, "d/sift.hdf5::test");
  EXPECT_EQ(named.file, "d/sift.hdf5");
  EXPECT_EQ(named.dataset, "test");
  EXPECT_EQ(parse_file_name("a.h5::/group/x.fbin").dataset, "/group/x.fbin");
  EXPECT_EQ(parse_file_name("a::b.h5::c").file, "a::b.h5");
  EXPECT_EQ(parse_file_name("a.h5::c::d").dataset, "c::d");
  EXPECT_EQ(parse_file_name("a.h5:::c").dataset, ":c");
  EXPECT_EQ(parse_file_name("a.h5::b.h5::c").file, "a.h5");
  EXPECT_EQ(parse_file_name("odd::name.fbin").file, "odd::name.fbin");
  EXPECT_EQ(parse_file_name("odd::name.hdf5").file, "odd::name.hdf5");
  expect_refusal<InvalidArgument>([] { parse_file_name("a.hdf5::"); }, "names no dataset");
  expect_refusal<InvalidArgument>([] { parse_file_name("a.npy::train"); }, "known extensions are");
}

TEST(FileInfo, FileOfTakesAnyPath) {
  EXPECT_EQ(file_of("a.hdf5::test"), "a.hdf5");
  EXPECT_EQ(file_of("a.fbin"), "a.fbin");
  EXPECT_EQ(file_of("no ending"), "no ending");
}

TEST(FileInfo, EndingsSayWhatAFileWouldHold) {
  EXPECT_EQ(content_by_extension("a.ivecs"), FileContent::ids);
  EXPECT_EQ(content_by_extension("a.ibin"), FileContent::ids);
  EXPECT_EQ(content_by_extension("a.bvecs"), FileContent::vectors);
  EXPECT_EQ(content_by_extension("a-idx3-ubyte.gz"), FileContent::vectors);
  EXPECT_EQ(content_by_extension("a.npy"), std::nullopt);
  EXPECT_EQ(content_by_extension("a.hdf5::neighbors"), std::nullopt);
  EXPECT_EQ(dtype_in("a.fvecs", DType::u8), DType::f32);
  EXPECT_EQ(dtype_in("a.bf16bin", DType::u8), DType::bf16);
  EXPECT_EQ(dtype_in("a.npy", DType::i8), DType::i8);
}

TEST(FileInfo, SaysWhatAFileHolds) {
  const TemporaryDirectory directory;
  const uint8_t bytes[6] = {};
  write_vectors(directory.path("v.bvecs"), MatrixView(bytes, 2, 3));
  const FileInfo vectors = file_info(directory.path("v.bvecs"));
  EXPECT_EQ(vectors.format, "bvecs");
  EXPECT_EQ(vectors.content, FileContent::vectors);
  EXPECT_EQ(vectors.dtype, "u8");
  EXPECT_EQ(vectors.rows, 2);
  EXPECT_EQ(vectors.cols, 3);
  EXPECT_EQ(vectors.file_bytes, 14);
  IdFileWriter writer(directory.path("i.npy"), 0, 4);
  writer.commit();
  const FileInfo ids = file_info(directory.path("i.npy"));
  EXPECT_EQ(ids.content, FileContent::ids);
  EXPECT_EQ(ids.dtype, "i64");
  EXPECT_EQ(ids.cols, 4);
}

}  // namespace
}  // namespace kith
