#include <kith/error.hpp>

#include "ivf/ivf_check.hpp"

#include <cstring>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

TEST(ListSegment, HoldsEveryRowInItsListInOrder) {
  const auto rows = make_floats(Shape::gaussian, 500, 8, 1);
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
    const auto model = train(kProduct, metric, rows, 9);
    const reference::Ivf truth(*model, rows);
    const Segment segment = build_segment(*model, rows.view(), 0, on_cpu());
    ASSERT_EQ(segment->size(), 500);
    for (int64_t list = 0; list < 9; ++list) {
      for (int64_t i = segment->offsets()[list]; i < segment->offsets()[list + 1]; ++i) {
        ASSERT_EQ(truth.list(segment->rows()[i]), list);
        ASSERT_EQ(segment->list_of(i), list);
      }
    }
  }
}

TEST(ListSegment, IsTheSameForAnyThreadsAndDtype) {
  const auto bytes = reference::make_bytes(700, 8, 2);
  const auto floats = reference::widened(bytes);
  const auto model = train(kProduct, Metric::l2, floats, 9);
  const Segment one = build_segment(*model, floats.view(), 0, on_cpu(1));
  expect_same_segment(*one, *build_segment(*model, floats.view(), 0, on_cpu(3)));
  expect_same_segment(*one, *build_segment(*model, bytes.view(), 0, on_cpu(2)));
}

TEST(ListSegment, MergedIsAsBuiltAtOnce) {
  const auto rows = make_floats(Shape::gaussian, 300, 8, 3);
  const auto model = train(kProduct, Metric::l2, rows, 9);
  const Segment whole = build_segment(*model, rows.view(), 0, on_cpu());
  expect_same_segment(*whole, *merge_segments(segments_of(*model, rows, 4), on_cpu()));
  expect_same_segment(*whole, *merge_segments(segments_of(*model, rows, 300), on_cpu()));  // row by row
  expect_same_segment(*whole, *merge_segments({whole}, on_cpu()));
}

TEST(ListSegment, WithoutSomeRowsIsAsIfTheyHadNeverBeenAdded) {
  const auto rows = make_floats(Shape::gaussian, 300, 8, 4);
  const auto model = train(kProduct, Metric::l2, rows, 9);
  std::vector<uint8_t> mask(300);
  reference::Matrix<float> left(0, 8);
  for (size_t i = 0; i < 300; ++i) {
    mask[i] = i % 7 != 3;
    if (!mask[i]) continue;
    ++left.rows;
    left.values.insert(left.values.end(), rows.row(static_cast<int64_t>(i)), rows.row(static_cast<int64_t>(i)) + 8);
  }
  KeptRows kept(RowFilter::mask(mask.data(), 300), 300, on_cpu());
  kept.bits(on_cpu());
  const Segment whole = build_segment(*model, rows.view(), 0, on_cpu());
  expect_same_segment(*build_segment(*model, left.view(), 0, on_cpu()), *without(*whole, kept, on_cpu()));
  const std::vector<uint8_t> all(300, 1);
  KeptRows everything(RowFilter::mask(all.data(), 300), 300, on_cpu());
  expect_same_segment(*whole, *without(*whole, everything, on_cpu()));
}

TEST(ListSegment, ReconstructsRowsInAnyOrder) {
  const auto rows = make_floats(Shape::gaussian, 3000, 8, 5);
  for (const IvfCase& one : all_ivf_cases()) {
    SCOPED_TRACE(one);
    const auto model = train(one, Metric::l2, rows, 9);
    const reference::Ivf truth(*model, rows);
    const auto segments = segments_of(*model, rows, 3);
    for (const int64_t count : {1, 3000}) {
      std::vector<int64_t> numbers;
      for (int64_t i = 0; i < count; ++i) numbers.push_back((i * 1999 + 77) % 3000);
      reference::Matrix<float> out(count, 8);
      reconstruct_rows(*model, segments, numbers.data(), count, MutableMatrixView(out.values.data(), count, 8),
                       on_cpu());
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(std::memcmp(out.row(i), truth.vector(numbers[static_cast<size_t>(i)]), 32), 0) << i;
      }
    }
    const int64_t beyond[] = {5, 3000};
    reference::Matrix<float> out(2, 8);
    EXPECT_THROW(reconstruct_rows(*model, segments, beyond, 2, MutableMatrixView(out.values.data(), 2, 8), on_cpu()),
                 InvalidArgument);
  }
}

TEST(ListSegment, RefusesArraysThatDoNotGoTogether) {
  const auto make = [](std::vector<int64_t> offsets, std::vector<uint32_t> rows, int64_t codes) {
    HostArray<int64_t> o(static_cast<int64_t>(offsets.size()), "offsets", on_cpu());
    std::copy(offsets.begin(), offsets.end(), o.begin());
    HostArray<uint32_t> r(static_cast<int64_t>(rows.size()), "rows", on_cpu());
    std::copy(rows.begin(), rows.end(), r.begin());
    return ListSegment(std::move(o), HostArray<uint8_t>(codes, "codes", on_cpu()), std::move(r), 2, on_cpu());
  };
  EXPECT_EQ(make({0, 1, 3}, {5, 1, 2}, 6).size(), 3);
  EXPECT_THROW(make({0, 1, 3}, {5, 2, 1}, 6), InvalidArgument);
  EXPECT_THROW(make({0, 1, 3}, {5, 1, 2}, 5), InvalidArgument);
  EXPECT_THROW(make({0, 4, 3}, {5, 1, 2}, 6), InvalidArgument);
  EXPECT_THROW(make({0, 2}, {5, 1, 2}, 6), InvalidArgument);
  EXPECT_THROW(make({}, {}, 0), InvalidArgument);
}

}  // namespace
}  // namespace kith
