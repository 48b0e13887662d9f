// Stands in for hdf5_file.cpp where libhdf5 is left out.
#include "io/hdf5_file.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

namespace kith {
namespace {

[[noreturn]] void throw_unsupported(const FileName& name) {
  throw Unsupported(
      fmt::format("'{}' is an HDF5 file, and this build of Kith has no HDF5; build it where libhdf5's headers are "
                  "installed (libhdf5-dev), or convert the file to .npy",
                  name.path));
}

}  // namespace

OpenedMatrix open_hdf5(OpenedFile, const FileName& name) { throw_unsupported(name); }
int64_t create_hdf5(const std::string&, const FileName& name, const FileLayout&) { throw_unsupported(name); }

}  // namespace kith
