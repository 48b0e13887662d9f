#include <kith/distributed.hpp>
#include <kith/error.hpp>

#include "cluster/fitted.hpp"
#include "cluster/start/first_centres.hpp"
#include "core/memory_budget.hpp"
#include "io/temporary_directory.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

namespace kith {
namespace {

using reference::make_bytes;
using reference::make_floats;
using reference::Shape;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename Rows>
Fitted fit_on(Communicator& ranks, const Rows& rows, const KMeansParams& params, const KMeansInput& input = {},
              const Resources& resources = cpu_resources(1)) {
  KMeans model(params);
  fit(model, ranks, rows, input, resources);
  return taken(model);
}

void expect_same(const MatrixView& rows, const KMeansParams& params, const KMeansInput& input = {},
                 const std::vector<int>& sizes = {1, 2, 3, 4, 5}) {
  const Fitted truth = fit(rows, params, input);
  for (const int size : sizes) {
    run_ranks(
        size,
        [&](Communicator& ranks) {
          EXPECT_EQ(fit_on(ranks, rows, params, input), truth) << size << " ranks, rank " << ranks.rank();
        },
        4096);
  }
}

KMeansParams wanted(int64_t clusters, int64_t iterations = 4) {
  KMeansParams params;
  params.clusters = clusters;
  params.iterations = iterations;
  return params;
}

// Few centres and many, blocks of sums that end within a rank's rows and beyond them.
TEST(KMeansOnRanks, TheSameBytesAsOneProcess) {
  expect_same(make_floats(Shape::gaussian, 7300, 5, 1).view(), wanted(1, 2));
  expect_same(make_floats(Shape::far_mean, 5300, 5, 1).view(), wanted(7));
  expect_same(make_bytes(9000, 6, 3).view(), wanted(40, 3));
  for (const Shape shape : {Shape::near_duplicates, Shape::all_equal, Shape::tiny}) {
    expect_same(make_floats(shape, 3300, 5, 1).view(), wanted(20, 2), {}, {2, 3});
  }
}

TEST(KMeansOnRanks, FewerRowsThanRanksHaveBlocks) {
  for (const int64_t rows : {1, 3, 900, 1025, 2500}) {
    expect_same(make_floats(Shape::gaussian, rows, 5, 1).view(), wanted(std::min<int64_t>(rows, 3)));
  }
}

TEST(KMeansOnRanks, CandidatesDrawnInRounds) {
  const auto rows = make_floats(Shape::gaussian, 4100, 300, 2);
  const KMeansParams params = wanted(900, 1);
  ASSERT_TRUE(choose_start(params, 4100, 300).oversamples());
  expect_same(rows.view(), params, {}, {2});
}

TEST(KMeansOnRanks, EveryKindOfFit) {
  const auto rows = make_floats(Shape::gaussian, 6000, 8, 4);
  std::vector<float> weights;
  for (int i = 0; i < 6000; ++i) weights.push_back(static_cast<float>(i % 4));
  KMeansInput weighted;
  weighted.weights = {weights.data(), 6000, {}};
  expect_same(rows.view(), wanted(12), weighted);
  KMeansParams params = wanted(12);
  params.spherical = true;
  expect_same(rows.view(), params);
  params = wanted(12);
  params.n_init = 2;
  params.history = false;
  params.tol = 0;
  expect_same(rows.view(), params);
  params = wanted(12);
  params.batch_size = 1500;
  expect_same(rows.view(), params, weighted);
  params = wanted(12);
  params.max_points_per_centre = 100;
  expect_same(rows.view(), params);
  params = wanted(12);
  params.init = KMeansInit::random;
  params.compute_labels = false;
  expect_same(rows.view(), params);
}

// Centres that lie where no row is begin empty and are filled.
TEST(KMeansOnRanks, EmptyCentresAreFilledAlike) {
  const auto rows = make_floats(Shape::gaussian, 5000, 4, 5);
  auto centres = make_floats(Shape::gaussian, 9, 4, 6);
  for (int64_t c = 3; c < 9; ++c) centres.row(c)[0] = 1000.0f + static_cast<float>(c);
  KMeansInput input;
  input.centres = centres.view();
  KMeansParams params = wanted(9);
  params.init = KMeansInit::given;
  for (const bool history : {true, false}) {
    params.history = history;
    expect_same(rows.view(), params, input);
  }
}

TEST(KMeansOnRanks, RowsOfF64LoseTheSameOffset) {
  std::vector<double> values;
  for (int i = 0; i < 8000; ++i) values.push_back(1e9 + 0.001 * (i * 37 % 1009));
  expect_same(MatrixView(values.data(), 2000, 4), wanted(5));
}

// From files, whose rows are kept, or read in pieces under a limit, by some ranks or by all.
TEST(KMeansOnRanks, TheSameFromFilesUnderAnyLimit) {
  const testing::TemporaryDirectory directory;
  const auto rows = make_floats(Shape::gaussian, 19500, 32, 1);
  write_vectors(directory.path("a.npy"), rows.view().slice(0, 8000));
  write_vectors(directory.path("b.npy"), rows.view().slice(8000, 11500));
  const KMeansParams params = wanted(16, 3);
  const Fitted truth = fit(rows.view(), params);
  for (const int size : {1, 2, 3}) {
    for (const int limited : {-1, 1, 99}) {
      run_ranks(size, [&](Communicator& ranks) {
        const bool tight = limited == 99 || limited == ranks.rank();
        const Resources resources = cpu_resources(1, tight ? int64_t{7} << 18 : kNoLimit);
        const VectorFile file(directory.path("?.npy"));
        EXPECT_EQ(fit_on(ranks, file, params, {}, resources), truth) << size << " " << limited;
        EXPECT_EQ(resources.host_memory()->used(), 0);
      });
    }
  }
}

TEST(KMeansOnRanks, ALimitThatIsTooSmallEndsAllAndTheNamedOneWorks) {
  const auto rows = make_floats(Shape::gaussian, 5000, 16, 1);
  const KMeansParams params = wanted(20, 2);
  const Fitted truth = fit(rows.view(), params);
  run_ranks(3, [&](Communicator& ranks) {
    const auto with_limit = [&](int64_t limit) {
      return fit_on(ranks, rows.view(), params, {}, cpu_resources(1, ranks.rank() == 1 ? limit : kNoLimit));
    };
    int64_t named = 0;
    try {
      with_limit(1000);
      ADD_FAILURE() << "nothing was refused";
    } catch (const OutOfMemory& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 1 on "));
      named = error.bytes_needed();
    }
    EXPECT_EQ(with_limit(named), truth);
  });
}

TEST(KMeansOnRanks, ARefusedRowIsNamedOnAllRanks) {
  const testing::TemporaryDirectory directory;
  auto rows = make_floats(Shape::gaussian, 6000, 4, 1);
  rows.row(5555)[1] = NAN;
  write_vectors(directory.path("x.npy"), rows.view());
  for (const double tol : {0.0, 1e-4}) {
    KMeansParams params = wanted(3);
    params.tol = tol;
    run_ranks(3, [&](Communicator& ranks) {
      for (const bool from_file : {false, true}) {
        try {
          const VectorFile file(directory.path("x.npy"));
          from_file ? fit_on(ranks, file, params) : fit_on(ranks, rows.view(), params);
          ADD_FAILURE() << "nothing was refused";
        } catch (const InvalidArgument& error) {
          EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 2 on "), HasSubstr("5555")));
        }
      }
    });
  }
}

// Reads fail on one rank from the n-th on.
class BreakingRows final : public RowReader {
 public:
  BreakingRows(const reference::Matrix<float>& rows, int64_t sound_reads) : rows_(rows), sound_(sound_reads) {}
  const std::string& path() const override { return path_; }
  DType dtype() const override { return DType::f32; }
  int64_t rows() const override { return rows_.rows; }
  int64_t cols() const override { return rows_.cols; }
  void read_rows(int64_t first, int64_t count, void* out) const override {
    if (sound_-- <= 0) throw IoError("cannot read 'somewhere': the mount is gone", path_, 5);
    std::copy_n(rows_.row(first), count * rows_.cols, static_cast<float*>(out));
  }

