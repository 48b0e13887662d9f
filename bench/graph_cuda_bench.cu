// How fast a k-NN graph is built on a GPU, and how good it is: the mixture of mixture.hpp and a manifold, which is hard for
// cells, made on the device; by the method that is chosen, or by one that is named.
//
//   graph_cuda_bench [--only NAME] [--runs N] [--method auto|exact|cells|nn_descent] [--rows N] [--k N] [--recall PERCENT]
//                    [--rounds 1] [--file FILE] [--out FILE]
//
// --file: rows of bytes (.u8bin) in the place of the others, as f32 and as bytes; --rows takes the first so many.
// Rows and results are on the device. Times are those of whole calls by a clock, the check for NaN, the control rows and
// their exact search included: the best of the runs after one that does not count. Recall is that of the k neighbours of
// 10,000 rows, searched exactly. The floor is one product of every row with the centres of the cells and with the rows
// of the cells that it is compared with, at the rate that a large product reaches on an H200.
#include <kith/kith.hpp>

#include "cuda_timing.hpp"
#include "floor.hpp"
#include "mixture_rows_cuda.hpp"
#include "options.hpp"
#include "table.hpp"

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace kith;

constexpr int kLatent = 24;

// x = 30 tanh(z W / 5) V with z ~ N(0,1)^24; W and V fixed, of N(0,1), V divided by 11.
__global__ void manifold_parts_kernel(float* parts, int cols) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= int64_t{kLatent + cols} * cols) return;
  const Random4 words = CounterRng(17, 1).block(static_cast<uint64_t>(i));
  const float value = mixture::gaussians(words.word[0], words.word[1]).x;
  parts[i] = i < int64_t{kLatent} * cols ? value : value / 11.0f;
}

// A block for each row, a thread for each column.
__global__ void manifold_kernel(const float* parts, uint64_t seed, int cols, float* out) {
  extern __shared__ float bent[];
  __shared__ float z[kLatent];
  const auto row = static_cast<uint64_t>(blockIdx.x);
  const int col = static_cast<int>(threadIdx.x);
  if (col < kLatent / 2) {
    const Random4 words = CounterRng(seed, 4).block(row * (kLatent / 2) + static_cast<uint64_t>(col));
    const float2 two = mixture::gaussians(words.word[0], words.word[1]);
    z[2 * col] = two.x;
    z[2 * col + 1] = two.y;
  }
  __syncthreads();
  float sum = 0;
  for (int f = 0; f < kLatent; ++f) sum += z[f] * parts[f * cols + col];
  bent[col] = tanhf(sum / 5.0f);
  __syncthreads();
  const float* const last = parts + kLatent * cols;
  float value = 0;
  for (int c = 0; c < cols; ++c) value += bent[c] * last[c * cols + col];
  out[static_cast<int64_t>(row) * cols + col] = 30.0f * value;
}

__global__ void to_halves_kernel(const uint8_t* from, int64_t count, __half* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = __float2half_rn(static_cast<float>(from[i]));
}

struct Case {
  const char* name;
  bool manifold;
  DType dtype;
  int64_t rows;
  int64_t cols;
  double recall;
};

constexpr Case kCases[] = {
    {"mixture 100K", false, DType::f32, 100000, 128, 0.99},
    {"manifold 100K", true, DType::f32, 100000, 128, 0.99},
    {"mixture 1M", false, DType::f32, 1000000, 128, 0.99},
    {"manifold 1M", true, DType::f32, 1000000, 128, 0.99},
    {"mixture 10M", false, DType::f32, 10000000, 128, 0.99},
    {"manifold 10M", true, DType::f32, 10000000, 128, 0.99},
    {"u8 mixture 100M", false, DType::u8, 100000000, 96, 0.95},
    {"f16 mixture 100M", false, DType::f16, 100000000, 96, 0.95},
};

