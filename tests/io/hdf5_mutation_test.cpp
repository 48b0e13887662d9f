// A short fuzzing of the HDF5 reader, the same in every run: each file of the corpus is changed in a few places at
// random and read through the fuzz target, which throws unless the file is read or is a typed error that knows its
// place.
//
// Most of a file in the new style stands under checksums. Half of the changed files get right ones again, so that what
// lies behind the check is reached too. About a second.
#include "fuzz/fuzz_target.hpp"
#include "fuzz/mutation.hpp"
#include "io/hdf5/checksum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

namespace kith {
namespace {

using Hdf5Bytes = std::vector<uint8_t>;

// A block of metadata, and behind it its checksum.
struct Sealed {
  size_t begin;
  size_t end;
};

constexpr size_t kSealBytes = 4;

uint32_t checksum_of(const Hdf5Bytes& bytes, Sealed block) {
  return hdf5_checksum(std::as_bytes(std::span(bytes)).subspan(block.begin, block.end - block.begin));
}

void seal(Hdf5Bytes& bytes, Sealed block) {
  const uint32_t checksum = checksum_of(bytes, block);
  for (size_t i = 0; i < kSealBytes; ++i) bytes[block.end + i] = static_cast<uint8_t>(checksum >> (8 * i));
}

// Found without knowing the format: a block begins with a name, and some four bytes behind are its checksum.
std::vector<Sealed> sealed_blocks(const Hdf5Bytes& bytes) {
  constexpr std::array<std::string_view, 14> kNames{"\x89HDF", "OHDR", "OCHK", "FRHP", "FHIB", "BTHD", "BTIN",
                                                    "BTLF",    "FAHD", "FADB", "EAHD", "EAIB", "EASB", "EADB"};
  std::vector<Sealed> blocks;
  for (size_t begin = 0; begin + 4 < bytes.size(); ++begin) {
    const std::string_view name(reinterpret_cast<const char*>(&bytes[begin]), 4);
    if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) continue;
    for (size_t end = begin + 4; end + kSealBytes <= bytes.size(); ++end) {
      uint32_t stored = 0;
      for (size_t i = kSealBytes; i-- > 0;) stored = stored << 8 | bytes[end + i];
      if (checksum_of(bytes, {begin, end}) != stored) continue;
      blocks.push_back({begin, end});
      break;
    }
  }
  return blocks;
}

std::vector<Hdf5Bytes> seeds() {
  constexpr size_t kMostBytes = 4096;  // larger ones are slower, and hold more of the same
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(KITH_FUZZ_CORPUS) / "hdf5")) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Hdf5Bytes> files;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    Hdf5Bytes bytes{std::istreambuf_iterator<char>(file), {}};
    if (bytes.size() > 16 && bytes.size() <= kMostBytes) files.push_back(std::move(bytes));
  }
  return files;
}

TEST(Hdf5Mutation, ChangedFilesAreReadOrAreTypedErrors) {
  constexpr int kEach = 300;
  const std::vector<Hdf5Bytes> files = seeds();
  ASSERT_GE(files.size(), 30U) << "the corpus is not where it should be";
  size_t sealed = 0;
  for (size_t f = 0; f < files.size(); ++f) {
    const std::vector<Sealed> blocks = sealed_blocks(files[f]);
    sealed += blocks.size();
    for (int i = 0; i < kEach; ++i) {
      fuzz::Draws draws(f * kEach + static_cast<size_t>(i));
      Hdf5Bytes bytes = files[f];
      for (uint32_t changes = 1 + draws.below(4); changes > 0; --changes) fuzz::mutate(bytes, draws);
      if (i % 2 == 0) {
        for (const Sealed block : blocks) seal(bytes, block);
      }
      ASSERT_NO_THROW(fuzz::hdf5(bytes)) << "file " << f << ", change " << i;
    }
  }
  EXPECT_GE(sealed, 50U) << "few blocks with a checksum were found, so few changes get behind it";
}

}  // namespace
}  // namespace kith
