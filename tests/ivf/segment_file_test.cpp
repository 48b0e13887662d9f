// A segment in a file of its own: written, mapped, read under a limit, and searched as the one that was written.
#include "index/segment_file.hpp"

#include <kith/error.hpp>

#include "core/memory_budget.hpp"
#include "io/temporary_directory.hpp"
#include "ivf/ivf_check.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;

Resources limited() {
  ResourceOptions options;
  options.device = Device::cpu();
  options.host_memory_limit = 1 << 20;
  return Resources(options);
}

TEST(SegmentFile, VectorsAreMappedAsTheyWereWritten) {
  const testing::TemporaryDirectory directory;
  const auto rows = make_bytes(100, 12, 1);
  const MatrixView apart(rows.view().data(), DType::u8, {100, 9, 12});  // rows that do not follow each other
  write_segment(VectorRows(apart), directory.path("vectors"), on_cpu());
  for (const Resources& resources : {on_cpu(), limited()}) {
    const auto mapped = map_vectors(directory.path("vectors"), resources);
    ASSERT_EQ(mapped->size(), 100);
    ASSERT_EQ(mapped->view().cols(), 9);
    for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(std::memcmp(mapped->view().row(i), apart.row(i), 9), 0);
    const bool reads = resources.options().host_memory_limit != kNoLimit;
    EXPECT_EQ(resources.host_memory()->used() > 0, reads);
  }
}

TEST(SegmentFile, ListsAreSearchedInTheMappedFile) {
  const testing::TemporaryDirectory directory;
  const auto rows = make_floats(Shape::gaussian, 400, 8, 1);
  const auto queries = make_floats(Shape::gaussian, 7, 8, 2);
  const auto model = train({"SQ8", {kScalarCode, DType::f32, 8, 0}, true}, Metric::l2, rows, 6);
  const Segment made = build_segment(*model, rows.view(), 0, on_cpu());
  write_segment(*made, directory.path("lists"), on_cpu());
  for (const Resources& resources : {on_cpu(), limited()}) {
    const Segment mapped = map_lists(directory.path("lists"), resources);
    expect_same_segment(*mapped, *made);
    EXPECT_EQ(search(*model, {mapped}, queries, {5, 2}), search(*model, {made}, queries, {5, 2}));
  }
}

TEST(SegmentFile, CodesAreMappedAndNothingElseIs) {
  const testing::TemporaryDirectory directory;
  HostArray<uint8_t> codes(30, "codes", on_cpu());
  for (int64_t i = 0; i < 30; ++i) codes[i] = static_cast<uint8_t>(7 * i);
  const RowCodes made(std::move(codes), 10);
  write_segment(made, directory.path("codes"), on_cpu());
  const auto mapped = map_codes(directory.path("codes"), on_cpu());
  EXPECT_EQ(mapped->size(), 10);
  ASSERT_EQ(mapped->bytes(), 30);
  EXPECT_TRUE(std::equal(made.data(), made.data() + 30, mapped->data()));
  EXPECT_THROW((void)map_lists(directory.path("codes"), on_cpu()), CorruptFile);
  EXPECT_THROW((void)map_vectors(directory.path("codes"), on_cpu()), CorruptFile);
  std::string damaged = directory.read("codes");
  damaged[damaged.size() - 1] ^= 1;
  directory.write("damaged", damaged);
  EXPECT_THROW((void)map_codes(directory.path("damaged"), limited()), CorruptFile);  // read, so hashes are compared
}

}  // namespace
}  // namespace kith