void fill_rows(const Case& one, int64_t rows, const DeviceArray& data) {
  if (one.manifold) {
    const auto cols = static_cast<int>(one.cols);
    const DeviceArray parts(static_cast<size_t>((kLatent + cols) * cols) * 4);
    const auto values = static_cast<unsigned>((kLatent + cols) * cols);
    manifold_parts_kernel<<<(values + 255) / 256, 256>>>(parts.as<float>(), cols);
    manifold_kernel<<<static_cast<unsigned>(rows), static_cast<unsigned>(cols), static_cast<size_t>(cols) * 4>>>(
        parts.as<float>(), 5, cols, data.as<float>());
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    return;
  }
  const mixture::OnDevice mixture(one.cols);
  if (one.dtype == DType::f32) mixture.fill(1, 0, rows, data.as<float>());
  if (one.dtype == DType::u8) mixture.fill(1, 0, rows, data.as<uint8_t>());
  if (one.dtype == DType::f16) {
    constexpr int64_t kPiece = 1000000;
    const DeviceArray bytes(static_cast<size_t>(kPiece * one.cols));
    for (int64_t first = 0; first < rows; first += kPiece) {
      const int64_t count = std::min(kPiece, rows - first);
      mixture.fill(1, first, count, bytes.as<uint8_t>());
      to_halves_kernel<<<static_cast<unsigned>((count * one.cols + 255) / 256), 256>>>(
          bytes.as<uint8_t>(), count * one.cols, data.as<__half>() + first * one.cols);
    }
    check(cudaDeviceSynchronize());
  }
}

// Of the rows 0, rows / 10,000, ...
double recall_of(const MatrixView& x, const NeighborsView& graph, const Resources& resources) {
  const int64_t count = std::min<int64_t>(x.rows(), 10000);
  const int64_t step = x.rows() / count;
  const int64_t bytes = x.cols() * size_of(x.dtype());
  const DeviceArray queries(static_cast<size_t>(count * bytes));
  check(cudaMemcpy2D(queries.as<std::byte>(), static_cast<size_t>(bytes), x.data(), static_cast<size_t>(step * bytes),
                     static_cast<size_t>(bytes), static_cast<size_t>(count), cudaMemcpyDeviceToDevice));
  const int64_t k = graph.k;
  std::vector<float> found(static_cast<size_t>(count * k));
  check(cudaMemcpy2D(found.data(), static_cast<size_t>(k * 4), graph.distances, static_cast<size_t>(step * k * 4),
                     static_cast<size_t>(k * 4), static_cast<size_t>(count), cudaMemcpyDeviceToHost));
  const Neighbors truth = knn({queries.as<std::byte>(), x.dtype(), {count, x.cols(), x.cols()}, x.space()}, x,
                              {.k = k + 1, .check_finite = false}, resources);
  int64_t hits = 0;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < k; ++j) hits += found[static_cast<size_t>(i * k + j)] <= truth.distances(i)[k] ? 1 : 0;
  }
  return static_cast<double>(hits) / static_cast<double>(count * k);
}

int64_t parameter(const GraphReport& report, const std::string& name) {
  for (const GraphParameter& one : report.parameters) {
    if (one.name == name && std::holds_alternative<int64_t>(one.value)) return std::get<int64_t>(one.value);
  }
  return 0;
}

__global__ void to_floats_kernel(const uint8_t* from, int64_t count, float* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = static_cast<float>(from[i]);
}

void load_rows(const Case& one, int64_t rows, const std::vector<uint8_t>& values, const DeviceArray& data) {
  const int64_t count = rows * one.cols;
  if (one.dtype == DType::u8) {
    return check(cudaMemcpy(data.as<uint8_t>(), values.data(), static_cast<size_t>(count), cudaMemcpyHostToDevice));
  }
  const DeviceArray bytes(values);
  to_floats_kernel<<<static_cast<unsigned>((count + 255) / 256), 256>>>(bytes.as<uint8_t>(), count, data.as<float>());
  check(cudaDeviceSynchronize());
}

