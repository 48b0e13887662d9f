// NN-Descent on the GPU against the CPU: the lists after the start and after every round, and what each round counts.
#include "graph/build/nn_descent/join_cuda.hpp"
#include "graph/lists/graph_lists_cuda.hpp"

#include <kith/knn_graph.hpp>

#include "cuda/device_data.hpp"
#include "cuda/parity.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/lists/working_lists_cuda.hpp"
#include "graph/lists/working_lists.hpp"
#include "graph/lists/graph_lists_cpu.hpp"
#include "kernels/distance/inspect_rows_cuda.hpp"
#include "reference/data.hpp"
#include "reference/graph.hpp"

#include <optional>
#include <random>

namespace kith {
namespace {

using reference::make_floats;
using reference::Shape;

class CudaNnDescentSmall : public OnCuda {};
class CudaNnDescent : public OnCuda {};
class CudaNnDescentTiny : public OnCuda {};  // every kernel once, small enough for tools that watch each access
class CudaWorkingListsSmall : public OnCuda {};

// Lists on the device, empty.
class ListsThere {
 public:
  ListsThere(int64_t rows, int64_t length)
      : rows_(rows),
        length_(length),
        lists_(std::vector<uint64_t>(static_cast<size_t>(rows * length), kPadding).data(), static_cast<size_t>(rows * length) * 8),
        ends_(static_cast<size_t>(rows) * 8) {
    launch_list_ends(ref(), nullptr);
  }
  DeviceListsRef ref() const {
    return {{static_cast<uint64_t*>(lists_.data()), rows_, length_}, static_cast<uint64_t*>(ends_.data())};
  }
  reference::Lists read() const {
    std::vector<uint64_t> all(static_cast<size_t>(rows_ * length_));
    KITH_CUDA_CHECK(cudaDeviceSynchronize());
    lists_.read(all.data());
    reference::Lists lists(static_cast<size_t>(rows_));
    for (int64_t i = 0; i < rows_ * length_; ++i) {
      const uint64_t entry = all[static_cast<size_t>(i)];
      if (entry != kPadding) lists[static_cast<size_t>(i / length_)].push_back(entry);
    }
    return lists;
  }
  // The ends are what they say.
  bool ends_are_right() const {
    std::vector<uint64_t> all(static_cast<size_t>(rows_ * length_));
    std::vector<uint64_t> ends(static_cast<size_t>(rows_));
    KITH_CUDA_CHECK(cudaDeviceSynchronize());
    lists_.read(all.data());
    ends_.read(ends.data());
    for (int64_t row = 0; row < rows_; ++row) {
      if (ends[static_cast<size_t>(row)] != without_flag(all[static_cast<size_t>((row + 1) * length_ - 1)])) return false;
    }
    return true;
  }

 private:
  int64_t rows_;
  int64_t length_;
  DeviceBytes lists_;
  DeviceBytes ends_;
};

// Rows on the device.
class RowsThere {
 public:
  RowsThere(const MatrixView& x, Metric metric) : matrix_(x), norms_(static_cast<size_t>(x.rows()) * 8) {
    rows_ = {{matrix_.view().data(), x.dtype(), x.row_stride(), x.rows()}, x.cols(), key_kind(metric)};
    if (metric != Metric::cosine) return;
    auto* const norms = static_cast<double*>(norms_.data());
    launch_inspect_rows(rows_.rows, x.cols(), {nullptr, nullptr, norms}, nullptr);
    KITH_CUDA_CHECK(cudaDeviceSynchronize());
    rows_.rows.inverse_norms = norms;
  }
  const PairKeyRows& rows() const { return rows_; }

