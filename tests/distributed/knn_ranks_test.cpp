#include <kith/distributed.hpp>
#include <kith/error.hpp>

#include "cluster/fitted.hpp"
#include "io/temporary_directory.hpp"
#include "ranks/join_neighbors.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Found {
  std::vector<int64_t> ids;
  std::vector<uint32_t> distances;  // bits
  bool operator==(const Found&) const = default;

  void put(int64_t first, const NeighborsView& part) {
    for (int64_t i = 0; i < part.queries * part.k; ++i) {
      const auto at = static_cast<size_t>(first * part.k + i);
      ids[at] = part.ids[i];
      distances[at] = std::bit_cast<uint32_t>(part.distances[i]);
    }
  }
};

Found room_for(int64_t values) {
  return {std::vector<int64_t>(static_cast<size_t>(values), -7), std::vector<uint32_t>(static_cast<size_t>(values))};
}

Found found_in(Neighbors result) {
  Found found = room_for(result.queries() * result.k());
  found.put(0, result.view());
  return found;
}

constexpr Dealt kBoth[] = {Dealt::queries, Dealt::rows};

void expect_same(const MatrixView& queries, const MatrixView& base, const KnnParams& params) {
  const Found truth = found_in(knn(queries, base, params, cpu_resources(1)));
  for (const int size : {1, 2, 3, 4, 5}) {
    for (const Dealt dealt : kBoth) {
      run_ranks(
          size,
          [&](Communicator& ranks) {
            EXPECT_EQ(found_in(knn(ranks, queries, base, params, cpu_resources(1), dealt)), truth)
                << size << " ranks, " << name_of(dealt);
          },
          1000);
    }
  }
}

TEST(KnnOnRanks, TheSameBytesAsOneProcess) {
  for (const Shape shape : {Shape::gaussian, Shape::near_duplicates, Shape::all_equal, Shape::sorted}) {
    const auto base = make_floats(shape, 531, 17, 1);
    const auto queries = make_floats(shape, 43, 17, 2);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
      expect_same(queries.view(), base.view(), {.k = 7, .metric = metric});
    }
  }
  expect_same(make_bytes(20, 16, 3).view(), make_bytes(300, 16, 4).view(), {.k = 5, .metric = Metric::hamming});
}

TEST(KnnOnRanks, FewRowsAndQueries) {
  for (const int64_t rows : {1, 2, 3, 6}) {
    for (const int64_t queries : {0, 1, 3}) {
      expect_same(make_floats(Shape::gaussian, queries, 4, 1).view(), make_floats(Shape::gaussian, rows, 4, 2).view(),
                  {.k = 4});
    }
  }
}

// What overflows is at infinity, and comes before nothing; a NaN comes last.
TEST(KnnOnRanks, InfiniteAndUndefinedDistances) {
  auto base = make_floats(Shape::huge, 40, 5, 1);
  base.row(3)[0] = base.row(30)[1] = std::numeric_limits<float>::quiet_NaN();
  const auto queries = make_floats(Shape::huge, 6, 5, 2);
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product}) {
    expect_same(queries.view(), base.view(), {.k = 42, .metric = metric, .check_finite = false});
  }
}

TEST(KnnOnRanks, RowsOfF64LoseTheSameOffset) {
  std::vector<double> base;
  for (int i = 0; i < 400; ++i) base.push_back(1e9 + 0.001 * (i * 37 % 101));
  const MatrixView rows(base.data(), 100, 4);
  expect_same(rows.slice(10, 9), rows, {.k = 3});
}