void run_case(const Case& one, const Options& options, const Table& table, const std::vector<uint8_t>& given = {}) {
  const int64_t rows = options.number("--rows", one.rows);
  const DeviceArray data(static_cast<size_t>(rows * one.cols * size_of(one.dtype)));
  if (given.empty()) {
    fill_rows(one, rows, data);
  } else {
    load_rows(one, rows, given, data);
  }
  const MatrixView x(data.as<std::byte>(), one.dtype, {rows, one.cols, one.cols}, MemorySpace::cuda(0));
  KnnGraphParams params;
  params.k = options.number("--k", 10);
  params.method = parse_graph_method(options.text("--method", "auto"));
  params.recall = static_cast<double>(options.number("--recall", static_cast<int64_t>(one.recall * 100))) / 100;
  const DeviceArray ids(static_cast<size_t>(rows * params.k) * 8);
  const DeviceArray distances(static_cast<size_t>(rows * params.k) * 4);
  const NeighborsView out{ids.as<int64_t>(), distances.as<float>(), rows, params.k, MemorySpace::cuda(0)};
  const Resources resources;
  double best = 1e30;
  GraphReport report;
  const int64_t runs = options.number("--runs", rows > 20000000 ? 1 : 3);
  for (int64_t run = 0; run <= runs; ++run) {
    if (run == 0 && rows > 20000000) continue;
    const auto start = std::chrono::steady_clock::now();
    report = knn_graph(x, out, params, resources);
    check(cudaDeviceSynchronize());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (run > 0 || rows > 20000000) best = std::min(best, seconds);
  }
  const double recall = recall_of(x, out, resources);
  double comparisons = 0;
  for (const GraphRound& round : report.rounds) comparisons += static_cast<double>(round.comparisons);
  const auto cells = static_cast<double>(parameter(report, "cells"));
  const double rate = one.dtype == DType::u8 ? kByteFlops : kHalfFlops;
  const double floor = report.method == "exact"
                           ? product_ms(static_cast<double>(rows), static_cast<double>(rows), static_cast<double>(one.cols), rate)
                           : product_ms(static_cast<double>(rows), std::min(cells, 16384.0), static_cast<double>(one.cols)) +
                                 2e3 * comparisons * static_cast<double>(one.cols) / rate;
  char text[240];
  std::snprintf(text, sizeof text, "%-18s %3lld  %-10s %6lld %5lld  %9.1f %9.1f  %.4f  %.4f  %7.2f", one.name,
                static_cast<long long>(params.k), report.method.c_str(), static_cast<long long>(cells),
                static_cast<long long>(parameter(report, "probes")), best * 1e3, floor, recall,
                report.recall ? report.recall->recall : 1.0, static_cast<double>(report.peak_device_bytes) / (1 << 30));
  table.line(text);
  if (options.number("--rounds", 0) == 0) return;
  for (const GraphRound& round : report.rounds) {
    std::snprintf(text, sizeof text, "    %8.2f ms  recall %.4f  updates %lld  comparisons %.3g", round.seconds * 1e3,
                  round.recall.value_or(0), static_cast<long long>(round.updates), static_cast<double>(round.comparisons));
    table.line(text);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options(argc, argv,
                          {"--only", "--runs", "--method", "--rows", "--k", "--recall", "--rounds", "--file", "--out"});
    if (cuda_devices().empty()) {
      std::fprintf(stderr, "graph_cuda_bench: no CUDA device here, or a build without CUDA\n");
      return 1;
    }
    const Table table(options.text("--out"));
    table.line("data                 k  method      cells probe   time (ms) floor (ms) recall  estimate  GiB");
    const std::string only = options.text("--only");
    const std::string path = options.text("--file");
    if (!path.empty()) {
      std::FILE* const file = std::fopen(path.c_str(), "rb");
      uint32_t shape[2] = {0, 0};
      if (file == nullptr || std::fread(shape, 4, 2, file) != 2) throw IoError("cannot read " + path, path, errno);
      std::vector<uint8_t> values(static_cast<size_t>(shape[0]) * shape[1]);
      if (std::fread(values.data(), 1, values.size(), file) != values.size()) throw IoError("too short", path, 0);
      std::fclose(file);
      run_case({"file", false, DType::f32, shape[0], shape[1], 0.99}, options, table, values);
      run_case({"file u8", false, DType::u8, shape[0], shape[1], 0.99}, options, table, values);
      return 0;
    }
    for (const Case& one : kCases) {
      if (only.empty() ? one.rows <= 10000000 : std::string(one.name).find(only) != std::string::npos) {
        run_case(one, options, table);
      }
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "graph_cuda_bench: %s\n", error.what());
    return 1;
  }
}