 private:
  DeviceMatrix matrix_;
  DeviceBytes norms_;
  PairKeyRows rows_;
};

struct Descent {
  Metric metric = Metric::l2;
  int64_t length = 12;
  int64_t rounds = 3;
};

// Lists of a merge begin with the rows that follow each in its set, which are OLD.
void begin_with_own_sets(const RowsThere& rows, const Descent& params, int64_t boundary, const PairRows& pairs,
                         WorkingLists& lists, const ListsThere& there,
                         const std::shared_ptr<const DeviceContext>& context) {
  const int64_t k = params.length / 3;
  const std::vector<int64_t> ids = reference::own_set_ids(lists.rows(), boundary, k);
  const NamedRows named{ids.data(), lists.rows(), k, k};
  add_named_rows(pairs, named, lists, on_cpu());
  add_named_rows_cuda(rows.rows(), named, there.ref(), context, on_cuda());
  survey_lists(lists, 1, params.metric, Flags::set, on_cpu());
  const DeviceBytes parts(static_cast<size_t>(survey_parts(lists.rows())) * sizeof(ListSurvey));
  launch_survey_lists(there.ref(), 1, params.metric, Flags::set, static_cast<ListSurvey*>(parts.data()),
                      context->stream());
  context->synchronize();
}

void expect_same_descent(const MatrixView& x, const Descent& params, const DescentRules& rules,
                         const uint32_t* order = nullptr) {
  SCOPED_TRACE(::testing::Message() << x.rows() << " x " << x.cols() << " " << name_of(x.dtype()) << " "
                                    << name_of(params.metric) << ", lists of " << params.length << ", samples "
                                    << rules.samples << (rules.all_pairs ? ", all pairs" : "") << ", boundary "
                                    << rules.boundary);
  const Resources cpu = on_cpu();
  const Resources cuda = on_cuda();
  const PairRows pairs(x, key_kind(params.metric), cpu);
  WorkingLists lists(x.rows(), params.length, cpu);
  const auto context = std::make_shared<const DeviceContext>(0);
  const RowsThere rows(x, params.metric);
  const ListsThere there(x.rows(), params.length);
  if (rules.boundary > 0) begin_with_own_sets(rows, params, rules.boundary, pairs, lists, there, context);
  add_random_rows(pairs, rules.boundary, rules.seed, lists, cpu);
  add_random_rows_cuda(rows.rows(), rules.boundary, rules.seed, there.ref(), context, cuda);
  ASSERT_EQ(reference::difference(there.read(), reference::lists_of(lists)), "") << "at the start";
  ASSERT_TRUE(there.ends_are_right());

  std::optional<DeviceBytes> device_order;
  DescentPasses passes;
  if (order != nullptr) {
    device_order.emplace(order, static_cast<size_t>(x.rows()) * 4);
    passes.order = static_cast<const uint32_t*>(device_order->data());
  }
  const auto steps = make_descent_steps_cpu(pairs, rules, lists, cpu);
  const auto steps_there =
      make_descent_steps_cuda(rows.rows(), rules, there.ref().entries, params.length, context, cuda, passes);
  ProgressMeter meter("descend", 1, cpu);
  for (int64_t round = 0; round < params.rounds; ++round) {
    steps->sample(round, meter);
    steps_there->sample(round, meter);
    ASSERT_EQ(reference::difference(there.read(), reference::lists_of(lists)), "") << "sampled in round " << round;
    ASSERT_EQ(steps_there->join(round, meter), steps->join(round, meter)) << "compared in round " << round;
    ASSERT_EQ(steps_there->merge(meter), steps->merge(meter)) << "entered in round " << round;
    ASSERT_EQ(reference::difference(there.read(), reference::lists_of(lists)), "") << "after round " << round;
  }
}

TEST_F(CudaWorkingListsSmall, OffersInAnyOrder) {
  std::mt19937_64 random(5);
  for (const auto& [length, places] : {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {12, 40}, {32, 32}, {64, 33},
                                       {65, 300}, {1000, 129}, {2000, 1000}}) {
    SCOPED_TRACE(::testing::Message() << "lists of " << length << ", " << places << " offers");
    constexpr int64_t kRows = 37;
    const Resources cpu = on_cpu();
    WorkingLists expected(kRows, length, cpu);
    const ListsThere there(kRows, length);
    const DeviceBytes counters(kCounters * 8);
    for (int turn = 0; turn < 4; ++turn) {
      std::vector<uint64_t> offers(static_cast<size_t>(kRows * places), kPadding);
      int64_t stayed = 0;
      for (int64_t row = 0; row < kRows; ++row) {
        std::vector<uint64_t> fresh;
        for (int64_t i = 0; i < places; ++i) {
          if (random() % 4 == 0 || row % 9 == 8) continue;  // some rows get none
          const auto neighbor = pack_neighbor(static_cast<uint32_t>(random() % (row % 3 == 0 ? 4 : 1000)),
                                              static_cast<uint32_t>(random() % (3 * static_cast<uint64_t>(places))));
          offers[static_cast<size_t>(row * places + i)] = neighbor;
          const uint64_t* const list = expected.list(row);
          const bool known = std::any_of(list, list + length, [&](uint64_t a) { return a != kPadding && without_flag(a) == neighbor; });
          if (!known && std::find(fresh.begin(), fresh.end(), neighbor) == fresh.end()) fresh.push_back(neighbor);
        }
        for (const uint64_t neighbor : fresh) expected.offer_alone(row, neighbor);
        for (const uint64_t neighbor : fresh) stayed += neighbor <= without_flag(expected.list(row)[length - 1]) ? 1 : 0;
      }
      const DeviceBytes device(offers.data(), offers.size() * 8);
      KITH_CUDA_CHECK(cudaMemset(counters.data(), 0, kCounters * 8));
      launch_merge_offers(there.ref(), {static_cast<const uint64_t*>(device.data()), places, 0, kRows},
                          static_cast<unsigned long long*>(counters.data()), nullptr);
      ASSERT_EQ(reference::difference(there.read(), reference::lists_of(expected)), "");
      ASSERT_TRUE(there.ends_are_right());
      std::vector<unsigned long long> counts(kCounters);
      counters.read(counts.data());
      int64_t entered = 0;
      for (const unsigned long long count : counts) entered += static_cast<int64_t>(count);
      ASSERT_EQ(entered, stayed);
    }
  }
}

TEST_F(CudaNnDescentSmall, RoundsOnHardData) {
  for (const Shape shape : reference::kAllShapes) {
    SCOPED_TRACE(reference::name_of(shape));
    const auto x = reference::without_sign(make_floats(shape, 150, 20, 3));
    for (const Metric metric : kEveryMetric) {
      for (const bool all : {false, true}) {
        expect_same_descent(x.view(), {metric}, {.samples = 5, .inbox_slots = 8, .all_pairs = all, .seed = 4});
      }
    }
  }
}

TEST_F(CudaNnDescentSmall, EveryDtype) {
  for (const DType dtype : kAllDtypes) {
    for (const Metric metric : kEveryMetric) {
      const Stored x(dtype, 130, 21, 6, metric != Metric::chi_square);
      expect_same_descent(x.view(), {metric}, {.samples = 6, .inbox_slots = 8, .seed = 1});
    }
  }
  const Stored bits(DType::u8, 130, 9, 6, false);
  expect_same_descent(bits.view(), {Metric::hamming}, {.samples = 6, .inbox_slots = 8, .seed = 1});
}

TEST_F(CudaNnDescentSmall, OnlyPairsAcrossMeetInAMerge) {
  const auto x = make_floats(Shape::gaussian, 140, 9, 3);
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::l1}) {
    for (const int64_t boundary : {1, 60, 139}) {
      expect_same_descent(x.view(), {metric}, {.samples = 4, .inbox_slots = 8, .boundary = boundary, .seed = 4});
    }
  }
}

