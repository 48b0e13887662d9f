// A short fuzzing of the HDF5 reader, the same in every run: each file of the corpus is changed in a few places at
// random and read through the fuzz target, which throws unless the file is read or is a typed error that knows its
// place.
//
// Most of a file in the new style stands under checksums. Half of the changed files get right ones again, so that what
// lies behind the check is reached too. About a second.
#include "core/random.hpp"
#include "fuzz/fuzz_target.hpp"
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

using Bytes = std::vector<uint8_t>;

// A block of metadata, and behind it its checksum.
struct Sealed {
  size_t begin;
  size_t end;
};

constexpr size_t kSealBytes = 4;

uint32_t checksum_of(const Bytes& bytes, Sealed block) {
  return hdf5_checksum(std::as_bytes(std::span(bytes)).subspan(block.begin, block.end - block.begin));
}

void seal(Bytes& bytes, Sealed block) {
  const uint32_t checksum = checksum_of(bytes, block);
  for (size_t i = 0; i < kSealBytes; ++i) bytes[block.end + i] = static_cast<uint8_t>(checksum >> (8 * i));
}

// Found without knowing the format: a block begins with a name, and some four bytes behind are its checksum.
std::vector<Sealed> sealed_blocks(const Bytes& bytes) {
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

// Numbers that are drawn one after the other.
class Draws {
 public:
  explicit Draws(uint64_t stream) : random_(1, stream) {}
  uint32_t below(size_t bound) { return random_.below(next_++, static_cast<uint32_t>(bound)); }

 private:
  CounterRng random_;
  uint64_t next_ = 0;
};

void change(Bytes& bytes, Draws& draws) {
  const size_t at = draws.below(bytes.size());
  const size_t length = std::min<size_t>(1 + draws.below(8), bytes.size() - at);
  const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  const auto count = static_cast<std::ptrdiff_t>(length);
  switch (draws.below(6)) {
    case 0: *place ^= static_cast<uint8_t>(1 << draws.below(8)); return;
    case 1: *place = static_cast<uint8_t>(draws.below(256)); return;
    case 2: std::fill_n(place, count, uint8_t{0xff}); return;
    case 3: std::fill_n(place, count, uint8_t{0}); return;
    case 4:  // an address of the file itself, for circles
      *place = static_cast<uint8_t>(draws.below(256));
      if (length > 1) place[1] = static_cast<uint8_t>(draws.below(bytes.size()) >> 8);
      return;
    default: {
      const size_t from = draws.below(bytes.size() - length + 1);
      const Bytes copied(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                         bytes.begin() + static_cast<std::ptrdiff_t>(from) + count);
      std::copy(copied.begin(), copied.end(), place);
    }
  }
}

std::vector<Bytes> seeds() {
  constexpr size_t kMostBytes = 4096;  // larger ones are slower, and hold more of the same
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(KITH_FUZZ_CORPUS) / "hdf5")) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> files;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    Bytes bytes{std::istreambuf_iterator<char>(file), {}};
    if (bytes.size() > 16 && bytes.size() <= kMostBytes) files.push_back(std::move(bytes));
  }
  return files;
}

TEST(Hdf5Mutation, ChangedFilesAreReadOrAreTypedErrors) {
  constexpr int kEach = 300;
  const std::vector<Bytes> files = seeds();
  ASSERT_GE(files.size(), 30U) << "the corpus is not where it should be";
  size_t sealed = 0;
  for (size_t f = 0; f < files.size(); ++f) {
    const std::vector<Sealed> blocks = sealed_blocks(files[f]);
    sealed += blocks.size();
    for (int i = 0; i < kEach; ++i) {
      Draws draws(f * kEach + static_cast<size_t>(i));
      Bytes bytes = files[f];
      for (uint32_t changes = 1 + draws.below(4); changes > 0; --changes) change(bytes, draws);
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
