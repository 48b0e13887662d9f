#include "fuzz/fuzz_target.hpp"

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "io/temporary_directory.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace kith::fuzz {
namespace {

void require(bool kept, const char* promise) {
  if (!kept) throw std::logic_error(promise);
}

// All rows at once, and one by one into rows that lie apart: the same values, and no others touched.
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

}  // namespace

void vector_file(Input input) {
  static constexpr std::array<const char*, 4> kNames{"input.fbin", "input.u8bin", "input.ibin", "input.npy"};
  if (input.empty()) return;
  static const testing::TemporaryDirectory directory;  // one for the process: making it costs more than all the rest
  const std::string path = directory.write(
      kNames[input[0] % kNames.size()], std::string(reinterpret_cast<const char*>(input.data()) + 1, input.size() - 1));
  const auto size = static_cast<int64_t>(input.size()) - 1;
  try {
    if (content_of(path) == FileContent::ids) {
      read_ids_both_ways(IdFile(path));
    } else {
      read_vectors_both_ways(VectorFile(path));
    }
  } catch (const InvalidArgument&) {
  } catch (const CorruptFile& error) {
    require(error.path() == path && error.offset() >= 0 && error.offset() <= size, "an error without its place");
  }
}

}  // namespace kith::fuzz
