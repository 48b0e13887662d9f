// Indexes larger than memory: files that are written run by run, searched where they lie, and several that are one.
#include <kith/error.hpp>
#include <kith/index.hpp>

#include "index/index_check.hpp"
#include "io/container/container_file.hpp"
#include "io/temporary_directory.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using testing::TemporaryDirectory;

constexpr int64_t kDiskRows = 12'000;
constexpr int64_t kDiskCols = 32;

class OnDisk : public ::testing::TestWithParam<std::string> {
 protected:
  OnDisk()
      : rows(make_floats(Shape::gaussian, kDiskRows, kDiskCols, 5)),
        queries(make_floats(Shape::gaussian, 40, kDiskCols, 6)),
        base(directory.path("base.npy")) {
    write_vectors(base, rows.view());
  }

  Index trained(const IndexParams& params = {}) const {
    Index index(GetParam(), params);
    index.train(rows.view().slice(0, 4000), on_cpu());
    return index;
  }
  // Saved from memory.
  std::string saved(const Index& index, const std::string& name) const {
    index.save(directory.path(name), on_cpu());
    return directory.path(name);
  }
  int64_t files_in_folder() const {
    return std::distance(std::filesystem::directory_iterator(directory.path("")),
                         std::filesystem::directory_iterator());
  }

  void expect_same_searches(const Index& a, const Index& b) const {
    for (const int64_t count : {1, 40}) {
      for (const SearchParams& params : {SearchParams{.k = 10}, SearchParams{.k = 7, .probes = 3},
                                         SearchParams{.k = 300, .probes = 1}, SearchParams{.k = 5, .probes = kAll}}) {
        const MatrixView some = queries.view().slice(0, count);
        expect_same(a.search(some, taken_by(a, params), on_cpu()), b.search(some, taken_by(b, params), on_cpu()));
      }
    }
    std::vector<uint8_t> mask(static_cast<size_t>(a.size()), 0);
    for (size_t i = 0; i < mask.size(); i += 3) mask[i] = 1;
    for (size_t step : {size_t{3}, size_t{501}}) {
      for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % step == 0 ? 1 : 0;
      const RowFilter filter = RowFilter::mask(mask.data(), static_cast<int64_t>(mask.size()));
      expect_same(a.search(queries.view(), {.k = 9, .filter = filter}, on_cpu()),
                  b.search(queries.view(), {.k = 9, .filter = filter}, on_cpu()));
    }
    const RangeNeighbors x = a.range_search(queries.view(), range_taken_by(a, {.radius = 4.0f, .probes = 2}), on_cpu());
    const RangeNeighbors y = b.range_search(queries.view(), range_taken_by(b, {.radius = 4.0f, .probes = 2}), on_cpu());
    ASSERT_EQ(x.size(), y.size());
    EXPECT_TRUE(std::equal(x.ids(), x.ids() + x.size(), y.ids()));
  }

  TemporaryDirectory directory;
  reference::Matrix<float> rows;
  reference::Matrix<float> queries;
  std::string base;
};

// The least limit that the call names, which works, writes the bytes of the index in memory; so do larger ones.
TEST_P(OnDisk, AFileWrittenUnderALimitHasTheBytesOfTheIndexInMemory) {
  const Index index = trained();
  Index whole = index.to(Device::automatic());
  whole.add(VectorFile(base), {}, on_cpu());
  const std::string expected = directory.read(std::filesystem::path(saved(whole, "whole.kith")).filename());
  int64_t limit = 50'000;
  for (; limit < 100'000'000; limit = limit * 2) {
    try {
      index.save_added(VectorFile(base), {}, directory.path("limited.kith"), on_cpu(limit));
      break;
    } catch (const OutOfMemory&) {
    }
  }
  EXPECT_TRUE(directory.read("limited.kith") == expected) << "limit " << limit;
  if (!GetParam().starts_with("OPQ")) {  // whose rotation takes more than its few codes
    EXPECT_LT(limit, static_cast<int64_t>(expected.size()));
  }
  for (const int64_t more : {limit * 2, limit * 8}) {
    index.save_added(VectorFile(base), {}, directory.path("limited.kith"), on_cpu(more));
    EXPECT_TRUE(directory.read("limited.kith") == expected) << "limit " << more;
  }
  EXPECT_EQ(files_in_folder(), 3);  // nothing stays behind
  EXPECT_EQ(index.size(), 0);
}

