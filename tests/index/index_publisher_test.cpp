// Versions of an index: readers never wait, writers take turns and no work is done twice.
#include "index/index_publisher.hpp"

#include <kith/error.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

namespace kith {
namespace {

// A state that counts: it has as many rows as states were made before it, and itself.
class CountedState final : public IndexState {
 public:
  explicit CountedState(const IndexState* before)
      : IndexState(before, MatrixView(&kValue, 1, 1)), before_(before == nullptr ? 0 : before->content().rows) {}
  void search(const MatrixView&, const NeighborsView&, const SearchParams&, const Resources&) const override {}
  RangeNeighbors range_search(const MatrixView&, const RangeSearchParams&, const Resources&) const override {
    return {};
  }
  IndexBytes bytes() const override { return {before_, 0}; }

 private:
  static constexpr float kValue = 1;
  int64_t before_;
};

std::shared_ptr<const IndexState> next(const IndexState* before) { return std::make_shared<CountedState>(before); }

int64_t rows_of(const IndexPublisher& publisher) { return publisher.state()->content().rows; }

TEST(IndexPublisher, WritersTakeTurnsAndNoStateIsMadeTwice) {
  IndexPublisher publisher;
  EXPECT_EQ(publisher.state(), nullptr);
  std::atomic<int> made{0};
  std::atomic<int> inside{0};
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&] {
      const Resources resources;
      for (int i = 0; i < 50; ++i) {
        publisher.publish(
            [&](const IndexState* before) {
              EXPECT_EQ(inside.fetch_add(1), 0);
              ++made;
              auto state = next(before);
              --inside;
              return state;
            },
            resources);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(made, 200);
  EXPECT_EQ(rows_of(publisher), 200);
}

TEST(IndexPublisher, ReadersSeeTheOldStateWhileTheNextIsMade) {
  IndexPublisher publisher;
  publisher.publish(next, Resources());
  const auto old = publisher.state();
  publisher.publish(
      [&](const IndexState* before) {
        EXPECT_EQ(before, old.get());
        EXPECT_EQ(std::async(std::launch::async, [&] { return publisher.state(); }).get(), old);
        EXPECT_EQ(publisher.state(), old);
        return next(before);
      },
      Resources());
  EXPECT_EQ(rows_of(publisher), 2);
  EXPECT_EQ(old->content().rows, 1);
}

TEST(IndexPublisher, AWriterInsideAWriterIsRefused) {
  IndexPublisher publisher;
  publisher.publish(
      [&](const IndexState* before) {
        EXPECT_THROW(publisher.publish(next, Resources()), InvalidState);
        return next(before);
      },
      Resources());
  publisher.publish(next, Resources());
  EXPECT_EQ(rows_of(publisher), 2);
}

TEST(IndexPublisher, AfterAnExceptionTheOldStateStaysAndTheTurnGoesOn) {
  IndexPublisher publisher;
  publisher.publish(next, Resources());
  const auto fail = [](const IndexState*) -> std::shared_ptr<const IndexState> { throw std::runtime_error("no"); };
  EXPECT_THROW(publisher.publish(fail, Resources()), std::runtime_error);
  EXPECT_EQ(rows_of(publisher), 1);
  std::thread([&] { publisher.publish(next, Resources()); }).join();
  EXPECT_EQ(rows_of(publisher), 2);
}

TEST(IndexPublisher, AWriterThatWaitsCanBeCancelled) {
  IndexPublisher publisher;
  CancelToken cancel;
  publisher.publish(
      [&](const IndexState* before) {
        const Resources resources = Resources().with_cancel(cancel);
        auto waiting = std::async(std::launch::async, [&] { publisher.publish(next, resources); });
        cancel.request();
        EXPECT_THROW(waiting.get(), Cancelled);
        return next(before);
      },
      Resources());
  EXPECT_EQ(rows_of(publisher), 1);
}

}  // namespace
}  // namespace kith