TEST(KnnOnRanks, AFilterKeepsItsRows) {
  const auto base = make_floats(Shape::gaussian, 200, 8, 1);
  const auto queries = make_floats(Shape::gaussian, 11, 8, 2);
  std::vector<uint8_t> keep(200);
  for (size_t i = 0; i < keep.size(); i += 3) keep[i] = 1;
  KnnParams params{.k = 5};
  params.filter = RowFilter::mask(keep.data(), 200);
  const Found truth = found_in(knn(queries.view(), base.view(), params, cpu_resources(1)));
  run_ranks(3, [&](Communicator& ranks) {
    EXPECT_EQ(found_in(knn(ranks, queries.view(), base.view(), params, cpu_resources(1))), truth);
    EXPECT_THROW(knn(ranks, queries.view(), base.view(), params, cpu_resources(1), Dealt::rows), Unsupported);
  });
}

TEST(KnnOnRanks, FilesGoToTheSinksOfTheirQueries) {
  const testing::TemporaryDirectory directory;
  const auto base = make_floats(Shape::gaussian, 700, 12, 1);
  const auto queries = make_floats(Shape::gaussian, 95, 12, 2);
  write_vectors(directory.path("a.npy"), base.view().slice(0, 300));
  write_vectors(directory.path("b.npy"), base.view().slice(300, 400));
  write_vectors(directory.path("q.fbin"), queries.view());
  const KnnParams params{.k = 6};
  const Found truth = found_in(knn(queries.view(), base.view(), params, cpu_resources(1)));
  for (const int size : {1, 2, 3, 4, 5}) {
    for (const Dealt dealt : {Dealt::automatic, Dealt::queries, Dealt::rows}) {
      Found found = room_for(95 * 6);
      std::mutex mutex;
      run_ranks(size, [&](Communicator& ranks) {
        const VectorFile rows(directory.path("?.npy"));
        const VectorFile asked(directory.path("q.fbin"));
        int64_t next = -1;
        const auto sink = [&](int64_t first, const NeighborsView& part) {
          EXPECT_TRUE(next < 0 || first == next);
          next = first + part.queries;
          const std::lock_guard lock(mutex);
          found.put(first, part);
        };
        // A tight limit: batches end elsewhere on each rank.
        const int64_t limit = ranks.rank() == 1 ? int64_t{1} << 20 : kNoLimit;
        knn(ranks, asked, rows, sink, params, cpu_resources(1, limit), dealt);
      });
      EXPECT_EQ(found, truth) << size << " " << name_of(dealt);
    }
  }
}

TEST(KnnOnRanks, ARefusedRowIsNamedAsOneProcessDoes) {
  const testing::TemporaryDirectory directory;
  auto base = make_floats(Shape::gaussian, 100, 4, 1);
  auto queries = make_floats(Shape::gaussian, 20, 4, 2);
  base.row(77)[2] = INFINITY;
  write_vectors(directory.path("a.npy"), base.view().slice(0, 50));
  write_vectors(directory.path("b.npy"), base.view().slice(50, 50));
  write_vectors(directory.path("q.npy"), queries.view());
  queries.row(13)[0] = NAN;
  const auto ignore = [](int64_t, const NeighborsView&) {};
  run_ranks(3, [&](Communicator& ranks) {
    for (const Dealt dealt : kBoth) {
      try {
        const VectorFile asked(directory.path("q.npy"));
        const VectorFile rows(directory.path("[ab].npy"));
        knn(ranks, asked, rows, ignore, {}, cpu_resources(1), dealt);
        ADD_FAILURE() << "nothing was refused";
      } catch (const InvalidArgument& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("rank "), HasSubstr("b.npy"), HasSubstr("27")));
      }
      try {
        knn(ranks, queries.view(), base.view().slice(0, 70), {.k = 3}, cpu_resources(1), dealt);
        ADD_FAILURE() << "nothing was refused";
      } catch (const InvalidArgument& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("rank "), HasSubstr("query"), HasSubstr("13")));
      }
    }
  });
}