TEST_P(OnDisk, RowsOfOnesOwnIdsBehindOthersInMemoryAndOnDisk) {
  Index index = trained();
  const std::vector<int64_t> first = numbers(4'000, 50'000);
  std::vector<int64_t> second = numbers(8'000);
  std::reverse(second.begin(), second.end());
  index.add(rows.view().slice(0, 4'000), view(first), Ownership::copy, on_cpu());
  const std::string part = saved(index, "part.kith");
  write_vectors(directory.path("more.npy"), rows.view().slice(4'000, 8'000));
  const VectorFile more(directory.path("more.npy"));
  Index whole = index.to(Device::automatic());
  whole.add(more, view(second), on_cpu());
  saved(whole, "whole.kith");
  const int64_t limit = 16'000'000;
  index.save_added(more, view(second), directory.path("a.kith"), on_cpu(limit));
  EXPECT_TRUE(directory.read("a.kith") == directory.read("whole.kith"));
  Index::load(part, {.mmap = true}, on_cpu()).save_added(more, view(second), directory.path("b.kith"), on_cpu(limit));
  EXPECT_TRUE(directory.read("b.kith") == directory.read("whole.kith"));
  EXPECT_THROW(index.save_added(more, view(numbers(8'000, 45'000)), directory.path("c.kith"), on_cpu(limit)),
               InvalidArgument);
}

TEST_P(OnDisk, SearchesOfAMappedFileAreThoseInMemory) {
  Index index = trained();
  index.add(rows.view(), Ownership::copy, on_cpu());
  const std::string path = saved(index, "index.kith");
  for (const LoadParams& params :
       {LoadParams{.mmap = true}, LoadParams{.lists = ListsPlace::disk}, LoadParams{.mmap = true, .verify = true}}) {
    Index mapped = Index::load(path, params, on_cpu());
    EXPECT_EQ(mapped.size(), kDiskRows);
    expect_same_searches(index, mapped);
    EXPECT_EQ(reconstructed(mapped, {5, 11'999}), reconstructed(index, {5, 11'999}));
    EXPECT_THROW(mapped.add(rows.view(), Ownership::copy, on_cpu()), InvalidState);
    EXPECT_THROW(mapped.add(VectorFile(base), {}, on_cpu()), InvalidState);
    EXPECT_THROW(mapped.remove(view({1})), InvalidState);
    EXPECT_THROW(mapped.merge(index), InvalidState);
    EXPECT_THAT(message_of([&] { mapped.train(rows.view()); }), ::testing::HasSubstr("save_added"));
    mapped.save(directory.path("again.kith"), on_cpu());
    EXPECT_TRUE(directory.read("again.kith") == directory.read("index.kith"));
  }
  const Index mapped = Index::load(path, {.mmap = true}, on_cpu());
  EXPECT_LT(mapped.bytes().host, index.bytes().host);
}

TEST_P(OnDisk, SeveralFilesOfOneTrainingAreOneIndex) {
  const Index index = trained();
  const std::vector<int64_t> ends = {0, 3'000, 3'000, 3'001, kDiskRows};
  Index whole = index.to(Device::automatic());
  std::vector<std::string> files;
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    Index shard = index.to(Device::automatic());
    shard.add(rows.view().slice(ends[i], ends[i + 1] - ends[i]), Ownership::copy, on_cpu());
    files.push_back(saved(shard, "shard-" + std::to_string(i) + ".kith"));
    whole.merge(shard, {.shift_ids = true}, on_cpu());
  }
  saved(whole, "whole.kith");
  for (const LoadParams& params : {LoadParams{}, LoadParams{.mmap = true}, LoadParams{.lists = ListsPlace::disk}}) {
    const Index one = Index::load(directory.path("shard-*.kith"), params, on_cpu());
    EXPECT_EQ(one.size(), kDiskRows);
    expect_same_searches(whole, one);
    one.save(directory.path("one.kith"), on_cpu());
    EXPECT_TRUE(directory.read("one.kith") == directory.read("whole.kith"));
  }
  Index::merge_files(files, directory.path("merged.kith"), {.shift_ids = true}, on_cpu(8'000'000));
  EXPECT_TRUE(directory.read("merged.kith") == directory.read("whole.kith"));
  EXPECT_THROW(Index::merge_files(files, directory.path("merged.kith"), {}, on_cpu()), InvalidArgument);

  Index other(GetParam(), {.seed = 77});
  other.train(rows.view().slice(5000, 5000), on_cpu());
  other.add(rows.view().slice(0, 10), Ownership::copy, on_cpu());
  files.push_back(saved(other, "other.kith"));
  if (GetParam() == "Flat") return;
  const std::string said = message_of([&] { Index::load(files, {.mmap = true}, on_cpu()); });
  EXPECT_THAT(said, ::testing::HasSubstr("other.kith"));
  EXPECT_THAT(said, ::testing::HasSubstr("iffer"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, OnDisk,
                         ::testing::Values("Flat", "SQ8", "IVF64,PQ8", "IVF16,Flat", "OPQ8,IVF32,PQ8x4,RFlat",
                                           "IVF16,SQ8,Refine(SQfp16)"),
                         [](const auto& made) {
                           std::string name = made.param;
                           std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
                           return name;
                         });

// What is wrong with a file that is mapped.
class DamagedOnDisk : public ::testing::Test {
 protected:
  DamagedOnDisk() : rows(make_floats(Shape::gaussian, 2000, 8, 5)) {
    Index index("IVF8,SQ8");
    index.train(rows.view(), on_cpu());
    index.add(rows.view(), Ownership::copy, on_cpu());
    index.save(directory.path("x.kith"), on_cpu());
  }
  // Sets one byte of a section.
  void damage(const std::string& name, int64_t at, uint8_t value) {
    const int64_t offset = ContainerFile(directory.path("x.kith")).find(name)->offset;
    std::string bytes = directory.read("x.kith");
    bytes[static_cast<size_t>(offset + at)] = static_cast<char>(value);
    directory.write("x.kith", bytes);
  }
  Index mapped(bool verify = false) const {
    return Index::load(directory.path("x.kith"), {.mmap = true, .verify = verify}, on_cpu());
  }

  TemporaryDirectory directory;
  reference::Matrix<float> rows;
};

TEST_F(DamagedOnDisk, RowsAreFoundBySearchesThatMeetThem) {
  damage("rows", 4 * 1000 + 3, 0x7f);
  const Index index = mapped();
  EXPECT_THROW(index.search(rows.view(), {.k = 3, .probes = 8}, on_cpu()), CorruptFile);
  std::vector<uint8_t> mask(2000, 0);
  mask[5] = 1;
  EXPECT_THROW(index.search(rows.view(), {.k = 1, .filter = RowFilter::mask(mask.data(), 2000)}, on_cpu()),
               CorruptFile);
  EXPECT_THAT(message_of([&] { (void)index.range_search(rows.view(), {.radius = 1, .probes = 8}, on_cpu()); }),
              ::testing::HasSubstr("'rows'"));
  EXPECT_THROW(mapped(true), CorruptFile);
  EXPECT_THROW(index.save(directory.path("y.kith"), on_cpu()), CorruptFile);
  EXPECT_FALSE(std::filesystem::exists(directory.path("y.kith")));
}

TEST_F(DamagedOnDisk, CodesByTheirHash) {
  damage("codes", 100, 0xff);
  (void)mapped().search(rows.view(), {.k = 3, .probes = 8}, on_cpu());
  EXPECT_THROW(mapped(true), CorruptFile);
  EXPECT_THROW(mapped().save(directory.path("y.kith"), on_cpu()), CorruptFile);
}

TEST_F(DamagedOnDisk, OffsetsAndCentresAtOnce) {
  damage("offsets", 8, 0xff);
  EXPECT_THROW(mapped(), CorruptFile);
}

TEST_F(DamagedOnDisk, CentresAtOnce) {
  damage("centres", 3, 0xff);
  EXPECT_THROW(mapped(), CorruptFile);
}

TEST_F(DamagedOnDisk, ACutFile) {
  std::string bytes = directory.read("x.kith");
  bytes.resize(bytes.size() - 100);
  directory.write("x.kith", bytes);
  EXPECT_THROW(mapped(), CorruptFile);
}

// The limit that is named works.
TEST(SaveAdded, NamesALimitThatDoes) {
  const TemporaryDirectory directory;
  const auto rows = make_floats(Shape::gaussian, 20'000, 16, 5);
  write_vectors(directory.path("base.npy"), rows.view());
  Index index("IVF32,PQ4");
  index.train(rows.view(), on_cpu());
  const VectorFile base(directory.path("base.npy"));
  for (const int64_t small : {int64_t{1'000}, int64_t{10'000}}) {
    try {
      index.save_added(base, {}, directory.path("x.kith"), on_cpu(small));
      FAIL();
    } catch (const OutOfMemory& error) {
      EXPECT_NO_THROW(index.save_added(base, {}, directory.path("x.kith"), on_cpu(error.bytes_needed())));
    }
  }
}

}  // namespace
}  // namespace kith
