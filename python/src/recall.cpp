// How good found neighbours are.
#include <kith/recall.hpp>

#include "array.hpp"
#include "module.hpp"

namespace kith::python {
namespace {

IdMatrixView view_of_ids(const ConstIdArray& ids) {
  return {ids.data(), static_cast<int64_t>(ids.shape(0)), static_cast<int64_t>(ids.shape(1))};
}

}  // namespace

void bind_recall(nb::module_& module) {
  const auto bind = [&](const char* name, double (*measure)(const IdMatrixView&, const IdMatrixView&, int64_t),
                        const char* signature) {
    module.def(
        name,
        [measure](const ConstIdArray& found, const ConstIdArray& truth, int64_t count) {
          return measure(view_of_ids(found), view_of_ids(truth), count);
        },
        nb::arg("found").noconvert(), nb::arg("truth").noconvert(), nb::arg("count"), nb::sig(signature));
  };
  bind("k_recall", &k_recall,
       "def k_recall(found: numpy.typing.NDArray[numpy.int64], truth: numpy.typing.NDArray[numpy.int64], count: int) "
       "-> float");
  bind("one_recall", &one_recall,
       "def one_recall(found: numpy.typing.NDArray[numpy.int64], truth: numpy.typing.NDArray[numpy.int64], count: int) "
       "-> float");
}

}  // namespace kith::python