// One rank's reads fail in the middle of its rows.
class FailingRows final : public RowReader {
 public:
  FailingRows(const reference::Matrix<float>& rows, bool fails) : rows_(rows), fails_(fails) {}
  const std::string& path() const override { return path_; }
  DType dtype() const override { return DType::f32; }
  int64_t rows() const override { return rows_.rows; }
  int64_t cols() const override { return rows_.cols; }
  void read_rows(int64_t first, int64_t count, void* out) const override {
    if (fails_) throw IoError("cannot read 'somewhere': the mount is gone", path_, 5);
    std::copy_n(rows_.row(first), count * rows_.cols, static_cast<float*>(out));
  }

 private:
  const std::string path_ = "somewhere";
  const reference::Matrix<float>& rows_;
  const bool fails_;
};

TEST(KnnOnRanks, ARankThatCannotReadEndsAllWithItsError) {
  const auto base = make_floats(Shape::gaussian, 500, 6, 1);
  const auto queries = make_floats(Shape::gaussian, 60, 6, 2);
  for (const int broken : {0, 1, 3}) {
    for (const Dealt dealt : kBoth) {
      run_ranks(4, [&](Communicator& ranks) {
        const VectorFile rows(std::make_shared<FailingRows>(base, ranks.rank() == broken));
        const VectorFile asked(std::make_shared<FailingRows>(queries, false));
        const auto ignore = [](int64_t, const NeighborsView&) {};
        try {
          knn(ranks, asked, rows, ignore, {.k = 3}, cpu_resources(1), dealt);
          ADD_FAILURE() << "nothing was thrown";
        } catch (const IoError& error) {
          EXPECT_EQ(error.code(), 5);
          EXPECT_THAT(error.what(), HasSubstr("rank " + std::to_string(broken) + " on "));
          EXPECT_THAT(error.what(), HasSubstr("the mount is gone"));
        }
      });
    }
  }
}

TEST(KnnOnRanks, ASinkThatThrowsEndsAll) {
  const auto base = make_floats(Shape::gaussian, 500, 6, 1);
  const auto queries = make_floats(Shape::gaussian, 60, 6, 2);
  for (const Dealt dealt : kBoth) {
    run_ranks(3, [&](Communicator& ranks) {
      const auto refuse = [&](int64_t, const NeighborsView&) {
        if (ranks.rank() == 1) throw IoError("no space left", "out", 28);
      };
      EXPECT_THROW(
          knn(ranks, VectorFile(std::make_shared<FailingRows>(queries, false)),
              VectorFile(std::make_shared<FailingRows>(base, false)), refuse, {.k = 3}, cpu_resources(1), dealt),
          IoError);
    });
  }
}

TEST(KnnOnRanks, ParametersAreComparedAndChecked) {
  const auto rows = make_floats(Shape::gaussian, 50, 4, 1);
  run_ranks(2, [&](Communicator& ranks) {
    EXPECT_THROW(knn(ranks, rows.view(), rows.view(), {.k = 3 + ranks.rank()}, cpu_resources(1)), InvalidArgument);
    EXPECT_THROW(knn(ranks, rows.view(), rows.view(), {.k = ranks.rank()}, cpu_resources(1)), InvalidArgument);
  });
  EXPECT_EQ(parse_dealt("rows"), Dealt::rows);
  EXPECT_THROW(parse_dealt("columns"), InvalidArgument);
}

TEST(JoinNeighbors, TiesGoToTheSmallerRowAndIdsMayBeWide) {
  const int64_t ids[] = {0, 2, 1, -1};
  const float distances[] = {1, 2, 1, INFINITY};
  const FoundInPart parts[] = {{ids, distances, 2, int64_t{1} << 40}, {}, {ids + 2, distances + 2, 2, 5}};
  int64_t joined[4];
  float joined_distances[4];
  join_neighbors(parts, Metric::l2, {joined, joined_distances, 1, 4, {}});
  EXPECT_THAT(joined, ::testing::ElementsAre(6, int64_t{1} << 40, (int64_t{1} << 40) + 2, -1));
  EXPECT_THAT(joined_distances, ::testing::ElementsAre(1, 1, 2, INFINITY));
}

}  // namespace
}  // namespace kith
