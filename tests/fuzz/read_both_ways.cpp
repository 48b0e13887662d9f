#include "fuzz/read_both_ways.hpp"

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "io/temporary_directory.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace kith::fuzz {
namespace {

// A header may promise far more than the input has, of zeros for instance; that much is not read.
constexpr int64_t kMostValues = 1 << 16;

void require(bool kept, const char* promise) {
  if (!kept) throw std::logic_error(promise);
}

// All rows at once, and one by one into rows that lie apart: the same values, and no others touched. Then, where they
// can be, as f32.
void read_vectors_both_ways(const VectorFile& file) {
  constexpr int64_t kApart = 3;
  constexpr std::byte kMark{0xa5};
  const int64_t bytes = size_of(file.dtype());
  const auto row_bytes = static_cast<size_t>(file.cols() * bytes);
  std::vector<std::byte> all(static_cast<size_t>(file.rows()) * row_bytes);
  file.read(0, MutableMatrixView(all.data(), file.dtype(), {file.rows(), file.cols(), file.cols()}));

  const MatrixShape apart{file.rows(), file.cols(), file.cols() + kApart};
  std::vector<std::byte> spread(static_cast<size_t>(apart.rows * apart.row_stride * bytes), kMark);
  const MutableMatrixView view(spread.data(), file.dtype(), apart);
  file.read(0, view);
  for (int64_t i = 0; i < file.rows(); ++i) {
    const std::byte* row = view.row(i);
    require(std::memcmp(row, all.data() + static_cast<size_t>(i) * row_bytes, row_bytes) == 0,
            "a strided read differs");
    require(std::all_of(row + row_bytes, row + row_bytes + kApart * bytes, [](std::byte b) { return b == kMark; }),
            "a strided read touched the padding");
  }
  std::vector<float> widened(static_cast<size_t>(file.rows() * file.cols()));
  file.read(0, MutableMatrixView(widened.data(), file.rows(), file.cols()));
}

void read_ids_both_ways(const IdFile& file) {
  const auto cols = static_cast<size_t>(file.rows() > 0 ? file.cols() : 0);
  std::vector<int64_t> all(static_cast<size_t>(file.rows()) * cols);
  file.read(0, file.rows(), all.data());
  std::vector<int64_t> row(cols);
  for (int64_t i = 0; i < file.rows(); ++i) {
    file.read(i, 1, row.data());
    require(std::equal(row.begin(), row.end(), all.begin() + i * static_cast<int64_t>(cols)),
            "one row read alone differs");
  }
}

bool too_large(const FileInfo& info) { return info.rows > 0 && info.cols > kMostValues / info.rows; }

}  // namespace

void read_both_ways(const std::string& name, Input bytes) {
  static const testing::TemporaryDirectory directory;  // one for the process: making it costs more than all the rest
  const std::string path = directory.overwrite(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  try {
    const FileInfo info = file_info(path);
    require(content_of(path) == info.content, "two answers to what a file holds");
    if (too_large(info)) return;
    if (info.content == FileContent::ids) {
      read_ids_both_ways(IdFile(path));
    } else {
      read_vectors_both_ways(VectorFile(path));
    }
  } catch (const InvalidArgument&) {
  } catch (const Unsupported&) {
  } catch (const CorruptFile& error) {
    require(error.path() == path && error.offset() >= 0 && error.offset() <= static_cast<int64_t>(bytes.size()),
            "an error without its place");
  }
}

}  // namespace kith::fuzz
