// Times of the scans by lookup tables (table_scans_cuda.hpp): scans, kinds of tables and of their middle term, beside
// what share of the neighbours that the library finds they find too.
#pragma once

#include "coarse_step_cuda.hpp"
#include "cuda_timing.hpp"
#include "driver/report.hpp"
#include "table_scans_cuda.hpp"

#include "cuda/shared_memory.hpp"
#include "kernels/select/select_rows_cuda.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

struct TableLists {
  const int64_t* offsets;
  const uint8_t* codes;
  const float* centres;
  const float* codewords;
  const uint32_t* rows;  // of each vector
  int64_t lists;
  int64_t count;
  int64_t longest;
};

template <int kParts>
class TableAblation {
 public:
  TableAblation(const TableLists& lists, int64_t k, int multiprocessors, const StreamTimer& timer,
                bench::Report& report, std::string title)
      : lists_(lists),
        k_(k),
        multiprocessors_(multiprocessors),
        timer_(timer),
        report_(report),
        title_(std::move(title)),
        list_tables_(bytes_of(lists.lists * kParts * 256, 4)),
        vector_terms_(bytes_of(lists.count, 4)) {
    const auto blocks = static_cast<unsigned>(lists.lists);
    list_tables_kernel<kParts><<<blocks, 256, 0, timer.stream()>>>(lists.centres, lists.codewords,
                                                                   list_tables_.template as<float>());
    vector_terms_kernel<kParts><<<blocks, 256, 0, timer.stream()>>>(
        lists.offsets, lists.codes, list_tables_.template as<float>(), vector_terms_.template as<float>());
    check(cudaGetLastError());
  }

  // `probes` and `neighbors`, what the library found, are on the device.
  void run(const float* queries, int64_t count, const uint64_t* probes, int64_t slots, const uint64_t* neighbors) {
    const DeviceBytes query_tables(bytes_of(count * kParts * 256, 4));
    const DeviceBytes starts(bytes_of(count * slots, 4));
    const DeviceBytes lengths(bytes_of(count, 4));
    table_starts_kernel<<<static_cast<unsigned>((count + 127) / 128), 128, 0, timer_.stream()>>>(
        probes, count, slots, lists_.offsets, starts.as<int32_t>(), lengths.as<int32_t>());
    TableScanTask task;
    task.queries = queries;
    task.probes = probes;
    task.slots = slots;
    task.k = k_;
    task.offsets = lists_.offsets;
    task.codes = lists_.codes;
    task.centres = lists_.centres;
    task.codewords = lists_.codewords;
    task.query_tables = query_tables.as<float>();
    task.list_tables = list_tables_.template as<float>();
    task.vector_terms = vector_terms_.template as<float>();
    task.starts = starts.as<int32_t>();
    lengths_ = lengths.as<int32_t>();
    found_.resize(bytes_of(count * k_));
    check(cudaMemcpyAsync(found_.data(), neighbors, found_.size() * 8, cudaMemcpyDeviceToHost, timer_.stream()));
    rows_.resize(bytes_of(lists_.count));
    check(cudaMemcpyAsync(rows_.data(), lists_.rows, rows_.size() * 4, cudaMemcpyDeviceToHost, timer_.stream()));
    check(cudaStreamSynchronize(timer_.stream()));
    multi_pass(task, count);
    one<float, TableTerm::of_vector, TableScan::two_pass>(task, count, "two-pass", "f32", "4 bytes a vector");
    one<float, TableTerm::of_vector, TableScan::fused>(task, count, "fused", "f32", "4 bytes a vector");
    one<float, TableTerm::of_list, TableScan::fused>(task, count, "fused", "f32", "table of the list");
    one<float, TableTerm::none, TableScan::fused>(task, count, "fused", "f32", "none");
    one<__half, TableTerm::of_vector, TableScan::fused>(task, count, "fused", "f16", "4 bytes a vector");
    one<__half, TableTerm::none, TableScan::fused>(task, count, "fused", "f16", "none");
    one<uint8_t, TableTerm::of_vector, TableScan::fused>(task, count, "fused", "bytes", "4 bytes a vector");
    one<uint8_t, TableTerm::none, TableScan::fused>(task, count, "fused", "bytes", "none");
  }

