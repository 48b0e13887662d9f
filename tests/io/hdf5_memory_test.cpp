// Chunks of HDF5 files count against the memory limit, for as long as a call that reads them lasts.
#include <kith/error.hpp>
#include <kith/kmeans.hpp>
#include <kith/knn.hpp>
#include <kith/range_search.hpp>
#include <kith/vector_file.hpp>

#include "core/memory_budget.hpp"
#include "io/hdf5/filters.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

namespace kith {
namespace {

using testing::TemporaryDirectory;
using testing::thrown;

// 6 x 4 f32 in chunks of 4 x 3: two in each row.
constexpr int64_t kBuffer = hdf5_buffer_bytes(4 * 3 * 4);
constexpr int64_t kPlainChunks = 2 * kBuffer;
constexpr int64_t kPackedChunks = 3 * kBuffer;  // and one while a chunk is unpacked

Resources limited(int64_t bytes) {
  ResourceOptions options;
  options.threads = 1;
  options.host_memory_limit = bytes;
  return Resources(options);
}

class Hdf5Memory : public ::testing::Test {
 protected:
  std::string seed(const std::string& name) const {
    const std::string path = directory_.path(name + ".hdf5");
    std::filesystem::copy_file(std::filesystem::path(KITH_FUZZ_CORPUS) / "hdf5" / name, path,
                               std::filesystem::copy_options::overwrite_existing);
    return path;
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(Hdf5Memory, IsTakenFromTheLimitAndGivenBack) {
  const VectorFile file(seed("v0_lzf"));
  const Resources resources = limited(kPackedChunks);
  {
    const ReadMemory memory = file.reserve_memory(resources);
    EXPECT_EQ(resources.host_memory()->used(), kPackedChunks);
    std::vector<float> row(4);
    for (int64_t i = 0; i < file.rows(); ++i) file.read(i, MutableMatrixView(row.data(), 1, 4));
    EXPECT_EQ(row[3], 18.0F);
  }
  EXPECT_EQ(resources.host_memory()->used(), 0);
}

TEST_F(Hdf5Memory, OutlivesItsFile) {
  const Resources resources = limited(kPackedChunks);
  ReadMemory memory = VectorFile(seed("v0_lzf")).reserve_memory(resources);
  EXPECT_EQ(resources.host_memory()->used(), kPackedChunks);
  memory.reset();
  EXPECT_EQ(resources.host_memory()->used(), 0);
}

TEST_F(Hdf5Memory, FollowsTheChunks) {
  const auto needed = [&](const char* name) {
    const Resources resources = limited(1 << 20);
    const ReadMemory memory = VectorFile(seed(name)).reserve_memory(resources);
    return resources.host_memory()->used();
  };
  EXPECT_EQ(needed("v3_fixed_array"), kPlainChunks);
  EXPECT_EQ(needed("v0_lzf"), kPackedChunks);
  EXPECT_EQ(needed("v3_plain"), 0);
  EXPECT_EQ(needed("compact"), 0);
  EXPECT_EQ(needed("never_written"), 0);
}

TEST_F(Hdf5Memory, OneByteTooFewIsAnErrorWithTheBytesNeeded) {
  const std::string path = seed("v0_lzf");
  const VectorFile file(path);
  const Resources resources = limited(kPackedChunks - 1);
  const auto expect_error = [&](const auto& call) {
    const auto error = thrown<OutOfMemory>(call);
    ASSERT_TRUE(error);
    EXPECT_GE(error->bytes_needed(), kPackedChunks) << error->what();
    EXPECT_THAT(error->what(), ::testing::HasSubstr("not enough memory for"));
    EXPECT_EQ(resources.host_memory()->used(), 0);
  };
  EXPECT_EQ(thrown<OutOfMemory>([&] { (void)file.reserve_memory(resources); })->bytes_needed(), kPackedChunks);
  EXPECT_EQ(file.memory_bytes(), kPackedChunks);
  expect_error([&] { (void)file.reserve_memory(resources); });
  expect_error([&] { (void)read_vectors(path, {}, resources); });
  expect_error([&] {
    knn(
        file, VectorFile(seed("v3_plain")), [](auto&&...) {}, {.k = 1}, resources);
  });
  expect_error([&] {
    range_search(
        VectorFile(seed("v3_plain")), file, [](auto&&...) {}, {}, resources);
  });
  expect_error([&] {
    KMeansParams params;
    params.clusters = 2;
    KMeans(params).fit(file, {}, resources);
  });
}

TEST_F(Hdf5Memory, ASearchNamesTheLimitOfTheWhole) {
  const VectorFile file(seed("v0_lzf"));
  const auto search = [&](int64_t limit) {
    knn(
        file, file, [](auto&&...) {}, {.k = 1}, limited(limit));
  };
  const auto error = thrown<OutOfMemory>([&] { search(kPackedChunks); });
  ASSERT_TRUE(error);
  EXPECT_GT(error->bytes_needed(), 2 * kPackedChunks);
  search(error->bytes_needed());
}

TEST_F(Hdf5Memory, ReadingWithinTheLimitGivesTheSameValues) {
  const std::string path = seed("v0_lzf");
  constexpr int64_t kValues = 6 * 4 * 4;
  const MatrixBuffer values = read_vectors(path, {}, limited(kPackedChunks + kValues));
  EXPECT_EQ(static_cast<const float*>(values.view().data())[23], 18.0F);
  EXPECT_THROW((void)read_vectors(path, {}, limited(kPackedChunks + kValues - 1)), OutOfMemory);
}

}  // namespace
}  // namespace kith
