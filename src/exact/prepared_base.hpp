// A base laid out for one backend ahead of the search: norms, packed panels, a copy in device memory.
#pragma once

#include <kith/dtype.hpp>
#include <kith/metric.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <memory>

namespace kith {

class PackedRows;

class PreparedBase {
 public:
  virtual ~PreparedBase() = default;
  // Whether queries of this type can be searched in it, on the processor as it is used now.
  virtual bool serves(DType) const { return true; }
  // The rows packed for the CPU, or null.
  virtual const PackedRows* packed() const { return nullptr; }
  // Called before a search of one query: makes what only such searches use, unless it exists already or there is no
  // room for it. Any thread may call it.
  virtual void expect_one(int64_t /*k*/, const Resources&) const {}
  // Its size in the memory of the device that it was made for.
  virtual int64_t bytes() const = 0;
};

// Checks for NaN and infinities where `check_finite`, naming the row from `first_row` on.
struct PrepareOptions {
  Metric metric = Metric::l2;
  DType queries = DType::f32;  // that will be searched for
  bool check_finite = true;
  int64_t first_row = 0;
};
std::shared_ptr<PreparedBase> prepare_base_cpu(const MatrixView& base, const PrepareOptions& options,
                                               const Resources& resources);
std::shared_ptr<PreparedBase> prepare_base_cuda(int device, const MatrixView& base, const PrepareOptions& options,
                                                const Resources& resources);

}  // namespace kith
