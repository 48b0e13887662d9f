#include "graph/build/method/graph_on_ranks.hpp"

#include <kith/error.hpp>

#include "ranks/agreement.hpp"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

namespace kith {
namespace {

template <typename Value>
std::string text_of(const std::optional<Value>& value) {
  return value ? fmt::format("{}", *value) : "by default";
}

std::string describe(const VectorFile& x, const KnnGraphParams& params) {
  return fmt::format("a graph by {} of {} {} rows of {} values, k = {}, metric {}, cells {}, probes {}, recall {}, seed {}, "
                     "check_finite {}",
                     name_of(params.method), x.rows(), name_of(x.dtype()), x.cols(), params.k, name_of(params.metric),
                     text_of(params.cells), text_of(params.probes), params.recall, params.seed, params.check_finite);
}

// The file that a rank leaves when it throws. Others look for it now and then, as they are asked whether to stop.
class FailureMark {
 public:
  explicit FailureMark(const std::string& folder) : path_(folder + "/failed-on-a-rank") {}

  void clear() const {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  void put() const { const std::ofstream file(path_); }
  bool is_there() {
    constexpr std::chrono::milliseconds kLookInterval{100};
    const auto now = std::chrono::steady_clock::now();
    if (found_ || now - looked_ < kLookInterval) return found_;
    looked_ = now;
    std::error_code ignored;
    return found_ = std::filesystem::exists(path_, ignored);
  }
  bool found() const { return found_; }

 private:
  const std::string path_;
  std::chrono::steady_clock::time_point looked_;
  bool found_ = false;
};

bool is_cancelled(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Cancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

GraphReport graph_on_ranks(Communicator& ranks, const VectorFile& x, const std::string& folder,
                           const KnnGraphParams& params, const GraphWork& work, const Resources& given) {
  const auto mark = std::make_shared<FailureMark>(folder);
  together(ranks, [&] {
    if (!work.part.alone()) throw InvalidArgument("ranks are the parts of the work; leave the part out");
    if (params.method != GraphMethod::cells) {
      throw Unsupported(fmt::format("several ranks build graphs by the method cells alone, not by {}; name that method",
                                    name_of(params.method)));
    }
    if (ranks.rank() > 0) return;
    std::filesystem::create_directories(folder);
    mark->clear();
  });
  check_same_request(ranks, describe(x, params));
  GraphWork own = work;
  own.part = {.number = ranks.rank() + 1, .count = ranks.size()};
  const auto interrupted = [mark, asked = given.options().interrupted] {
    return mark->is_there() || (asked && asked());
  };
  const Resources resources = given.with_cancel(given.options().cancel, interrupted);
  GraphReport report;
  std::exception_ptr error;
  try {
    report = knn_graph_folder(x, folder, params, own, resources);
  } catch (...) {
    error = std::current_exception();
    if (mark->found() && is_cancelled(error)) {
      error = nullptr;  // another rank brings the cause
    } else {
      mark->put();
    }
  }
  agree(ranks, error);
  return report;
}

}  // namespace kith
