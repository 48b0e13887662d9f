// A case: an entry point and a number, from which its parameters follow. It makes one call or several that build on
// each other, and prints a line for each: "knn/12 HASH", "index/12/search HASH".
#pragma once

#include <kith/kith.hpp>

#include "draws.hpp"
#include "hash.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace hashes {

// What a whole run has in common.
struct Run {
  uint64_t seed = 1;
  kith::Device device = kith::Device::cpu();  // the first of these
  std::vector<kith::DeviceParts> devices = {{kith::Device::cpu()}};
  int copies = 0;  // of each vector of an index on these devices; 0: calls name the devices
  int threads = 0;
  bool explain = false;  // behind each hash: the parameters, and for an error its text
  std::string folder;    // for files
  kith::Resources resources;
  int64_t calls = 0;
  int64_t errors = 0;
};

class Case {
 public:
  Case(Run& run, std::string_view entry_point, int64_t index)
      : draws(run.seed, entry_point, index),
        number(index),
        resources(run.resources),
        run_(run),
        name_(std::string(entry_point) + "/" + std::to_string(index)) {}

  Draws draws;
  const int64_t number;
  const kith::Resources resources;

  // What --explain shows of the parameters.
  void note(std::string_view text) { note_.append(" ").append(text); }
  void note(std::string_view name, int64_t value) { note(std::string(name) + "=" + std::to_string(value)); }
  void note(const SearchData& data) {
    note(kith::name_of(data.metric));
    note(data.base);
    note(data.queries);
  }
  void note(const Rows& rows) {
    note(std::string(kith::name_of(rows.dtype())) + ":" + std::to_string(rows.rows()) + "x" +
         std::to_string(rows.cols()));
  }

  // Prints the hash of what the call has put into it, or of the type of its exception. Texts are free to change.
  template <typename Call>
  void call(std::string_view step, const Call& call) {
    Hash hash;
    std::string error;
    try {
      call(hash);
    } catch (const std::exception& thrown) {
      hash = Hash();
      hash.text(type_of(thrown));
      error = std::string(" ") + std::string(type_of(thrown)) + ": " + thrown.what();
      ++run_.errors;
    }
    ++run_.calls;
    std::printf("%s%s%.*s %016llx", name_.c_str(), step.empty() ? "" : "/", static_cast<int>(step.size()), step.data(),
                static_cast<unsigned long long>(hash.value()));
    if (run_.explain) std::printf("%s%s", note_.c_str(), error.c_str());
    std::printf("\n");
    if (run_.explain) std::fflush(stdout);
  }

  kith::Device device() const { return run_.device; }
  int threads() const { return run_.threads; }
  // An index on the run's devices, which has the same results.
  kith::Index placed(const kith::Index& index) const {
    if (run_.copies == 0) return index;
    const bool walks = index.factory().find("Graph") != std::string::npos;  // and has no shards
    return index.to({run_.devices, walks ? resources.parts() : run_.copies}, resources);
  }
  std::string path(std::string_view name) const { return run_.folder + "/" + std::string(name); }

  // Calls under the least host memory limit that does: begins with one that is too small, and takes the one that the
  // error names, or twice as much.
  template <typename Call>
  auto under_least_memory(const Call& call) const {
    int64_t limit = 4096;
    for (;;) {
      try {
        return call(limited(limit));
      } catch (const kith::OutOfMemory& error) {
        if (limit > (int64_t{1} << 32)) throw;
        limit = std::max(limit * 2, std::min(error.bytes_needed(), int64_t{1} << 32));
      }
    }
  }

 private:
  kith::Resources limited(int64_t bytes) const {
    kith::ResourceOptions options;
    options.devices = run_.devices;
    options.threads = run_.threads;
    options.host_memory_limit = bytes;
    return kith::Resources(options);
  }
  static std::string_view type_of(const std::exception& error) {
    if (dynamic_cast<const kith::InvalidArgument*>(&error) != nullptr) return "InvalidArgument";
    if (dynamic_cast<const kith::InvalidState*>(&error) != nullptr) return "InvalidState";
    if (dynamic_cast<const kith::Unsupported*>(&error) != nullptr) return "Unsupported";
    if (dynamic_cast<const kith::IoError*>(&error) != nullptr) return "IoError";
    if (dynamic_cast<const kith::CorruptFile*>(&error) != nullptr) return "CorruptFile";
    if (dynamic_cast<const kith::OutOfMemory*>(&error) != nullptr) return "OutOfMemory";
    if (dynamic_cast<const kith::DeviceError*>(&error) != nullptr) return "DeviceError";
    if (dynamic_cast<const kith::Cancelled*>(&error) != nullptr) return "Cancelled";
    return "std::exception";
  }

  Run& run_;
  std::string name_;
  std::string note_;
};

struct EntryPoint {
  std::string_view name;
  int64_t cases = 0;
  void (*run)(Case&) = nullptr;
};

std::vector<EntryPoint> exact_cases();
std::vector<EntryPoint> file_cases();
std::vector<EntryPoint> kmeans_cases();
std::vector<EntryPoint> transform_cases();
std::vector<EntryPoint> quantize_cases();
std::vector<EntryPoint> index_cases();
std::vector<EntryPoint> graph_cases();

}  // namespace hashes