TEST_F(CudaNnDescentTiny, ARoundOfEveryJoin) {
  const auto x = make_floats(Shape::near_duplicates, 40, 12, 3);
  for (const bool all : {false, true}) {
    expect_same_descent(x.view(), {Metric::l2, 8, 2}, {.samples = 4, .inbox_slots = 4, .all_pairs = all, .seed = 4});
  }
  expect_same_descent(x.view(), {Metric::l1, 8, 1}, {.samples = 4, .inbox_slots = 4, .seed = 4});
  expect_same_descent(x.view(), {Metric::inner_product, 8, 1}, {.samples = 4, .inbox_slots = 4, .boundary = 15, .seed = 4});
  expect_same_descent(make_floats(Shape::gaussian, 90, 130, 3).view(), {Metric::l2, 80, 1}, {.samples = 40, .seed = 4});
}

// One tile of a product, many, and lists that are never full.
TEST_F(CudaNnDescent, SamplesAndColumnsOfEverySize) {
  for (const auto& [rows, cols, samples, length] :
       {std::tuple<int64_t, int64_t, int64_t, int64_t>{700, 33, 32, 64}, {900, 128, 32, 64}, {700, 130, 33, 70},
        {600, 64, 100, 200}, {300, 1, 8, 20}, {200, 2048, 16, 33}, {130, 8001, 12, 24}, {1500, 16, 1, 2}, {40, 5, 64, 80}}) {
    const auto x = make_floats(Shape::gaussian, rows, cols, 3);
    for (const bool all : {false, true}) {
      expect_same_descent(x.view(), {Metric::l2, length, 2}, {.samples = samples, .all_pairs = all, .seed = 4});
    }
    expect_same_descent(x.view(), {Metric::cosine, length, 2}, {.samples = samples, .seed = 4});
    if (cols > 2000) continue;
    expect_same_descent(x.view(), {Metric::inner_product, length, 2},
                        {.samples = samples, .boundary = rows / 3, .seed = 4});
  }
}

