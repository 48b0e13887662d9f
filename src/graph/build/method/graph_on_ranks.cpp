#include "graph/build/method/graph_on_ranks.hpp"

#include <kith/error.hpp>
#include <kith/refused_row.hpp>

#include "graph/build/method/build_graph.hpp"
#include "graph/handle/graph_folder.hpp"
#include "graph/lists/graph_share.hpp"
#include "io/read_rows.hpp"
#include "ranks/agreement.hpp"
#include "rows/rows_info.hpp"

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

std::string describe(const RowsInfo& x, const KnnGraphParams& params) {
  return fmt::format(
      "a graph by {} of {} {} rows of {} values, k = {}, metric {}, cells {}, probes {}, recall {}, seed {}, "
      "check_finite {}",
      name_of(params.method), x.rows, name_of(x.dtype), x.cols, params.k, name_of(params.metric), text_of(params.cells),
      text_of(params.probes), params.recall, params.seed, params.check_finite);
}
std::string describe_rounds(const KnnGraphParams& params) {
  const auto named = [](const auto& value) { return value ? std::string(name_of(*value)) : std::string("by default"); };
  return fmt::format("start {}, samples {}, list_length {}, iterations {}, delta {}, update {}, shards {}",
                     named(params.start), text_of(params.samples), text_of(params.list_length),
                     text_of(params.iterations), text_of(params.delta), named(params.update), text_of(params.shards));
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

// Else each rank has all rows in memory.
bool is_shared_from_disk(const KnnGraphParams& params) {
  return params.method == GraphMethod::cells && params.recall < 1;
}

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
    if (!is_shared_from_disk(params) && (work.keep || !work.folder.empty())) {
      throw Unsupported(
          fmt::format("several ranks keep steps of graphs by the method cells alone, not by {}; leave work "
                      "and keep_work out, or name that method",
                      name_of(params.method)));
    }
    if (ranks.rank() > 0) return;
    std::filesystem::create_directories(folder);
    mark->clear();
  });
  if (!is_shared_from_disk(params)) {
    const KnnGraph graph = graph_on_ranks(ranks, x, params, given);
    together(ranks, [&] {
      if (ranks.rank() == 0) save_graph_folder(graph, folder, work.form, given);
    });
    return graph.report();
  }
  check_same_request(ranks, describe(RowsInfo(x), params));
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

namespace {

// build(share, resources) on every rank, once all are known to want the same.
template <typename Build>
void build_together(Communicator& ranks, const MatrixView& x, const KnnGraphParams& params, const Resources& given,
                    const Build& build) {
  together(ranks, [&] {
    params.validate();
    if (!x.space().host_readable()) throw Unsupported("several ranks build a graph of rows in host memory");
    if (given.device().kind == DeviceKind::cuda) {
      throw Unsupported("several ranks build a graph in memory on their CPUs; build it in a folder for GPUs, or leave "
                        "the device to be chosen");
    }
  });
  check_same_request(ranks, fmt::format("{}, {}", describe(RowsInfo(x), params), describe_rounds(params)));
  Resources resources = given.with_device(Device::cpu());
  if (ranks.rank() > 0) resources = resources.with_log({});
  const GraphShare share(ranks, x.rows());
  in_lockstep(ranks, [&] { build(ranks.size() > 1 ? &share : nullptr, resources); });
}

}  // namespace

KnnGraph graph_on_ranks(Communicator& ranks, const VectorFile& x, const KnnGraphParams& params,
                        const Resources& resources) {
  const MatrixBuffer rows = together(ranks, [&] { return read_rows(x, {}, x.dtype(), resources); });
  return naming_files({{"x", x}}, [&] { return graph_on_ranks(ranks, rows.view(), params, resources); });
}

KnnGraph graph_on_ranks(Communicator& ranks, const MatrixView& x, const KnnGraphParams& params,
                        const Resources& resources) {
  KnnGraph graph;
  build_together(ranks, x, params, resources, [&](const GraphShare* share, const Resources& used) {
    graph = knn_graph_of(x, params, share, used);
  });
  return graph;
}

GraphReport graph_on_ranks(Communicator& ranks, const MatrixView& x, const NeighborsView& out,
                           const KnnGraphParams& params, const Resources& resources) {
  GraphReport report;
  together(ranks, [&] {
    if (!out.space.host_readable()) throw Unsupported("results of several ranks go to arrays in host memory");
  });
  build_together(ranks, x, params, resources, [&](const GraphShare* share, const Resources& used) {
    report = knn_graph_of(x, out, params, share, used);
  });
  return report;
}

}  // namespace kith
