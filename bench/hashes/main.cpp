// Hashes of what Kith's public functions return, to be compared before and after a change that must not change results.
//
//   kith_hashes [--device cpu|cuda|cpu/3|cuda:0/3] [--copies N] [--seed N] [--only PREFIX] [--threads N] [--explain]
//   [--list]
//
// Prints a line "case hash" for every call. README.md says how lists are made and compared; draws.hpp how cases get
// their parameters. It uses public headers alone, so that the same source compiles against other versions.
#include "case.hpp"
#include "device_memory.hpp"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace {

using namespace hashes;

struct Options {
  Run run;
  std::string only;
  bool list = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&] {
      if (++i == argc) throw std::runtime_error(name + " wants a value");
      return std::string(argv[i]);
    };
    if (name == "--device") {
      options.run.devices = kith::parse_devices(value());
      options.run.device = options.run.devices.front().device;
    } else if (name == "--copies") {
      options.run.copies = std::stoi(value());
    } else if (name == "--seed") {
      options.run.seed = std::stoull(value());
    } else if (name == "--only") {
      options.only = value();
    } else if (name == "--threads") {
      options.run.threads = std::stoi(value());
    } else if (name == "--explain") {
      options.run.explain = true;
    } else if (name == "--list") {
      options.list = true;
    } else {
      throw std::runtime_error("unknown option " + name +
                               "; there are --device, --copies, --seed, --only, --threads, --explain and --list");
    }
  }
  return options;
}

std::vector<EntryPoint> all_entry_points() {
  std::vector<EntryPoint> all;
  for (const auto& some : {exact_cases(), file_cases(), kmeans_cases(), transform_cases(), quantize_cases(),
                           index_cases(), graph_cases()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// An empty folder that is removed at the end.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "kith_hashes_XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder can be made for files: " + path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void run_all(Options& options) {
  const Folder folder;
  Run& run = options.run;
  run.folder = folder.path();
  if (run.device.kind == kith::DeviceKind::cuda) use_device();
  kith::ResourceOptions resources;
  resources.devices = run.devices;
  resources.threads = run.threads;
  run.resources = kith::Resources(resources);
  // --only knn/ takes one entry point, --only knn all that begin so, --only knn/12 one case.
  for (const EntryPoint& point : all_entry_points()) {
    for (int64_t i = 0; i < point.cases; ++i) {
      const std::string name = std::string(point.name) + "/" + std::to_string(i);
      const bool one_case = options.only.starts_with(std::string(point.name) + "/") && options.only.back() != '/';
      if (one_case ? name != options.only : !(name + "/").starts_with(options.only)) continue;
      if (options.list) {
        std::printf("%s\n", name.c_str());
        continue;
      }
      Case one(run, point.name, i);
      point.run(one);
    }
  }
  std::fprintf(stderr, "%lld calls, %lld of them end in an error\n", static_cast<long long>(run.calls),
               static_cast<long long>(run.errors));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options = parse(argc, argv);
    run_all(options);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kith_hashes: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