TEST_F(CudaNnDescent, ManyRoundsInAnyOrder) {
  const auto x = make_floats(Shape::near_duplicates, 3000, 24, 3);
  std::vector<uint32_t> order(3000);
  for (uint32_t i = 0; i < 3000; ++i) order[i] = (i * 7 + 3) % 3000;
  expect_same_descent(x.view(), {Metric::l2, 40, 6}, {.samples = 16, .seed = 4}, order.data());
  const auto y = make_floats(Shape::gaussian, 5000, 24, 3);
  expect_same_descent(y.view(), {Metric::l2, 40, 6}, {.samples = 16, .seed = 5}, nullptr);
}

// Rounds until little is NEW: joins that a block has, two warps, and one.
TEST_F(CudaNnDescent, JoinsBecomeSmall) {
  for (const int64_t cols : {24, 130, 260}) {
    const auto x = make_floats(Shape::gaussian, 4000, cols, 3);
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
      expect_same_descent(x.view(), {metric, 64, 9}, {.samples = 32, .seed = 4});
    }
  }
  const auto x = make_floats(Shape::near_duplicates, 3000, 24, 3);
  expect_same_descent(x.view(), {Metric::cosine, 40, 8}, {.samples = 20, .inbox_slots = 8, .seed = 4});
  expect_same_descent(x.view(), {Metric::l2, 40, 5}, {.samples = 20, .all_pairs = true, .seed = 4});
}

// One row is so long that the halves of the others lose all their digits; rows that are equal but for last bits.
TEST_F(CudaNnDescent, PairsThatProductsDoNotDecide) {
  auto x = make_floats(Shape::gaussian, 2000, 24, 3);
  for (int64_t c = 0; c < 24; ++c) x.row(77)[c] = 3e4f;
  for (const Metric metric : {Metric::l2, Metric::sqeuclidean, Metric::cosine, Metric::inner_product}) {
    expect_same_descent(x.view(), {metric, 40, 4}, {.samples = 16, .inbox_slots = 4, .seed = 4});
  }
  auto y = make_floats(Shape::gaussian, 2000, 24, 3);
  for (int64_t i = 0; i < 2000; ++i) {
    for (int64_t c = 0; c < 24; ++c) y.row(i)[c] = y.row(i % 20)[c] * (1 + static_cast<float>(i * 24 + c) * 0x1p-23f);
  }
  expect_same_descent(y.view(), {Metric::l2, 40, 4}, {.samples = 16, .inbox_slots = 4, .seed = 4});
}

TEST_F(CudaNnDescentSmall, BeginsWithAGraph) {
  const auto x = make_floats(Shape::gaussian, 200, 12, 3);
  const KnnGraph graph = knn_graph(x.view(), {.k = 7, .metric = Metric::l2, .method = GraphMethod::exact}, on_cpu());
  const auto second = MatrixView(x.view()).slice(120, 80);
  const KnnGraph of_second = knn_graph(second, {.k = 7, .metric = Metric::l2, .method = GraphMethod::exact}, on_cpu());
  const auto context = std::make_shared<const DeviceContext>(0);
  const PairRows pairs(x.view(), KeyKind::l2, on_cpu());
  const RowsThere rows(x.view(), Metric::l2);
  for (const int64_t most : {1, 5, 7, 9}) {
    WorkingLists lists(200, 6, on_cpu());
    const ListsThere there(200, 6);
    for (const bool again : {false, true}) {
      const NamedRows named = named_by(again ? of_second : graph, again ? 120 : 0, most);
      add_named_rows(pairs, named, lists, on_cpu());
      add_named_rows_cuda(rows.rows(), named, there.ref(), context, on_cuda());
    }
    add_random_rows(pairs, 0, 3, lists, on_cpu());
    add_random_rows_cuda(rows.rows(), 0, 3, there.ref(), context, on_cuda());
    EXPECT_EQ(reference::difference(there.read(), reference::lists_of(lists)), "") << most;
  }
}

TEST_F(CudaNnDescentSmall, SaysWhatItCannotHold) {
  const auto x = make_floats(Shape::gaussian, 50, 4, 3);
  const RowsThere rows(x.view(), Metric::l2);
  const ListsThere there(50, 10);
  const auto context = std::make_shared<const DeviceContext>(0);
  const auto text = [&](int64_t samples, int64_t length) {
    return text_thrown<Unsupported>([&] {
      make_descent_steps_cuda(rows.rows(), {.samples = samples}, there.ref().entries, length, context, on_cuda());
    });
  };
  EXPECT_NE(text(513, 10).find("samples = 513"), std::string::npos);
  EXPECT_NE(text(8, 8193).find("lists of 8193"), std::string::npos);
}

}  // namespace
}  // namespace kith