 private:
  static constexpr int64_t kSplits = 4;

  void tables(const TableScanTask& task, int64_t count) const {
    query_tables_kernel<kParts><<<static_cast<unsigned>(count), 256, 0, timer_.stream()>>>(
        task.queries, lists_.codewords, const_cast<float*>(task.query_tables));
  }

  void add_row(double milliseconds, const char* scan, const char* values, const char* term, double share) const {
    report_.row({.name = title_ + ", lookups, " + scan + ", " + values + ", " + term,
                 .median_ms = milliseconds,
                 .clock = "cuda",
                 .figures = {{"share_of_neighbors", share}}});
  }

  void multi_pass(TableScanTask task, int64_t count) {
    // Queries at a time, for the memory of their distances.
    task.distance_stride = task.slots * lists_.longest;
    const int64_t tile = std::clamp<int64_t>((int64_t{8} << 30) / (4 * task.distance_stride), 1, count);
    const DeviceBytes distances(bytes_of(tile * task.distance_stride, 4));
    const DeviceBytes values(bytes_of(count * k_, 4));
    const DeviceBytes columns(bytes_of(count * k_, 4));
    task.distances = distances.as<float>();
    const auto input_of = [&](int64_t first) {
      return SelectInput{task.distances,       std::min(tile, count - first), task.distance_stride,
                         task.distance_stride, lengths_ + first,              nullptr};
    };
    const auto plan_of = [&](int64_t first) {
      return plan_select(problem_of(input_of(first), k_, SelectOrder::smallest), multiprocessors_);
    };
    const int64_t last = (count - 1) / tile * tile;
    const DeviceBytes workspace(
        bytes_of(std::max({plan_of(0).workspace_bytes, plan_of(last).workspace_bytes, int64_t{8}})));
    const auto kernel = table_scan_kernel<float, kParts, TableTerm::of_vector, TableScan::multi_pass>;
    allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
    const int64_t bytes = table_shared_bytes<float, kParts>(k_, false);
    const auto search = [&] {
      tables(task, count);
      for (int64_t first = 0; first < count; first += tile) {
        TableScanTask part = task;
        part.queries += first * kTableCols;
        part.probes += first * task.slots;
        part.query_tables += first * kParts * 256;
        part.starts += first * task.slots;
        const SelectInput input = input_of(first);
        kernel<<<static_cast<unsigned>(input.rows * task.slots), kTableThreads, static_cast<size_t>(bytes),
                 timer_.stream()>>>(part);
        const SelectOutput output{values.as<float>() + first * k_, columns.as<int32_t>() + first * k_, nullptr};
        launch_select_rows(input, output, problem_of(input, k_, SelectOrder::smallest), plan_of(first),
                           workspace.as<void>(), timer_.stream());
      }
    };
    const double milliseconds = timer_.of(3, search).median;
    check(cudaGetLastError());
    add_row(milliseconds, "multi-pass", "f32", "4 bytes a vector", share_of_columns(task, columns, count));
  }

