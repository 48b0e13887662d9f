// The rows of a warpgroup in the search by products (icm_products_kernel_cuda.hpp), as a thread has them: a quarter of
// each of two rows. Of what is left of a row, four lanes, a quad, have four of each 16 columns: 4 t to 4 t + 3 are lane
// t's, in shared memory where only it looks.
#pragma once

#include "quantize/additive/icm_products_block_cuda.hpp"

namespace kith::icm {

// The sum of a quad's canonical lanes, 4 t to 4 t + 3 in its lane t: the tree of canonical_tree(), the same in all four.
__device__ inline double quad_tree(double (&lanes)[4]) {
#pragma unroll
  for (int apart = 2; apart > 0; --apart) {
#pragma unroll
    for (int i = 0; i < 4; ++i) lanes[i] += __shfl_xor_sync(kFullWarp, lanes[i], apart);
  }
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

__device__ inline void add_squares(const float4& differences, double (&lanes)[4]) {
  const float values[4] = {differences.x, differences.y, differences.z, differences.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const auto wide = static_cast<double>(values[i]);
    lanes[i] = fma(wide, wide, lanes[i]);
  }
}

__device__ inline float4 operator+(const float4& a, const float4& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
__device__ inline float4 operator-(const float4& a, const float4& b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w};
}

template <int kChunks>
class QuadRows {
 public:
  using L = Layout<kChunks>;

  __device__ QuadRows(const IcmBooks& books, const IcmRows& rows, std::byte* shared)
      : books_(books),
        rows_(rows),
        quarter_(static_cast<int>(threadIdx.x % 4)),
        first_row_(static_cast<int>(threadIdx.x / kGroupThreads * kGroupRows + threadIdx.x % kGroupThreads / 32 * 16)) {
    const int local = first_row_ + static_cast<int>(threadIdx.x % 32 / 4);
    residual_ = reinterpret_cast<float4*>(shared + L::kResiduals) +
                static_cast<int>(threadIdx.x / kGroupThreads) * 2 * L::kSteps * kGroupThreads +
                static_cast<int>(threadIdx.x % kGroupThreads);
    uint8_t* const codes = reinterpret_cast<uint8_t*>(shared + L::kCodes);
    const auto m = static_cast<int>(books.books);
    current_of_block_ = codes;
    best_of_block_ = codes + kProductTileRows * m;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int64_t row = static_cast<int64_t>(blockIdx.x) * kProductTileRows + local + 8 * h;
      row_[h] = row < rows.count && rows.fits[row] != 0 ? row : -1;
      current_[h] = current_of_block_ + (local + 8 * h) * m;
      best_[h] = best_of_block_ + (local + 8 * h) * m;
    }
  }

  __device__ int quarter() const { return quarter_; }
  __device__ bool there(int h) const { return row_[h] >= 0; }
  __device__ int code(int h, int64_t book) const { return current_[h][book]; }
  // Of both rows; all lanes of a warp take part.
  __device__ void set_codes(int64_t book, const int (&found)[2]) const {
    __syncwarp();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (quarter_ == 0) current_[h][book] = static_cast<uint8_t>(found[h]);
    }
    __syncwarp();
  }

  __device__ float4& residual(int h, int s) const { return residual_[(h * L::kSteps + s) * kGroupThreads]; }

