// Real rows on a GPU, from a .u8bin file, and as many seeded blends of them as are wanted: row i is a x + (1 - a) y of
// two rows drawn at random, a in [0.5, 1), rounded to a whole number. Include from a .cu file.
#pragma once

#include <kith/error.hpp>

#include "cuda_timing.hpp"

#include "core/random.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace real_rows {

struct Bytes {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<uint8_t> values;
};

inline Bytes read(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw kith::IoError("cannot read " + path, path, errno);
  uint32_t shape[2] = {0, 0};
  Bytes bytes;
  bool whole = std::fread(shape, 4, 2, file) == 2;
  if (whole) {
    bytes = {shape[0], shape[1], std::vector<uint8_t>(static_cast<size_t>(shape[0]) * shape[1])};
    whole = std::fread(bytes.values.data(), 1, bytes.values.size(), file) == bytes.values.size();
  }
  std::fclose(file);
  if (!whole) throw kith::IoError("too short: " + path, path, 0);
  return bytes;
}

template <typename T>
__global__ void blend_kernel(const uint8_t* from, int64_t from_rows, int64_t cols, int64_t rows, T* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows * cols) return;
  const int64_t row = i / cols;
  const int64_t column = i % cols;
  if (row < from_rows) {
    to[i] = static_cast<T>(from[i]);
    return;
  }
  const kith::Random4 words = kith::CounterRng(21, 7).block(static_cast<uint64_t>(row));
  const int64_t a = static_cast<int64_t>(words.word[0] % static_cast<uint64_t>(from_rows));
  const int64_t b = static_cast<int64_t>(words.word[1] % static_cast<uint64_t>(from_rows));
  const float share = 0.5f + static_cast<float>(words.word[2] >> 8) * 0x1p-25f;
  to[i] = static_cast<T>(rintf(share * static_cast<float>(from[a * cols + column]) +
                               (1 - share) * static_cast<float>(from[b * cols + column])));
}

// The first rows are the real ones.
template <typename T>
void fill(const Bytes& bytes, int64_t rows, T* to) {
  const DeviceBytes there(bytes.values);
  blend_kernel<<<static_cast<unsigned>((rows * bytes.cols + 255) / 256), 256>>>(there.as<uint8_t>(), bytes.rows,
                                                                                bytes.cols, rows, to);
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
}

}  // namespace real_rows
