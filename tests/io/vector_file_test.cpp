// Vector files, whole and in parts: round trips, strides, ranges, concurrent reads, limits.
#include <kith/vector_file.hpp>

#include <kith/error.hpp>

#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace kith {
namespace {

using testing::expect_refusal;
using testing::TemporaryDirectory;

// Values that tell every place apart, rows `stride` elements from each other, padding marked.
struct Sample {
  Sample(DType kind, int64_t rows, int64_t cols, int64_t stride)
      : bytes(static_cast<size_t>(rows * stride * size_of(kind)), 0xee), shape{rows, cols, stride}, dtype(kind) {}

  void fill() {
    const size_t row_bytes = static_cast<size_t>(shape.cols * size_of(dtype));
    for (int64_t i = 0; i < shape.rows; ++i) {
      unsigned char* row = bytes.data() + i * shape.row_stride * size_of(dtype);
      for (size_t j = 0; j < row_bytes; ++j)
        row[j] = static_cast<unsigned char>((i * 131 + static_cast<int64_t>(j) * 7) % 251);
    }
  }
  MatrixView view() const { return {bytes.data(), dtype, shape}; }
  MutableMatrixView mutable_view() { return {bytes.data(), dtype, shape}; }

  std::vector<unsigned char> bytes;
  MatrixShape shape;
  DType dtype;
};

bool equal_rows(const MatrixView& a, const MatrixView& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols() || a.dtype() != b.dtype()) return false;
  for (int64_t i = 0; i < a.rows(); ++i) {
    if (std::memcmp(a.row(i), b.row(i), static_cast<size_t>(a.cols() * size_of(a.dtype()))) != 0) return false;
  }
  return true;
}

struct NamedFormat {
  const char* name;
  DType dtype;
};

class VectorFileFormats : public ::testing::TestWithParam<NamedFormat> {
 protected:
  TemporaryDirectory directory_;
  std::string path_ = directory_.path(GetParam().name);
  DType dtype_ = GetParam().dtype;
};

constexpr NamedFormat kFormats[] = {
    {"v.fvecs", DType::f32},    {"v.bvecs", DType::u8}, {"v.fbin", DType::f32}, {"v.f16bin", DType::f16},
    {"v.bf16bin", DType::bf16}, {"v.u8bin", DType::u8}, {"v.i8bin", DType::i8}, {"f.npy", DType::f32},
    {"h.npy", DType::f16},      {"u.npy", DType::u8},   {"i.npy", DType::i8},   {"f.hdf5", DType::f32},
    {"h.hdf5", DType::f16},     {"u.hdf5", DType::u8},  {"i.h5", DType::i8},
};

INSTANTIATE_TEST_SUITE_P(All, VectorFileFormats, ::testing::ValuesIn(kFormats), [](const auto& parameter) {
  std::string name = parameter.param.name;
  name[1] = '_';
  return name;
});

TEST_P(VectorFileFormats, RoundTripsWholeFiles) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 128}, {1000, 17}, {2, 70000}}) {
    Sample sample(dtype_, rows, cols, cols);
    sample.fill();
    write_vectors(path_, sample.view());
    const VectorFile file(path_);
    EXPECT_EQ(file.path(), path_);
    EXPECT_EQ(file.dtype(), dtype_);
    EXPECT_EQ(file.rows(), rows);
    EXPECT_EQ(file.cols(), cols);
    EXPECT_TRUE(equal_rows(read_vectors(path_).view(), sample.view())) << rows << " x " << cols;
    EXPECT_EQ(content_of(path_), FileContent::vectors);
  }
}

TEST_P(VectorFileFormats, HonoursStridesOnBothSides) {
  for (const auto& [rows, cols] : {std::pair{1000, 17}, {7, 20000}, {3, 40000}}) {
    Sample sample(dtype_, rows, cols, cols + 5);
    sample.fill();
    write_vectors(path_, sample.view());
    Sample back(dtype_, rows, cols, cols + 5);
    VectorFile(path_).read(0, back.mutable_view());
    EXPECT_EQ(back.bytes == sample.bytes, true)
        << "values differ, or the padding was touched: " << rows << " x " << cols;
  }
}

TEST_P(VectorFileFormats, ReadsRanges) {
  Sample sample(dtype_, 50, 9, 9);
  sample.fill();
  write_vectors(path_, sample.view());
  for (const RowRange range : {RowRange{0, 50}, RowRange{7, 11}, RowRange{49, 1}, RowRange{50, 0}, RowRange{20, 0}}) {
    EXPECT_TRUE(equal_rows(read_vectors(path_, range).view(), sample.view().slice(range.first, range.count)));
  }
  EXPECT_TRUE(equal_rows(read_vectors(path_, {13, -1}).view(), sample.view().slice(13, 37)));
  EXPECT_EQ(read_vectors(path_, {50, -1}).rows(), 0);
}