  // The codes that the search begins with, but for a greedy start, which finds them.
  __device__ void start_codes(const IcmRun& run) const {
    const auto m = static_cast<int>(books_.books);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      for (int k = quarter_; k < m; k += 4) {
        current_[h][k] = row_[h] >= 0 && run.start == IcmStart::given ? rows_.codes[row_[h] * m + k] : uint8_t{0};
      }
      if (quarter_ == 0 && row_[h] >= 0 && run.start == IcmStart::random) {
        draw_codes(run.perturbation.seed, rows_.numbers[row_[h]], m, books_.bits, current_[h]);
      }
    }
    __syncwarp();
  }

  // The codes that are worked with become the best so far, where wanted.
  __device__ void keep(bool first, bool second) const {
    __syncwarp();
    const bool wanted[2] = {first, second};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      for (int64_t k = quarter_; wanted[h] && k < books_.books; k += 4) best_[h][k] = current_[h][k];
    }
    __syncwarp();
  }

  // The best codes so far, perturbed, to those that are worked with. Each of 16 lanes has a row of the warp.
  __device__ void perturb(const Perturbation& perturbation, int64_t round) const {
    const auto m = static_cast<int>(books_.books);
    const auto lane = static_cast<int>(threadIdx.x % 32);
    if (lane < 16) {
      const int local = first_row_ + lane;
      uint8_t* const to = current_of_block_ + local * m;
      for (int k = 0; k < m; ++k) to[k] = best_of_block_[local * m + k];
      const int64_t row = static_cast<int64_t>(blockIdx.x) * kProductTileRows + local;
      if (row < rows_.count) perturb_codes(perturbation, rows_.numbers[row], round, m, books_.bits, to);
    }
    __syncwarp();
  }

  // The rows, less the codewords that they have.
  __device__ void load_residuals(bool less_words) const {
    float4 left[2][L::kSteps];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float4* const row =
          reinterpret_cast<const float4*>(rows_.centred + (row_[h] < 0 ? 0 : row_[h]) * L::kCols) + quarter_;
#pragma unroll
      for (int s = 0; s < L::kSteps; ++s) left[h][s] = row_[h] < 0 ? float4{0, 0, 0, 0} : row[4 * s];
    }
    for (int64_t k = 0; less_words && k < books_.books; ++k) {
      float4 taken[2][L::kSteps];
#pragma unroll
      for (int h = 0; h < 2; ++h) load_word(k, current_[h][k], taken[h]);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int s = 0; s < L::kSteps; ++s) left[h][s] = left[h][s] - taken[h][s];
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int s = 0; s < L::kSteps; ++s) residual(h, s) = left[h][s];
    }
  }

  // The canonical cost of the codes that are worked with.
  __device__ float cost(int h) const {
    double lanes[4] = {};
#pragma unroll
    for (int s = 0; s < L::kSteps; ++s) {
      add_squares(residual(h, s), lanes);
    }
    return static_cast<float>(quad_tree(lanes) * books_.unscale);
  }

  // Other codewords of a book, or its first, of the rows that want it. All are asked for before the first is used.
  __device__ void replace(int book, const int (&had)[2], const int (&found)[2], const bool (&wanted)[2],
                          bool starting) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (!wanted[h]) continue;
      float4 from[L::kSteps];
      float4 to[L::kSteps];
      load_word(book, found[h], to);
      if (!starting) load_word(book, had[h], from);
#pragma unroll
      for (int s = 0; s < L::kSteps; ++s) {
        float4 r = residual(h, s);
        if (!starting) r = r + from[s];
        residual(h, s) = r - to[s];
      }
    }
  }

  // The costs of two codewords of a book; codes past the last have any.
  __device__ void exact_costs(int book, int h, int had, bool starting, const int (&pair)[2], float (&keys)[2]) const {
    float4 from[L::kSteps];
    float4 words[2][L::kSteps];
    if (!starting) load_word(book, had, from);
#pragma unroll
    for (int i = 0; i < 2; ++i) load_word(book, pair[i] % kProductWords, words[i]);
    double lanes[2][4] = {};
#pragma unroll
    for (int s = 0; s < L::kSteps; ++s) {
      float4 r = residual(h, s);
      if (!starting) r = r + from[s];
#pragma unroll
      for (int i = 0; i < 2; ++i) add_squares(r - words[i][s], lanes[i]);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) keys[i] = static_cast<float>(quad_tree(lanes[i]) * books_.unscale);
  }

  __device__ void write_best(const float (&costs)[2]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (row_[h] < 0) continue;
      for (int64_t k = quarter_; k < books_.books; k += 4) rows_.codes[row_[h] * books_.books + k] = best_[h][k];
      if (rows_.costs != nullptr && quarter_ == 0) rows_.costs[row_[h]] = costs[h];
    }
  }

 private:
  __device__ void load_word(int64_t book, int j, float4 (&to)[L::kSteps]) const {
    const float4* const from =
        reinterpret_cast<const float4*>(books_.centred + (book * kProductWords + j) * L::kCols) + quarter_;
#pragma unroll
    for (int s = 0; s < L::kSteps; ++s) to[s] = __ldg(from + 4 * s);
  }

  const IcmBooks& books_;
  const IcmRows& rows_;
  const int quarter_;
  const int first_row_;  // of the warp, in the block
  float4* residual_;
  uint8_t* current_of_block_;
  uint8_t* best_of_block_;
  int64_t row_[2];  // -1: none, or of another search
  uint8_t* current_[2];
  uint8_t* best_[2];
};

}  // namespace kith::icm
