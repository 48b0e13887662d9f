// Stands in for device_memory.cu in a build without CUDA.
#include "device_memory.hpp"

#include <kith/error.hpp>

namespace hashes {
namespace {

[[noreturn]] void refuse() { throw kith::Unsupported("this build of Kith has no CUDA"); }

}  // namespace

bool has_device() { return false; }
void use_device() { refuse(); }
std::shared_ptr<void> device_memory(int64_t) { refuse(); }
std::shared_ptr<void> copied_to_device(const void*, int64_t) { refuse(); }
void copy_to_host(const void*, void*, int64_t) { refuse(); }
kith::Neighbors knn_by_on_device(const Canberra&, const kith::MatrixView&, const kith::MatrixView&,
                                 const kith::CustomKnnParams&, const kith::Resources&) {
  refuse();
}
kith::CustomGraph knn_graph_by_on_device(const Canberra&, const kith::MatrixView&, const kith::CustomGraphParams&,
                                         const kith::Resources&) {
  refuse();
}

}  // namespace hashes