TEST_P(VectorFileFormats, RefusesRangesOutsideTheFile) {
  Sample sample(dtype_, 50, 9, 9);
  write_vectors(path_, sample.view());
  for (const RowRange range : {RowRange{-1, 1}, RowRange{51, -1}, RowRange{49, 2}, RowRange{0, -2},
                               RowRange{1, INT64_MAX}, RowRange{INT64_MIN, -1}, RowRange{INT64_MAX, INT64_MAX}}) {
    expect_refusal<InvalidArgument>([&] { read_vectors(path_, range); }, "'" + path_ + "' has 50");
  }
  const VectorFile file(path_);
  expect_refusal<InvalidArgument>([&] { file.read(1, sample.mutable_view()); }, "'" + path_ + "' has 50");
  expect_refusal<InvalidArgument>([&] { file.read(-1, sample.mutable_view()); }, "'" + path_ + "' has 50");
}

TEST_P(VectorFileFormats, HoldsNoRows) {
  for (const int64_t cols : {0, 128}) {
    write_vectors(path_, MatrixView(nullptr, dtype_, {0, cols, cols}));
    const MatrixBuffer back = read_vectors(path_);
    EXPECT_EQ(back.rows(), 0);
    EXPECT_EQ(back.cols(), path_.ends_with("vecs") ? 0 : cols);  // where only rows know of columns
  }
}

TEST_P(VectorFileFormats, RefusesAnotherShapeAndWritesNoOtherDtype) {
  Sample sample(dtype_, 4, 9, 9);
  write_vectors(path_, sample.view());
  const VectorFile file(path_);
  const DType other = dtype_ == DType::f32 ? DType::u8 : DType::f32;
  Sample wrong_dtype(other, 4, 9, 9);
  Sample wrong_cols(dtype_, 4, 8, 8);
  expect_refusal<InvalidArgument>([&] { file.read(0, wrong_cols.mutable_view()); }, "which has 9 columns");
  const MutableMatrixView on_device(sample.bytes.data(), dtype_, sample.shape, MemorySpace::cuda(0));
  expect_refusal<InvalidArgument>([&] { file.read(0, on_device); }, "device memory");

  VectorFileWriter writer(path_, dtype_, 4, 9);
  expect_refusal<InvalidArgument>([&] { writer.append(wrong_dtype.view()); }, path_ + "', which was created as ");
  expect_refusal<InvalidArgument>([&] { writer.append(wrong_cols.view()); }, "which has 9 columns");
  expect_refusal<InvalidArgument>([&] { writer.append(on_device); }, "device memory");
  writer.append(sample.view());
  writer.commit();
  EXPECT_TRUE(equal_rows(read_vectors(path_).view(), sample.view()));
}

TEST_P(VectorFileFormats, CountsTheRowsItIsGiven) {
  Sample sample(dtype_, 4, 9, 9);
  sample.fill();
  write_vectors(path_, sample.view().slice(0, 1));
  const std::string old = directory_.read(GetParam().name);
  VectorFileWriter writer(path_, dtype_, 10, 9);
  writer.append(sample.view());
  writer.append(sample.view().slice(0, 0));
  expect_refusal<InvalidState>([&] { writer.commit(); }, "created for 10 rows and got 4");
  writer.append(sample.view());
  expect_refusal<InvalidArgument>([&] { writer.append(sample.view()); }, "has room for 2 more");
  EXPECT_EQ(directory_.read(GetParam().name), old);
  writer.append(sample.view().slice(1, 2));
  writer.commit();
  EXPECT_TRUE(equal_rows(read_vectors(path_, {4, 4}).view(), sample.view()));
  EXPECT_TRUE(equal_rows(read_vectors(path_, {8, 2}).view(), sample.view().slice(1, 2)));
  EXPECT_THROW(writer.append(sample.view().slice(0, 0)), InvalidState);
}

