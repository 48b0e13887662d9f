// A second look at candidates with the original vectors of a file: the same as with vectors that the index keeps.
#include <kith/error.hpp>
#include <kith/index.hpp>
#include <kith/vector_file.hpp>

#include "index/index_check.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;
using testing::expect_refusal;

constexpr int64_t kRefineRows = 800;
constexpr int64_t kRefineCols = 12;

class RefineFrom : public ::testing::Test {
 protected:
  Index made(const char* factory, Metric metric = Metric::l2) const {
    Index index(factory, {.metric = metric});
    index.train(base_.view(), on_cpu());
    index.add(base_.view(), Ownership::copy, on_cpu());
    return index;
  }
  VectorFile file(const std::string& name, DType dtype = DType::f32) const {
    write_vectors(directory_.path(name), base_.view(), dtype);
    return VectorFile(directory_.path(name));
  }

  const reference::Matrix<float> base_ = make_floats(Shape::gaussian, kRefineRows, kRefineCols, 1);
  const reference::Matrix<float> queries_ = make_floats(Shape::gaussian, 17, kRefineCols, 2);
  const testing::TemporaryDirectory directory_;
};

TEST_F(RefineFrom, IsRFlatWithoutItsMemory) {
  const VectorFile rows = file("base.fbin");
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
    for (const char* const plain : {"IVF8,PQ3x4", "PQ3x4", "OPQ3,IVF8,PQ3x4"}) {
      const Index index = made(plain, metric);
      const Index keeping = made((std::string(plain) + ",RFlat").c_str(), metric);
      for (const int64_t refine : {0, 1, 3, 1000}) {
        const SearchParams params = taken_by(keeping, {.k = 6, .probes = 5, .refine = refine});
        SearchParams from = params;
        from.refine_from = &rows;
        expect_same(index.search(queries_.view(), from, on_cpu()), keeping.search(queries_.view(), params, on_cpu()));
      }
    }
  }
}

TEST_F(RefineFrom, TakesOtherDtypesAndFormats) {
  const VectorFile halves = file("base.f16bin", DType::f16);
  const VectorFile array = file("base.npy");
  const Index index = made("PQ3x4");
  SearchParams params{.k = 6, .refine = 1000};
  params.refine_from = &array;
  expect_same(index.search(queries_.view(), params, on_cpu()), knn(queries_.view(), base_.view(), {.k = 6}, on_cpu()));
  params.refine_from = &halves;
  const MatrixBuffer rounded = read_vectors(directory_.path("base.f16bin"));
  expect_same(index.search(queries_.view(), params, on_cpu()),
              knn(queries_.view(), rounded.view(), {.k = 6}, on_cpu()));
}

TEST_F(RefineFrom, RowsAreThoseOfTheIds) {
  const VectorFile rows = file("base.fbin");
  Index index = made("IVF8,PQ3x4");
  std::vector<int64_t> even;
  std::vector<int64_t> odd;
  for (int64_t i = 0; i < kRefineRows; ++i) (i % 2 == 0 ? even : odd).push_back(i);
  index.remove(view(even), on_cpu());
  SearchParams params{.k = 6, .probes = kAll, .refine = 1000};
  params.refine_from = &rows;
  const Neighbors found = index.search(queries_.view(), params, on_cpu());
  const Neighbors exact =
      knn(queries_.view(), base_.view(),
          {.k = 6, .filter = RowFilter::rows(odd.data(), static_cast<int64_t>(odd.size()))}, on_cpu());
  expect_same(found, exact);
  index.add(base_.view().slice(0, 1), Ownership::copy, on_cpu());  // has the id 800
  expect_refusal<InvalidArgument>([&] { (void)index.search(queries_.view(), params, on_cpu()); },
                                  "the vector with id 800 was found");
}

TEST_F(RefineFrom, UnderALimitItIsTheSameAndTheLimitIsNamed) {
  const VectorFile rows = file("base.fbin");
  const Index index = made("IVF8,PQ3x4");
  SearchParams params{.k = 50, .probes = 4, .refine = 8};
  params.refine_from = &rows;
  const Neighbors free = index.search(queries_.view(), params, on_cpu());
  const auto error = testing::thrown<OutOfMemory>([&] { (void)index.search(queries_.view(), params, on_cpu(30000)); });
  ASSERT_TRUE(error);
  expect_same(index.search(queries_.view(), params, on_cpu(error->bytes_needed())), free);
}

TEST_F(RefineFrom, WhatDoesNotFitIsRefused) {
  const VectorFile rows = file("base.fbin");
  write_vectors(directory_.path("narrow.fbin"), make_floats(Shape::gaussian, kRefineRows, 5, 1).view());
  const VectorFile narrow(directory_.path("narrow.fbin"));
  auto broken = base_;
  for (int64_t i = 0; i < kRefineRows; ++i) broken.row(i)[2] = NAN;
  write_vectors(directory_.path("broken.fbin"), broken.view());
  const VectorFile nan(directory_.path("broken.fbin"));
  const Index index = made("PQ3x4");
  const auto with = [&](const Index& searched, const VectorFile& from) {
    SearchParams params{.k = 3};
    params.refine_from = &from;
    return searched.search(queries_.view(), params, on_cpu());
  };
  expect_refusal<InvalidArgument>([&] { with(index, narrow); }, "holds vectors of 5 columns, and the index of 12");
  expect_refusal<InvalidArgument>([&] { with(made("PQ3x4,RFlat"), rows); }, "keeps vectors to refine with itself");
  expect_refusal<InvalidArgument>([&] { with(index, nan); }, "refine_from");
  Index empty("PQ3x4");
  empty.train(base_.view(), on_cpu());
  EXPECT_EQ(with(empty, rows).ids()[0], -1);
}

}  // namespace
}  // namespace kith
