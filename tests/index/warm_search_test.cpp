// A warm search of one query allocates nothing: the memory that it gives back is what the next one takes
// (core/reused_memory.hpp). What the calling thread asks of operator new is counted here, and the blocks that buffers
// have from the system.
#include <kith/kith.hpp>

#include "core/reused_memory.hpp"
#include "kernels/forced_target.hpp"
#include "reference/data.hpp"
#include "reference/sanitized.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

thread_local int64_t new_calls = 0;

}  // namespace

// Not inlined: compilers would take malloc and free for a pair that does not match. With all forms that the deletes
// below serve: sanitizers have others of their own.
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++new_calls;
  return std::malloc(std::max<size_t>(bytes, 1));
}
[[gnu::noinline]] void* operator new(size_t bytes) {
  if (void* const block = operator new(bytes, std::nothrow)) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, size_t) noexcept { std::free(block); }

namespace kith {
namespace {

using reference::make_floats;
using reference::Matrix;
using reference::Shape;

constexpr int64_t kWarmCols = 64;

Resources on_threads(int threads) {
  ResourceOptions options;
  options.device = threads == 1 ? Device::cpu() : Device();  // so small a search is not worth a GPU
  options.threads = threads;
  return Resources(options);
}

Index made_index(const std::string& factory, Metric metric, const Matrix<float>& rows, const Resources& resources) {
  IndexParams params;
  params.metric = metric;
  Index index(factory, params);
  if (factory != "Flat") index.train(rows.view(), resources);
  index.add(rows.view(), Ownership::copy, resources);
  return index;
}

// Allocations of searches of one query each, after as many that do not count.
int64_t allocations_of(const Index& index, const Matrix<float>& queries, const SearchParams& params,
                       const Resources& resources) {
  Neighbors found(1, params.k, resources);
  const NeighborsView out = found.view();
  const auto search_all = [&] {
    for (int64_t i = 0; i < queries.rows; ++i) {
      index.search(MatrixView(queries.row(i), 1, queries.cols), out, params, resources);
    }
  };
  search_all();
  search_all();
  const int64_t before = new_calls + system_blocks();
  search_all();
  return new_calls + system_blocks() - before;
}

TEST(WarmSearch, OfOneQueryAllocatesNothing) {
  if (reference::is_sanitized()) GTEST_SKIP() << "a sanitizer is given every block";
  const Matrix<float> rows = make_floats(Shape::gaussian, 5000, kWarmCols, 1);
  const Matrix<float> queries = make_floats(Shape::gaussian, 40, kWarmCols, 2);
  const char* const kinds[] = {"Flat",      "SQ8",          "PQ8",       "IVF16,Flat",  "IVF16,SQ8",
                               "IVF16,SQ4", "IVF16,SQfp16", "IVF16,PQ8", "IVF16,PQ16x4"};
  for (const std::string kind : kinds) {
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
      for (const int threads : {1, 2}) {
        const Resources resources = on_threads(threads);
        const Index index = made_index(kind, metric, rows, resources);
        for (const int64_t k : {1, 10, 100}) {
          EXPECT_EQ(allocations_of(index, queries, {.k = k}, resources), 0)
              << kind << ' ' << name_of(metric) << ", " << threads << " threads, k = " << k;
        }
      }
    }
  }
}

// Every third row, and every hundredth.
std::vector<std::vector<uint8_t>> masks_of(int64_t rows) {
  std::vector<std::vector<uint8_t>> masks;
  for (const int64_t apart : {3, 100}) {
    std::vector<uint8_t>& mask = masks.emplace_back(static_cast<size_t>(rows), uint8_t{0});
    for (int64_t i = 0; i < rows; i += apart) mask[static_cast<size_t>(i)] = 1;
  }
  return masks;
}

TEST(WarmSearch, WithAFilterAllocatesNothing) {
  if (reference::is_sanitized()) GTEST_SKIP() << "a sanitizer is given every block";
  const Matrix<float> rows = make_floats(Shape::gaussian, 5000, kWarmCols, 1);
  const Matrix<float> queries = make_floats(Shape::gaussian, 20, kWarmCols, 2);
  const std::vector<std::vector<uint8_t>> masks = masks_of(rows.rows);
  for (const std::string kind : {"Flat", "SQ8", "PQ8", "IVF16,Flat", "IVF16,SQ8", "IVF16,PQ8"}) {
    for (const int threads : {1, 2}) {
      const Resources resources = on_threads(threads);
      const Index index = made_index(kind, Metric::l2, rows, resources);
      for (const std::vector<uint8_t>& mask : masks) {
        SearchParams params{.k = 10};
        params.filter = RowFilter::mask(mask.data(), rows.rows);
        EXPECT_EQ(allocations_of(index, queries, params, resources), 0) << kind << ", " << threads << " threads";
      }
    }
  }
}

// With every instruction set: each has its own ways to scan lists.
TEST(WarmSearch, OfEveryOtherKindAllocatesNothing) {
  if (reference::is_sanitized()) GTEST_SKIP() << "a sanitizer is given every block";
  const Matrix<float> rows = make_floats(Shape::gaussian, 1500, kWarmCols, 1);
  const Matrix<float> queries = make_floats(Shape::gaussian, 20, kWarmCols, 2);
  const char* const kinds[] = {"SQ6",           "IVF8,SQ6",       "RQ4x4",          "IVF8,RQ4x8_Nqint8",
                               "LSQ4x8_Nqint8", "OPQ8,IVF8,PQ8",  "PCA32,IVF8,SQ8", "IVF8,PQ8,RFlat",
                               "PQ8,RFlat",     "SQ8,Refine(SQ8)", "Graph16",       "IVF8,RaBitQ"};
  for (const std::string kind : kinds) {
    const Index index = made_index(kind, Metric::l2, rows, on_threads(2));
    for (const std::string& target : cpu_targets()) {
      const ForcedTarget forced(target);
      for (const int threads : {1, 2}) {
        const Resources resources = on_threads(threads);
        EXPECT_EQ(allocations_of(index, queries, {.k = 10}, resources), 0)
            << kind << ", " << threads << " threads, " << target;
      }
    }
  }
}

// Threads search at once, each with memory of its own, and end; a child that was forked from a warm thread searches
// too.
TEST(WarmSearch, IsTheSameOnEveryThreadAndInAChild) {
  const Matrix<float> rows = make_floats(Shape::gaussian, 3000, kWarmCols, 1);
  const Matrix<float> queries = make_floats(Shape::gaussian, 20, kWarmCols, 2);
  const Resources resources = on_threads(1);
  const Index index = made_index("IVF16,SQ8", Metric::l2, rows, resources);
  const Neighbors expected = index.search(queries.view(), {.k = 5}, resources);
  const auto differ = [&] {
    int64_t count = 0;
    for (int round = 0; round < 5; ++round) {
      for (int64_t i = 0; i < queries.rows; ++i) {
        const Neighbors one = index.search(MatrixView(queries.row(i), 1, kWarmCols), {.k = 5}, resources);
        for (int64_t j = 0; j < 5; ++j) count += one.ids()[j] != expected.ids()[i * 5 + j];
      }
    }
    return count;
  };
  EXPECT_EQ(differ(), 0);
  std::vector<int64_t> found(4, -1);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < found.size(); ++t) threads.emplace_back([&, t] { found[t] = differ(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, std::vector<int64_t>(found.size(), 0));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(differ() == 0 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ReusedMemory, BlocksHaveTheirBytesAndAreAligned) {
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (size_t bytes : {0, 1, 63, 64, 65, 255, 256, 257, 320, 321, 1000, 4095, 4097, 70000, 1 << 20, (1 << 20) + 1}) {
    for (int twice = 0; twice < 2; ++twice) {
      auto* const block = static_cast<unsigned char*>(take_reused(bytes));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
      std::fill_n(block, bytes, static_cast<unsigned char>(blocks.size()));
      blocks.emplace_back(block, bytes);
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto [block, bytes] = blocks[i];
    EXPECT_EQ(std::count(block, block + bytes, static_cast<unsigned char>(i)), static_cast<std::ptrdiff_t>(bytes));
  }
  for (const auto& [block, bytes] : blocks) give_reused(block, bytes);
}

}  // namespace
}  // namespace kith