TEST_P(VectorFileFormats, ReadsFromManyThreadsAtOnce) {
  constexpr int64_t kRows = 400;
  Sample sample(dtype_, kRows, 100, 100);
  sample.fill();
  write_vectors(path_, sample.view());
  const VectorFile file(path_);
  std::vector<std::thread> threads;
  std::vector<int> failures(8, 0);
  for (size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 300; ++i) {
        const int64_t first = (i * 37 + static_cast<int64_t>(t) * 53) % (kRows - 20);
        Sample part(dtype_, 20, 100, 100 + static_cast<int64_t>(t % 2));
        file.read(first, part.mutable_view());
        if (!equal_rows(part.view(), sample.view().slice(first, 20))) ++failures[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<int>(8, 0));
}

TEST(VectorFile, WritesTheBytesOfTheFormat) {
  const TemporaryDirectory directory;
  const float values[] = {1, 2, 3, 4, 5, 6};
  write_vectors(directory.path("v.fbin"), MatrixView(values, 2, 3));
  const std::string data(reinterpret_cast<const char*>(values), sizeof(values));
  EXPECT_EQ(directory.read("v.fbin"), std::string("\x02\0\0\0\x03\0\0\0", 8) + data);
  write_vectors(directory.path("v.npy"), MatrixView(values, 2, 3));
  EXPECT_EQ(directory.read("v.npy").substr(0, 70),
            std::string("\x93NUMPY\x01\0\x76\0", 10) + "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } ");
  EXPECT_EQ(directory.read("v.npy").substr(128), data);
}

TEST(VectorFile, MovesKeepTheFileOpen) {
  const TemporaryDirectory directory;
  const float values[] = {1, 2, 3, 4};
  write_vectors(directory.path("a.fbin"), MatrixView(values, 2, 2));
  write_vectors(directory.path("b.fbin"), MatrixView(values, 1, 4));
  VectorFile file(directory.path("a.fbin"));
  VectorFile moved(std::move(file));
  EXPECT_EQ(moved.rows(), 2);
  moved = VectorFile(directory.path("b.fbin"));
  float back[4] = {};
  moved.read(0, MutableMatrixView(back, 1, 4));
  EXPECT_EQ(back[3], 4.0F);
}

TEST(ReadVectors, StaysUnderTheMemoryLimit) {
  const TemporaryDirectory directory;
  const std::vector<float> values(4000, 1.5F);
  const std::string path = directory.path("v.fbin");
  write_vectors(path, MatrixView(values.data(), 1000, 4));
  ResourceOptions options;
  options.host_memory_limit = 10000;
  const Resources resources(options);
  const auto error = testing::thrown<OutOfMemory>([&] { read_vectors(path, {}, resources); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->bytes_needed(), 16000);
  EXPECT_THAT(error->what(), ::testing::HasSubstr("'" + path + "'"));
  EXPECT_EQ(read_vectors(path, {100, 500}, resources).rows(), 500);
}

TEST(ReadVectors, CanBeCancelledAndReportsItsEnd) {
  const TemporaryDirectory directory;
  const std::vector<float> values(40, 1.5F);
  const std::string path = directory.path("v.fbin");
  write_vectors(path, MatrixView(values.data(), 10, 4));
  ResourceOptions options;
  Progress last;
  options.progress = [&](const Progress& progress) { last = progress; };
  read_vectors(path, {}, Resources(options));
  EXPECT_EQ(last.stage, "read");
  EXPECT_EQ(last.done, 10);
  EXPECT_EQ(last.total, 10);
  options.cancel.request();
  EXPECT_THROW(read_vectors(path, {}, Resources(options)), Cancelled);
}

RC_GTEST_PROP(VectorFileProperty, AnyShapeRoundTripsInAnyPieces, ()) {
  const TemporaryDirectory directory;
  const NamedFormat format = kFormats[*rc::gen::inRange<size_t>(0, std::size(kFormats))];
  const auto& [name, dtype] = format;
  const int64_t rows = *rc::gen::inRange(0, 60);
  const int64_t cols = *rc::gen::inRange(1, 300);
  const int64_t stride = cols + *rc::gen::inRange(0, 9);
  Sample sample(dtype, rows, cols, stride);
  sample.fill();

  VectorFileWriter writer(directory.path(name), dtype, rows, cols);
  for (int64_t done = 0; done < rows;) {
    const int64_t count = *rc::gen::inRange<int64_t>(1, rows - done + 1);
    writer.append(sample.view().slice(done, count));
    done += count;
  }
  writer.commit();

  const int64_t first = *rc::gen::inRange<int64_t>(0, rows + 1);
  const int64_t count = *rc::gen::inRange<int64_t>(0, rows - first + 1);
  if (rows == 0) return;
  Sample back(dtype, count, cols, cols + *rc::gen::inRange(0, 9));
  VectorFile(directory.path(name)).read(first, back.mutable_view());
  RC_ASSERT(equal_rows(back.view(), sample.view().slice(first, count)));
}

}  // namespace
}  // namespace kith
