// The data of `compare`: vectors with clusters, in host memory or in that of a GPU, made once for all cases.
#pragma once

#include <kith/kith.hpp>

#ifdef KITH_COMPARE_CUDA
#include <cuda_runtime_api.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

// Memory where the calls work.
class Memory {
 public:
  Memory(int64_t bytes, bool on_device) : on_device_(on_device), bytes_(bytes) {
    if (!on_device) {
      host_.resize(static_cast<size_t>(bytes));
      data_ = host_.data();
      return;
    }
#ifdef KITH_COMPARE_CUDA
    if (cudaMalloc(&data_, static_cast<size_t>(bytes)) != cudaSuccess) throw std::runtime_error("no GPU memory left");
#else
    throw std::runtime_error("built without CUDA");
#endif
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
#ifdef KITH_COMPARE_CUDA
    if (on_device_) (void)cudaFree(data_);
#endif
  }

  void fill(const void* from) {
    if (!on_device_) std::memcpy(data_, from, static_cast<size_t>(bytes_));
#ifdef KITH_COMPARE_CUDA
    if (on_device_ && cudaMemcpy(data_, from, static_cast<size_t>(bytes_), cudaMemcpyHostToDevice) != cudaSuccess) {
      throw std::runtime_error("a copy to the GPU failed");
    }
#endif
  }

  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  kith::MemorySpace space() const { return on_device_ ? kith::MemorySpace::cuda(0) : kith::MemorySpace::host(); }

 private:
  bool on_device_;
  int64_t bytes_;
  std::vector<char> host_;
  void* data_ = nullptr;
};

// A matrix that the caller of Kith owns.
class Matrix {
 public:
  Matrix(kith::DType dtype, int64_t rows, int64_t cols, bool on_device)
      : dtype_(dtype), rows_(rows), cols_(cols), memory_(rows * cols * kith::size_of(dtype), on_device) {}

  kith::MatrixView view() const { return {memory_.as<void>(), dtype_, {rows_, cols_, cols_}, memory_.space()}; }
  kith::MutableMatrixView mutable_view() const {
    return {memory_.as<void>(), dtype_, {rows_, cols_, cols_}, memory_.space()};
  }
  Memory& memory() { return memory_; }

 private:
  kith::DType dtype_;
  int64_t rows_;
  int64_t cols_;
  Memory memory_;
};

using Rows = std::shared_ptr<Matrix>;

// The results of a search, where the calls work.
class Found {
 public:
  Found(int64_t queries, int64_t k, bool on_device)
      : queries_(queries), k_(k), ids_(queries * k * 8, on_device), distances_(queries * k * 4, on_device) {}
  kith::NeighborsView view() const { return {ids_.as<int64_t>(), distances_.as<float>(), queries_, k_, ids_.space()}; }

 private:
  int64_t queries_;
  int64_t k_;
  Memory ids_;
  Memory distances_;
};

// The device that is measured, and the data on it.
class Machine {
 public:
  explicit Machine(bool cuda, int threads) : cuda_(cuda) {
    kith::ResourceOptions options;
    options.device = cuda ? kith::Device::cuda(0) : kith::Device::cpu();
    options.threads = threads;
    resources_ = kith::Resources(options);
  }

  bool cuda() const { return cuda_; }
  const kith::Resources& resources() const { return resources_; }
  // A size for CPUs and one for GPUs.
  int64_t size(int64_t cpu, int64_t cuda) const { return cuda_ ? cuda : cpu; }

  Rows empty(kith::DType dtype, int64_t rows, int64_t cols) const {
    return std::make_shared<Matrix>(dtype, rows, cols, cuda_);
  }
  std::shared_ptr<Found> found(int64_t queries, int64_t k) const { return std::make_shared<Found>(queries, k, cuda_); }

  // Rows of one distribution, 0 to 255: points around 1,000 centres, which differ in 8 directions most. Rows of another
  // seed are other points around the same centres. The last few matrices are kept.
  Rows rows(kith::DType dtype, int64_t rows, int64_t cols, uint64_t seed = 1) const {
    const auto key = std::make_tuple(dtype, rows, cols, seed);
    for (const auto& [made_key, made] : made_) {
      if (made_key == key) return made;
    }
    if (made_.size() == 6) made_.erase(made_.begin());
    made_.emplace_back(key, make(dtype, rows, cols, seed, cuda_));
    return made_.back().second;
  }
  // f32 in host memory, for what is taken from there alone.
  Rows host_rows(int64_t rows, int64_t cols, uint64_t seed) const {
    return make(kith::DType::f32, rows, cols, seed, false);
  }

