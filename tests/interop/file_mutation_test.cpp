// A short fuzzing of the readers of index files, the same in every run: each golden file is changed in a few places at
// random and read through the fuzz target, which throws unless the file is read or is a typed error that knows its
// place. Half of the changed .kith files get right hashes again, so that what lies behind is reached too. About a
// second.
#include "fuzz/fuzz_target.hpp"
#include "fuzz/mutation.hpp"
#include "io/container/section.hpp"
#include "io/container/xxh3.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace kith {
namespace {

using Bytes = std::vector<uint8_t>;

std::vector<Bytes> golden_files(const std::string& folder, const std::string& extension) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(KITH_GOLDEN) / folder)) {
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> files;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

template <typename T>
T number_at(const Bytes& bytes, size_t at) {
  T value{};
  if (at + sizeof(value) <= bytes.size()) std::memcpy(&value, &bytes[at], sizeof(value));
  return value;
}

// Right hashes for all sections that are inside of the file, then for the table.
void seal(Bytes& bytes) {
  const auto all = std::as_bytes(std::span(bytes));
  const size_t room = bytes.size() > 64 ? (bytes.size() - 64) / 96 : 0;
  const size_t sections = std::min<size_t>(number_at<uint32_t>(bytes, 12), room);
  const auto put = [&](size_t at, uint64_t hash) { std::memcpy(&bytes[at], &hash, sizeof(hash)); };
  for (size_t i = 0; i < sections; ++i) {
    const size_t entry = 64 + 96 * i;
    const auto offset = number_at<uint64_t>(bytes, entry + 72);
    const auto size = number_at<uint64_t>(bytes, entry + 80);
    if (offset <= bytes.size() && size <= bytes.size() - offset) put(entry + 88, xxh3(all.subspan(offset, size)));
  }
  if (bytes.size() < 64) return;
  Xxh3 hash;
  hash.update(all.first(56));
  hash.update(all.subspan(64, sections * 96));
  put(56, hash.digest());
}

// A change somewhere in the header, the table or a section; zeros between them are changed less often.
void mutate_container(Bytes& bytes, fuzz::Draws& draws) {
  const size_t sections = number_at<uint32_t>(bytes, 12);
  const size_t which = draws.below(sections + 3);
  size_t from = 0;
  size_t size = bytes.size();
  if (which < sections) {
    from = number_at<uint64_t>(bytes, 64 + 96 * which + 72);
    size = number_at<uint64_t>(bytes, 64 + 96 * which + 80);
  } else if (which > sections) {
    size = 64 + 96 * sections;
  }
  if (size == 0 || from > bytes.size() || size > bytes.size() - from) return fuzz::mutate(bytes, draws);
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(from);
  Bytes part(begin, begin + static_cast<std::ptrdiff_t>(size));
  fuzz::mutate(part, draws);
  std::copy(part.begin(), part.end(), begin);
}

TEST(FileMutation, ChangedKithFilesAreReadOrAreTypedErrors) {
  constexpr int kEach = 150;
  const std::vector<Bytes> files = golden_files("kith", ".kith");
  ASSERT_GE(files.size(), 20U);
  for (size_t f = 0; f < files.size(); ++f) {
    for (int i = 0; i < kEach; ++i) {
      fuzz::Draws draws(f * kEach + static_cast<size_t>(i));
      Bytes bytes = files[f];
      for (uint32_t changes = 1 + draws.below(3); changes > 0; --changes) mutate_container(bytes, draws);
      if (i % 4 != 0) seal(bytes);
      ASSERT_NO_THROW(fuzz::kith_file(bytes)) << "file " << f << ", change " << i;
    }
  }
}

void expect_read_or_typed_errors(const std::vector<Bytes>& files, int each, void (*read)(fuzz::Input)) {
  for (size_t f = 0; f < files.size(); ++f) {
    for (int i = 0; i < each; ++i) {
      fuzz::Draws draws(f * static_cast<size_t>(each) + static_cast<size_t>(i));
      Bytes bytes = files[f];
      for (uint32_t changes = 1 + draws.below(3); changes > 0; --changes) fuzz::mutate(bytes, draws);
      ASSERT_NO_THROW(read(bytes)) << "file " << f << ", change " << i;
    }
  }
}

TEST(FileMutation, ChangedFaissFilesAreReadOrAreTypedErrors) {
  const std::vector<Bytes> files = golden_files("faiss", ".faiss");
  ASSERT_GE(files.size(), 40U);
  expect_read_or_typed_errors(files, 200, fuzz::faiss_file);
}

TEST(FileMutation, ChangedHnswlibFilesAreReadOrAreTypedErrors) {
  const std::vector<Bytes> files = golden_files("hnswlib", ".bin");
  ASSERT_GE(files.size(), 2U);
  expect_read_or_typed_errors(files, 500, fuzz::hnswlib_file);
}

}  // namespace
}  // namespace kith
