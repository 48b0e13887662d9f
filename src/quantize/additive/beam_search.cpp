#include "quantize/additive/beam_search.hpp"

#include "core/divide.hpp"
#include "core/ordered_key.hpp"
#include "core/parallel_for.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <numeric>

namespace kith {
namespace {

constexpr int64_t kTaskRows = 16;

}  // namespace

BeamPaths::BeamPaths(const Codebooks& books, int64_t beam)
    : beam_(beam),
      residual_(static_cast<size_t>(books.cols)),
      every_(static_cast<size_t>(books.words())),
      keys_(static_cast<size_t>(books.words())),
      before_(static_cast<size_t>(beam * books.books)) {
  std::iota(every_.begin(), every_.end(), 0u);
  found_.reserve(static_cast<size_t>(beam * books.words()));
}

int64_t BeamPaths::count_after(int64_t books, int bits, int64_t beam) {
  int64_t count = 1;
  for (int64_t k = 0; k < books && count < beam; ++k) count <<= bits;
  return std::min(count, beam);
}

void BeamPaths::residual(const Codebooks& books, int64_t k, const float* row, const uint8_t* path, float* out) {
  std::copy_n(row, books.cols, out);
  for (int64_t b = 0; b < k; ++b) {
    const float* const word = books.word(b, path[b]);
    for (int64_t c = 0; c < books.cols; ++c) out[c] -= word[c];
  }
}

void BeamPaths::extend(const Codebooks& books, int64_t k, const float* row, uint8_t* paths) {
  const int64_t held = count_after(k, books.bits, beam_);
  found_.clear();
  for (int64_t p = 0; p < held; ++p) {
    residual(books, k, row, paths + p * books.books, residual_.data());
    canonical_keys_cpu(KeyKind::squared_l2, {residual_.data(), 0.0},
                       MatrixView(books.book(k), books.words(), books.cols), every_.data(), books.words(),
                       keys_.data());
    for (int64_t j = 0; j < books.words(); ++j) {
      found_.push_back(
          pack_neighbor(ordered_key(keys_[static_cast<size_t>(j)]), static_cast<uint32_t>(p << books.bits | j)));
    }
  }
  const int64_t stay = count_after(k + 1, books.bits, beam_);
  std::partial_sort(found_.begin(), found_.begin() + stay, found_.end());
  std::copy_n(paths, held * books.books, before_.data());
  for (int64_t p = 0; p < stay; ++p) {
    const int64_t from = row_of(found_[static_cast<size_t>(p)]);
    uint8_t* const path = paths + p * books.books;
    std::copy_n(before_.data() + (from >> books.bits) * books.books, k, path);
    path[k] = static_cast<uint8_t>(from & (books.words() - 1));
  }
}

void encode_beam(const Codebooks& books, int64_t beam, const MatrixView& rows, uint8_t* codes,
                 const Resources& resources) {
  struct Worker {
    BeamPaths paths;
    std::vector<float> row;
    std::vector<uint8_t> codes;
  };
  std::vector<Worker> workers;
  for (int slot = 0; slot < resources.threads(); ++slot) {
    workers.push_back({BeamPaths(books, beam), std::vector<float>(static_cast<size_t>(books.cols)),
                       std::vector<uint8_t>(static_cast<size_t>(beam * books.books))});
  }
  ProgressMeter meter("encode", rows.rows(), resources);
  parallel_for(divide_up(rows.rows(), kTaskRows), meter, resources, [&](int64_t task, int slot) {
    Worker& worker = workers[static_cast<size_t>(slot)];
    const int64_t end = std::min((task + 1) * kTaskRows, rows.rows());
    for (int64_t i = task * kTaskRows; i < end; ++i) {
      widen_row(rows, i, worker.row.data());
      for (int64_t k = 0; k < books.books; ++k) worker.paths.extend(books, k, worker.row.data(), worker.codes.data());
      std::copy_n(worker.codes.data(), books.books, codes + i * books.books);
    }
    meter.add(end - task * kTaskRows);
    meter.checkpoint();
  });
  meter.finish();
}

}  // namespace kith
