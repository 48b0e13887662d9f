// Every input the fuzzers keep, and random damage to sound files, through the fuzz targets: these throw when a promise
// is broken, and the sanitizers see the rest.
#include "fuzz/fuzz_target.hpp"

#include "io/formats.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace kith {
namespace {

using Bytes = std::vector<uint8_t>;

void replay(const std::string& name, void (*target)(fuzz::Input)) {
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(KITH_FUZZ_CORPUS) / name)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const Bytes bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NO_THROW(target(bytes)) << entry.path();
    ++replayed;
  }
  EXPECT_GE(replayed, 10) << "the corpus is not where it should be";
}

TEST(FuzzCorpus, BinHeader) { replay("bin_header", fuzz::bin_header); }
TEST(FuzzCorpus, FaissFile) { replay("faiss_file", fuzz::faiss_file); }
TEST(FuzzCorpus, Hdf5) { replay("hdf5", fuzz::hdf5); }
TEST(FuzzCorpus, Idx) { replay("idx", fuzz::idx); }
TEST(FuzzCorpus, KithFile) { replay("kith_file", fuzz::kith_file); }
TEST(FuzzCorpus, NpyHeader) { replay("npy_header", fuzz::npy_header); }
TEST(FuzzCorpus, Vecs) { replay("vecs", fuzz::vecs); }
TEST(FuzzCorpus, VectorFile) { replay("vector_file", fuzz::vector_file); }

// A sound file of one of the formats that fuzz::vector_file knows, the ending's number first.
Bytes sound_file() {
  constexpr uint8_t kNpy = 3;
  constexpr std::array kBinElements{ElementType::f32, ElementType::u8,  ElementType::i32, ElementType::f32,
                                    ElementType::i8,  ElementType::f16, ElementType::bf16};
  const auto format = *rc::gen::inRange<uint8_t>(0, static_cast<uint8_t>(kBinElements.size()));
  const int64_t rows = *rc::gen::inRange(0, 6);
  const int64_t cols = *rc::gen::inRange(1, 6);
  const auto element = format != kNpy ? kBinElements[format]
                                      : *rc::gen::element(ElementType::f32, ElementType::f16, ElementType::u8,
                                                          ElementType::i8, ElementType::i32, ElementType::i64);
  const std::string header = format != kNpy ? make_bin_header(rows, cols, "") : make_npy_header(element, rows, cols);
  Bytes bytes{format};
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.resize(bytes.size() + static_cast<size_t>(rows * cols * traits_of(element).bytes), 0x3f);
  return bytes;
}

// Rows of a *vecs file, the ending's number first.
Bytes sound_vecs() {
  constexpr std::array<size_t, 3> kBytes{4, 1, 4};
  const auto format = *rc::gen::inRange<uint8_t>(0, 3);
  const int rows = *rc::gen::inRange(0, 6);
  const auto cols = *rc::gen::inRange<uint8_t>(1, 6);
  Bytes bytes{format};
  for (int i = 0; i < rows; ++i) {
    bytes.insert(bytes.end(), {cols, 0, 0, 0});
    bytes.resize(bytes.size() + cols * kBytes[format], 0x3f);
  }
  return bytes;
}

RC_GTEST_PROP(DamagedFiles, OfRowsWithHeadersAreErrorsOrReadAsTheyAre, ()) {
  Bytes bytes = sound_vecs();
  fuzz::vecs(bytes);
  if (bytes.size() > 1) bytes[*rc::gen::inRange<size_t>(1, bytes.size())] = *rc::gen::arbitrary<uint8_t>();
  fuzz::vecs(bytes);
  bytes.resize(*rc::gen::inRange<size_t>(1, bytes.size() + 9), 0);
  fuzz::vecs(bytes);
}

RC_GTEST_PROP(DamagedFiles, AreErrorsOrReadAsTheyAre, ()) {
  Bytes bytes = sound_file();
  fuzz::vector_file(bytes);
  const size_t header = std::min<size_t>(bytes.size(), 129);
  for (int damage = *rc::gen::inRange(1, 5); damage > 0; --damage) {
    bytes[*rc::gen::inRange<size_t>(1, header)] = *rc::gen::arbitrary<uint8_t>();
  }
  fuzz::vector_file(bytes);
  fuzz::npy_header(fuzz::Input(bytes).subspan(1));
  bytes.resize(*rc::gen::inRange<size_t>(1, bytes.size() + 9), 0);
  fuzz::vector_file(bytes);
}

}  // namespace
}  // namespace kith