 private:
  const std::string path_ = "somewhere";
  const reference::Matrix<float>& rows_;
  mutable std::atomic<int64_t> sound_;
};

// At whatever read one rank's mount goes away, in whatever phase, all end with its error.
TEST(KMeansOnRanks, ARankThatCannotReadEndsAllWithItsError) {
  const auto rows = make_floats(Shape::gaussian, 12000, 32, 1);
  const KMeansParams params = wanted(5, 2);
  const Fitted truth = fit(rows.view(), params);
  int64_t reads = 0;
  int ended_well = 0;
  for (; reads < 2000 && ended_well < 2; reads += 1 + reads / 3) {
    bool well = false;
    run_ranks(3, [&](Communicator& ranks) {
      const VectorFile file(std::make_shared<BreakingRows>(rows, ranks.rank() == 1 ? reads : 1 << 20));
      const Resources resources = cpu_resources(1, int64_t{1} << 20);  // too little to keep its rows
      try {
        EXPECT_EQ(fit_on(ranks, file, params, {}, resources), truth);
        if (ranks.rank() == 0) well = true;
      } catch (const IoError& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 1 on "), HasSubstr("the mount is gone")));
      }
    });
    ended_well += well ? 1 : 0;
  }
  EXPECT_EQ(ended_well, 2);
  EXPECT_GT(reads, 5);
}

TEST(KMeansOnRanks, ParametersAreCompared) {
  const auto rows = make_floats(Shape::gaussian, 50, 4, 1);
  run_ranks(2, [&](Communicator& ranks) {
    EXPECT_THROW(fit_on(ranks, rows.view(), wanted(3 + ranks.rank())), InvalidArgument);
    EXPECT_THROW(fit_on(ranks, rows.view(), wanted(60)), InvalidArgument);
  });
}

TEST(KMeansOnRanks, ACancelledRankEndsAll) {
  const auto rows = make_floats(Shape::gaussian, 20000, 16, 1);
  run_ranks(3, [&](Communicator& ranks) {
    ResourceOptions options;
    options.device = Device::cpu();
    options.threads = 1;
    int asked = 0;
    if (ranks.rank() == 2) options.interrupted = [&] { return ++asked > 3; };
    EXPECT_THROW(fit_on(ranks, rows.view(), wanted(64, 100), {}, Resources(options)), Cancelled);
  });
}

}  // namespace
}  // namespace kith
