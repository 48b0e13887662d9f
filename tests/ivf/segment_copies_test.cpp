#include "ivf/segment/segment_copies.hpp"

#include "ivf/ivf_check.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

TEST(SegmentCopies, OnTheHostItIsTheSegmentThatWasMade) {
  const auto rows = make_floats(Shape::gaussian, 300, 8, 1);
  const auto model = train({"SQ8", {kScalarCode, DType::f32, 8, 0}, true}, Metric::l2, rows, 6);
  const SharedSegment made = make_segment(*model, rows.view(), 40, on_cpu());
  expect_same_segment(*made->on(Device::cpu(), on_cpu()), *build_segment(*model, rows.view(), 40, on_cpu()));
  EXPECT_EQ(made->on(Device::cpu(), on_cpu()), made->on(Device::cpu(), on_cpu()));  // nothing is copied
  EXPECT_TRUE(made->space().host_readable());
  EXPECT_EQ(made->copies().devices(), std::vector<Device>{Device::cpu()});
  EXPECT_EQ(made->copies().find(Device::cuda(0)), nullptr);
  EXPECT_EQ(made->bytes(DeviceKind::cpu), made->made().bytes());
  EXPECT_EQ(made->bytes(DeviceKind::cuda), 0);
  std::vector<int64_t> sizes(6);
  made->made().add_sizes(nullptr, sizes.data(), on_cpu());
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), 300);
  const std::vector<uint64_t> odd(6, 0xAAAAAAAAAAAAAAAA);  // of the rows 40 to 339
  std::fill(sizes.begin(), sizes.end(), 0);
  made->made().add_sizes(odd.data(), sizes.data(), on_cpu());
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), 150);
}

TEST(SegmentCopies, MergedIsAsMadeAtOnce) {
  const auto rows = make_floats(Shape::gaussian, 300, 8, 1);
  const auto model = train({"Flat", {}, false}, Metric::sqeuclidean, rows, 6);
  std::vector<SharedSegment> parts;
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 10}, {10, 200}, {210, 90}}) {
    parts.push_back(make_segment(*model, rows.view().slice(first, count), first, on_cpu()));
  }
  expect_same_segment(*merge_copies(parts, on_cpu())->on(Device::cpu(), on_cpu()),
                      *build_segment(*model, rows.view(), 0, on_cpu()));
  EXPECT_EQ(merge_copies({parts[1]}, on_cpu()), parts[1]);
}

TEST(SegmentCopies, ARowThatIsNotFiniteGoesToTheFirstList) {
  auto rows = make_floats(Shape::gaussian, 200, 8, 1);
  const auto model = train({"Flat", {}, false}, Metric::l2, rows, 5);
  rows.row(3)[2] = NAN;
  const Segment made = make_segment(*model, rows.view(), 0, on_cpu())->on(Device::cpu(), on_cpu());
  const uint32_t* const end = made->rows() + made->offsets()[1];
  EXPECT_NE(std::find(made->rows(), end, 3u), end);
}

}  // namespace
}  // namespace kith
