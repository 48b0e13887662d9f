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
      : IndexState(content_after(before, MatrixView(&kValue, 1, 1))),
        before_(before == nullptr ? 0 : before->content().rows) {}
  void search(const MatrixView&, const NeighborsView&, const SearchParams&, const Resources&) const override {}
  RangeNeighbors range_search(const MatrixView&, const RangeSearchParams&, const Resources&) const override {
    return {};
  }
  void reconstruct(const uint32_t*, const MutableMatrixView&, const Resources&) const override {}
  IndexBytes bytes() const override { return {before_, 0}; }
  void give_parts(IndexParts&, const Resources&) const override {}

 private:
  static constexpr float kValue = 1;
  int64_t before_;
};

IndexVersion next(const IndexVersion* before) {
  return {std::make_shared<CountedState>(before == nullptr ? nullptr : before->state.get()), {}};
}

int64_t rows_of(const IndexPublisher& publisher) { return publisher.current()->state->content().rows; }

TEST(IndexPublisher, WritersTakeTurnsAndNoStateIsMadeTwice) {
  IndexPublisher publisher;
  EXPECT_EQ(publisher.current(), nullptr);
  std::atomic<int> made{0};
  std::atomic<int> inside{0};
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&] {
      const Resources resources;
      for (int i = 0; i < 50; ++i) {
        publisher.publish(
            [&](const IndexVersion* before) {
              EXPECT_EQ(inside.fetch_add(1), 0);
              ++made;
              auto version = next(before);
              --inside;
              return version;
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
  const auto old = publisher.current();
  publisher.publish(
      [&](const IndexVersion* before) {
        EXPECT_EQ(before, old.get());
        EXPECT_EQ(std::async(std::launch::async, [&] { return publisher.current(); }).get(), old);
        EXPECT_EQ(publisher.current(), old);
        return next(before);
      },
      Resources());
  EXPECT_EQ(rows_of(publisher), 2);
  EXPECT_EQ(old->state->content().rows, 1);
}

TEST(IndexPublisher, AWriterInsideAWriterIsRefused) {
  IndexPublisher publisher;
  publisher.publish(
      [&](const IndexVersion* before) {
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
  const auto fail = [](const IndexVersion*) -> IndexVersion { throw std::runtime_error("no"); };
  EXPECT_THROW(publisher.publish(fail, Resources()), std::runtime_error);
  EXPECT_EQ(rows_of(publisher), 1);
  std::thread([&] { publisher.publish(next, Resources()); }).join();
  EXPECT_EQ(rows_of(publisher), 2);
}

TEST(IndexPublisher, AWriterThatWaitsCanBeCancelled) {
  IndexPublisher publisher;
  CancelToken cancel;
  publisher.publish(
      [&](const IndexVersion* before) {
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
