#include "rows/row_source.hpp"

#include <kith/error.hpp>

#include "core/memory_budget.hpp"
#include "io/temporary_directory.hpp"
#include "reference/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <vector>

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

void expect_rows(const MatrixView& found, const Matrix<float>& all, int64_t first) {
  ASSERT_EQ(found.cols(), all.cols);
  for (int64_t i = 0; i < found.rows(); ++i) {
    ASSERT_EQ(std::memcmp(found.row(i), all.row(first + i), static_cast<size_t>(all.cols) * 4), 0) << first + i;
  }
}

void expect_gathered(RowSource& source, const Matrix<float>& all, const std::vector<uint32_t>& rows) {
  Matrix<float> out(static_cast<int64_t>(rows.size()), all.cols);
  const MutableMatrixView view(out.values.data(), out.rows, out.cols);
  source.gather(rows.data(), out.rows, view, Resources());
  for (size_t i = 0; i < rows.size(); ++i) expect_rows(view.slice(static_cast<int64_t>(i), 1), all, rows[i]);
}

// A file of 100 x 7.
class FileSourceTest : public ::testing::Test {
 protected:
  FileSourceTest() { write_vectors(path_, all_.view()); }
  void cut_to(int64_t rows) const {
    std::filesystem::resize_file(path_, static_cast<uintmax_t>(8 + rows * all_.cols * 4));
  }

  const testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.path("x.fbin");
  const Matrix<float> all_ = make_floats(Shape::gaussian, 100, 7, 1);
};

TEST_F(FileSourceTest, APassInPiecesGivesTheFile) {
  const VectorFile file(path_);
  for (const int64_t most : {1, 3, 33, 50, 99, 100, 1000}) {
    FileSource source(file);
    EXPECT_EQ(source.rows(), 100);
    source.open(most, Resources());
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t first = 0; first < 100; first += most) {
        const int64_t count = std::min(most, 100 - first);
        const MatrixView piece = source.fetch(first, count);
        EXPECT_EQ(piece.rows(), count);
        expect_rows(piece, all_, first);
      }
    }
  }
}

TEST_F(FileSourceTest, FetchesElsewhereAndGathersWhileTheNextPieceIsRead) {
  const VectorFile file(path_);
  FileSource source(file);
  source.open(10, Resources());
  for (const int64_t first : {0, 50, 60, 0, 10, 85, 90, 3}) {
    expect_rows(source.fetch(first, 10), all_, first);
    expect_gathered(source, all_, {2, 3, 4, 9, 40, 41, 99});
    expect_rows(source.fetch(first, 1), all_, first);
    expect_rows(source.fetch(first + 4, 6), all_, first + 4);
  }
  (void)source.fetch(0, 10);  // and goes while one is read
}

TEST_F(FileSourceTest, AnErrorAheadAppearsWhereItsRowsAreFetched) {
  const VectorFile file(path_);
  FileSource source(file);
  source.open(40, Resources());
  cut_to(60);
  expect_rows(source.fetch(0, 40), all_, 0);
  EXPECT_THROW(source.fetch(40, 40), Error);
  expect_rows(source.fetch(10, 40), all_, 10);
  expect_rows(source.fetch(0, 20), all_, 0);  // what was read ahead in vain is nobody's error
}

TEST_F(FileSourceTest, TakesWhatItSays) {
  const VectorFile file(path_);
  for (const int64_t most : {1, 49, 99, 100, 101, 5000}) {
    const Resources resources{ResourceOptions()};
    FileSource source(file);
    source.open(most, resources);
    const int64_t said = source.info().read_bytes(most);
    EXPECT_GE(resources.host_memory()->used(), said) << most;
    EXPECT_LT(resources.host_memory()->used(), said + 2 * 64) << most;  // rounded up to whole cache lines
  }
}

TEST(BlockSource, BlocksAreNumberedThrough) {
  const Matrix<float> all = make_floats(Shape::gaussian, 60, 5, 2);
  const MatrixView view = all.view();
  BlockSource source({view.slice(0, 1), view.slice(1, 0), view.slice(1, 30), view.slice(31, 0), view.slice(31, 29)});
  EXPECT_EQ(source.rows(), 60);
  EXPECT_EQ(source.together(0), 1);
  EXPECT_EQ(source.together(1), 30);
  EXPECT_EQ(source.together(20), 11);
  EXPECT_EQ(source.together(59), 1);
  expect_rows(source.fetch(0, 1), all, 0);
  expect_rows(source.fetch(5, 26), all, 5);
  expect_rows(source.fetch(31, 29), all, 31);
  EXPECT_EQ(source.fetch(0, 0).rows(), 0);
  expect_gathered(source, all, {0, 1, 30, 31, 59});
  std::vector<uint32_t> every(60);
  std::iota(every.begin(), every.end(), 0u);
  expect_gathered(source, all, every);
}

}  // namespace
}  // namespace kith