 private:
  using Key = std::tuple<kith::DType, int64_t, int64_t, uint64_t>;

  static uint64_t mixed(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }
  // About N(0, 1): the sum of four uniform numbers of 16 bits.
  static float normal(uint64_t seed, uint64_t place) {
    const uint64_t bits = mixed(seed * 0xD1B54A32D192ED03u + (place + 1) * 0x9E3779B97F4A7C15u);
    const auto sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
    return (static_cast<float>(sum) - 131070.0F) * (1.7320508F / 65536.0F);
  }

  static constexpr int64_t kCentres = 1000;
  static constexpr int64_t kFactors = 8;

  // The centres and directions that all rows of so many columns share.
  struct Distribution {
    std::vector<float> centres;
    std::vector<float> factors;

    explicit Distribution(int64_t cols)
        : centres(static_cast<size_t>(kCentres * cols)), factors(static_cast<size_t>(kFactors * cols)) {
      for (size_t i = 0; i < centres.size(); ++i) centres[i] = 128 + 25 * normal(5, i);
      for (size_t i = 0; i < factors.size(); ++i) factors[i] = 4 * normal(6, i);
    }
  };

  static void fill_row(const Distribution& from, uint64_t seed, int64_t row, std::vector<float>& out) {
    const auto cols = static_cast<int64_t>(out.size());
    const uint64_t drawn = mixed(seed * 77 + static_cast<uint64_t>(row) * 0x9E3779B97F4A7C15u);
    const float* const centre = &from.centres[static_cast<size_t>(static_cast<int64_t>(drawn % kCentres) * cols)];
    for (int64_t c = 0; c < cols; ++c) {
      out[static_cast<size_t>(c)] = centre[c] + 3 * normal(seed, static_cast<uint64_t>(row * cols + c));
    }
    for (int64_t f = 0; f < kFactors; ++f) {
      const float z = normal(seed + 1000, static_cast<uint64_t>(row * kFactors + f));
      for (int64_t c = 0; c < cols; ++c) {
        out[static_cast<size_t>(c)] += z * from.factors[static_cast<size_t>(f * cols + c)];
      }
    }
    for (float& value : out) value = value < 0 ? 0 : value > 255 ? 255 : value;
  }

  static void store(kith::DType dtype, float value, char* to) {
    if (dtype == kith::DType::u8) {
      *to = static_cast<char>(static_cast<uint8_t>(value));
    } else if (dtype == kith::DType::f16) {
      uint32_t bits = 0;  // of a number from 0 to 255, cut off
      std::memcpy(&bits, &value, 4);
      const auto half = static_cast<uint16_t>(value < 0x1p-14F ? 0 : (bits >> 13) - (112 << 10));
      std::memcpy(to, &half, 2);
    } else {
      std::memcpy(to, &value, 4);
    }
  }

  static Rows make(kith::DType dtype, int64_t rows, int64_t cols, uint64_t seed, bool on_device) {
    const int64_t bytes = kith::size_of(dtype);
    std::vector<char> values(static_cast<size_t>(rows * cols * bytes));
    const Distribution distribution(cols);
    const int64_t workers = std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::thread> threads;
    for (int64_t worker = 0; worker < workers; ++worker) {
      threads.emplace_back([&, worker] {
        std::vector<float> row_values(static_cast<size_t>(cols));
        for (int64_t row = worker; row < rows; row += workers) {
          fill_row(distribution, seed, row, row_values);
          for (int64_t c = 0; c < cols; ++c) {
            store(dtype, row_values[static_cast<size_t>(c)], &values[static_cast<size_t>((row * cols + c) * bytes)]);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    auto made = std::make_shared<Matrix>(dtype, rows, cols, on_device);
    made->memory().fill(values.data());
    return made;
  }

  bool cuda_;
  kith::Resources resources_;
  mutable std::vector<std::pair<Key, Rows>> made_;
};
