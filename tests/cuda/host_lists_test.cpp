// How lists on the host are cut into pieces for a GPU, and a sample of them; no GPU is asked.
#include "cuda/parity.hpp"

#include "ivf/search/host_lists_cuda.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kCodeBytes = 3;

// Codes tell the segment's number and, in two bytes, the row.
HostLists make_lists(const std::vector<int64_t>& lengths, uint8_t number) {
  const auto lists = static_cast<int64_t>(lengths.size());
  const int64_t size = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  HostArray<int64_t> offsets(lists + 1, "offsets", on_cpu());
  offsets[0] = 0;
  for (int64_t list = 0; list < lists; ++list) offsets[list + 1] = offsets[list] + lengths[static_cast<size_t>(list)];
  HostArray<uint8_t> codes(size * kCodeBytes, "codes", on_cpu());
  HostArray<uint32_t> rows(size, "rows", on_cpu());
  for (int64_t i = 0; i < size; ++i) {
    rows[i] = static_cast<uint32_t>(i);
    codes[kCodeBytes * i] = number;
    codes[kCodeBytes * i + 1] = static_cast<uint8_t>(i);
    codes[kCodeBytes * i + 2] = static_cast<uint8_t>(i >> 8);
  }
  return {std::make_shared<ListSegment>(std::move(offsets), std::move(codes), std::move(rows), kCodeBytes, on_cpu()),
          nullptr};
}

std::vector<HostLists> two_segments() {
  std::vector<HostLists> all;
  all.push_back(make_lists({0, 40, 100, 0, 7, 2000, 30, 0}, 1));
  all.push_back(make_lists({50, 0, 16, 17, 0, 500, 0, 1}, 2));
  return all;
}

TEST(HostLists, AreCutIntoPiecesOfWholeLists) {
  const std::vector<HostLists> all = two_segments();
  EXPECT_EQ(longest_list(all), 2000);
  for (const int64_t most : {1, 16, 147, 148, 2000, 2037, 1'000'000}) {
    SCOPED_TRACE(most);
    std::vector<int64_t> ends(all.size(), 0);
    for (const ListPiece& piece : cut_into_pieces(all, most)) {
      const ListSegment& segment = *all[piece.segment].segment;
      EXPECT_EQ(piece.first, ends[piece.segment]);
      EXPECT_GT(piece.size(), 0);
      ends[piece.segment] = piece.end;
      int64_t filled = 0;
      int64_t longest = 0;
      for (int64_t list = 0; list < segment.lists(); ++list) {
        const bool begins = segment.offsets()[list] >= piece.first && segment.offsets()[list] < piece.end;
        if (!begins || segment.size_of(list) == 0) continue;
        EXPECT_LE(segment.offsets()[list + 1], piece.end) << list;
        ++filled;
        longest = std::max(longest, segment.size_of(list));
      }
      EXPECT_EQ(piece.filled, filled);
      EXPECT_EQ(piece.longest, longest);
      EXPECT_TRUE(piece.size() <= most || filled == 1) << piece.size();
    }
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(ends[i], all[i].segment->size());
  }
}

TEST(HostLists, ASampleTakesRunsOfEachList) {
  const std::vector<HostLists> all = two_segments();
  const SampleShape shape{2 * SampleShape::kRun};
  const HostArray<int64_t> offsets(9, "offsets", on_cpu());
  const int64_t size = shape.place(all, 8, offsets.data());
  const ListSample sample(all, shape, offsets, on_cpu());
  ASSERT_EQ(sample.rows().size(), size);
  ASSERT_EQ(sample.codes().size(), size * kCodeBytes);
  for (int64_t list = 0; list < 8; ++list) {
    int64_t at = offsets[list];
    for (size_t i = 0; i < all.size(); ++i) {
      const ListSegment& segment = *all[i].segment;
      const int64_t length = segment.size_of(list);
      const int64_t taken = std::min(length, shape.each);
      for (int64_t j = 0; j < taken; ++j, ++at) {
        const int64_t within = length <= shape.each ? j : j / SampleShape::kRun * (length / 2) + j % SampleShape::kRun;
        const auto row = static_cast<uint32_t>(segment.offsets()[list] + within);
        EXPECT_EQ(sample.rows()[at], row);
        EXPECT_EQ(sample.codes()[kCodeBytes * at], i + 1);
        EXPECT_EQ(sample.codes()[kCodeBytes * at + 1], static_cast<uint8_t>(row));
        EXPECT_EQ(sample.codes()[kCodeBytes * at + 2], static_cast<uint8_t>(row >> 8));
      }
    }
    EXPECT_EQ(at, offsets[list + 1]);
  }
}

}  // namespace
}  // namespace kith