  // Columns of a query's distances are positions in its lists, in turn.
  double share_of_columns(const TableScanTask& task, const DeviceBytes& columns, int64_t count) const {
    std::vector<int32_t> places(bytes_of(count * k_));
    std::vector<int32_t> starts(bytes_of(count * task.slots));
    std::vector<uint64_t> probes(bytes_of(count * task.slots));
    std::vector<int64_t> offsets(bytes_of(lists_.lists + 1));
    check(cudaMemcpy(places.data(), columns.as<void>(), places.size() * 4, cudaMemcpyDeviceToHost));
    check(cudaMemcpy(starts.data(), task.starts, starts.size() * 4, cudaMemcpyDeviceToHost));
    check(cudaMemcpy(probes.data(), task.probes, probes.size() * 8, cudaMemcpyDeviceToHost));
    check(cudaMemcpy(offsets.data(), lists_.offsets, offsets.size() * 8, cudaMemcpyDeviceToHost));
    std::vector<int64_t> positions(places.size(), -1);
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] < 0) continue;
      const auto first = starts.begin() + static_cast<int64_t>(i) / k_ * task.slots;
      const auto slot = std::upper_bound(first, first + task.slots, places[i]) - 1;
      const uint32_t list = row_of(probes[static_cast<size_t>(slot - starts.begin())]);
      positions[i] = offsets[list] + places[i] - *slot;
    }
    return share(positions, count);
  }

  double share(const std::vector<int64_t>& positions, int64_t count) const {
    int64_t same = 0;
    int64_t all = 0;
    std::vector<uint32_t> mine;
    for (int64_t query = 0; query < count; ++query) {
      mine.clear();
      for (int64_t i = 0; i < k_; ++i) {
        const int64_t position = positions[static_cast<size_t>(query * k_ + i)];
        if (position >= 0) mine.push_back(rows_[static_cast<size_t>(position)]);
      }
      std::sort(mine.begin(), mine.end());
      for (int64_t i = 0; i < k_; ++i) {
        const uint64_t found = found_[static_cast<size_t>(query * k_ + i)];
        if (found == kPadding) continue;
        ++all;
        same += std::binary_search(mine.begin(), mine.end(), row_of(found));
      }
    }
    return all == 0 ? 1 : static_cast<double>(same) / static_cast<double>(all);
  }

  template <typename Value, TableTerm kTerm, TableScan kScan>
  void one(TableScanTask task, int64_t count, const char* scan, const char* values, const char* term) {
    task.splits = kScan == TableScan::two_pass ? kSplits : 1;
    const DeviceBytes kept(bytes_of(count * task.splits * k_, 8));
    task.kept = kept.as<uint64_t>();
    const auto kernel = table_scan_kernel<Value, kParts, kTerm, kScan>;
    allow_all_shared_memory(reinterpret_cast<const void*>(kernel));
    const int64_t bytes = table_shared_bytes<Value, kParts>(k_, true);
    const int64_t merge_bytes = task.splits * k_ * 8;
    allow_all_shared_memory(reinterpret_cast<const void*>(table_merge_kernel));
    const auto search = [&] {
      if (kTerm != TableTerm::none) tables(task, count);
      kernel<<<static_cast<unsigned>(count * task.splits), kTableThreads, static_cast<size_t>(bytes),
               timer_.stream()>>>(task);
      if (kScan != TableScan::two_pass) return;
      table_merge_kernel<<<static_cast<unsigned>(count), kTableThreads, static_cast<size_t>(merge_bytes),
                           timer_.stream()>>>(task.kept, static_cast<int>(task.splits), static_cast<int>(k_));
    };
    const double milliseconds = timer_.of(3, search).median;
    check(cudaGetLastError());
    std::vector<uint64_t> entries(bytes_of(count * task.splits * k_));
    check(cudaMemcpy(entries.data(), kept.as<void>(), entries.size() * 8, cudaMemcpyDeviceToHost));
    std::vector<int64_t> positions(bytes_of(count * k_), -1);
    for (int64_t query = 0; query < count; ++query) {
      for (int64_t i = 0; i < k_; ++i) {
        const uint64_t entry = entries[static_cast<size_t>(query * task.splits * k_ + i)];
        if (entry != kPadding) positions[static_cast<size_t>(query * k_ + i)] = row_of(entry);
      }
    }
    add_row(milliseconds, scan, values, term, share(positions, count));
  }

  TableLists lists_;
  int64_t k_;
  int multiprocessors_;
  const StreamTimer& timer_;
  bench::Report& report_;
  std::string title_;
  DeviceBytes list_tables_;
  DeviceBytes vector_terms_;
  const int32_t* lengths_ = nullptr;
  std::vector<uint64_t> found_;
  std::vector<uint32_t> rows_;
};

}  // namespace
