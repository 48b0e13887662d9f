// The library's VectorTransform, as the package's transforms use it.
#include <kith/one_call.hpp>
#include <kith/vector_transform.hpp>

#include "array.hpp"
#include "call.hpp"
#include "matrix_output.hpp"
#include "module.hpp"
#include "vector_source.hpp"

#include <kith/vector_file.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kith::python {
namespace {

using FloatList = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// kind, name, in, out, matrix, offset
using GivenStep = std::tuple<int, std::string, int64_t, int64_t, FloatList, FloatList>;
using TakenStep = std::tuple<int, std::string, int64_t, int64_t, nb::object, nb::object>;

#define KITH_PY_STEP \
  "tuple[int, str, int, int, numpy.typing.NDArray[numpy.float32], numpy.typing.NDArray[numpy.float32]]"

VectorTransform make_transform(const std::string& steps, uint64_t seed, bool check_finite) {
  return VectorTransform({steps, seed, check_finite});
}

void train(VectorTransform& self, const VectorArray& x, const CallOptions& options) {
  const MatrixView rows = view_of(x, "x");
  Call call(options);
  call.run([&] { self.train(rows, call.resources()); });
}

void train_file(VectorTransform& self, const nb::object& source, const CallOptions& options) {
  const VectorFile file = vector_file_of(source);
  Call call(options);
  call.run([&] { self.train(file, call.resources()); });
}

// An OutOfMemory names a limit with room for the output too, where it goes to an array that the call makes.
template <typename Work>
std::optional<nb::object> transformed(int64_t rows, int64_t cols, const Resources& resources,
                                      const std::optional<GivenFloats>& out, const Work& work) {
  return as_one_call("the vectors", resources, [&](const Resources& used) {
    auto output = MatrixOutput::floats(rows, cols, "the vectors", out, used);
    work(output.view(), used);
    return output.take();
  });
}

std::optional<nb::object> apply(const VectorTransform& self, const VectorArray& x, const CallOptions& options,
                                const std::optional<GivenFloats>& out) {
  const MatrixView rows = view_of(x, "x");
  Call call(options);
  return transformed(rows.rows(), self.dimension_out(), call.resources(), out,
                     [&](const MutableMatrixView& to, const Resources& resources) {
                       call.run([&] { self.apply(rows, to, resources); });
                     });
}

std::optional<nb::object> reverse(const VectorTransform& self, const VectorArray& x, const CallOptions& options,
                                  const std::optional<GivenFloats>& out) {
  const MatrixView rows = view_of(x, "x");
  Call call(options);
  return transformed(rows.rows(), self.dimension_in(), call.resources(), out,
                     [&](const MutableMatrixView& to, const Resources& resources) {
                       call.run([&] { self.reverse(rows, to, resources); });
                     });
}

nb::object floats(const std::vector<float>& from) {
  auto* const kept = new std::vector<float>(from);
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<std::vector<float>*>(pointer); });
  const size_t shape[] = {kept->size()};
  return nb::ndarray<nb::numpy, float, nb::ndim<1>>(kept->data(), 1, shape, owner).cast();
}

std::vector<TakenStep> steps(const VectorTransform& self) {
  std::vector<TakenStep> taken;
  for (const TransformStep& step : self.steps()) {
    taken.emplace_back(static_cast<int>(step.kind), step.name, step.in, step.out, floats(step.matrix),
                       floats(step.offset));
  }
  return taken;
}

void set_steps(VectorTransform& self, const std::vector<GivenStep>& given) {
  std::vector<TransformStep> made;
  for (const auto& [kind, name, in, out, matrix, offset] : given) {
    made.push_back({static_cast<TransformStep::Kind>(std::clamp(kind, 0, 3)),
                    name,
                    in,
                    out,
                    {matrix.data(), matrix.data() + matrix.shape(0)},
                    {offset.data(), offset.data() + offset.shape(0)}});
  }
  self.set_steps(std::move(made));
}

void save(const VectorTransform& self, const nb::bytes& path) {
  Call call;
  call.run([&] { save_transform(self, {path.c_str(), path.size()}, call.resources()); });
}

std::tuple<nb::object, std::string, uint64_t, bool> load(const nb::bytes& path) {
  Call call;
  std::optional<VectorTransform> loaded;
  call.run([&] { loaded = load_transform({path.c_str(), path.size()}, call.resources()); });
  const VectorTransformParams params = loaded->params();
  return {nb::cast(std::move(*loaded)), params.steps, params.seed, params.check_finite};
}

}  // namespace

void bind_transforms(nb::module_& module) {
  nb::class_<VectorTransform>(module, "VectorTransform")
      .def(nb::new_(&make_transform), nb::arg("steps"), nb::arg("seed"), nb::arg("check_finite"))
      .def("train", &train, nb::arg("x").noconvert(), nb::arg("options"),
           nb::sig("def train(self, x: " KITH_PY_VECTORS ", options: CallOptions) -> None"))
      .def("train_file", &train_file, nb::arg("path"), nb::arg("options"),
           nb::sig("def train_file(self, path: object, options: CallOptions) -> None"))
      .def("apply", &apply, nb::arg("x").noconvert(), nb::arg("options"), nb::arg("out").noconvert().none(),
           nb::sig("def apply(self, x: " KITH_PY_VECTORS ", options: CallOptions, out: " KITH_PY_GIVEN_DISTANCES
                   ") -> " KITH_PY_DISTANCES " | None"))
      .def("reverse", &reverse, nb::arg("x").noconvert(), nb::arg("options"), nb::arg("out").noconvert().none(),
           nb::sig("def reverse(self, x: " KITH_PY_VECTORS ", options: CallOptions, out: " KITH_PY_GIVEN_DISTANCES
                   ") -> " KITH_PY_DISTANCES " | None"))
      .def("steps", &steps, nb::sig("def steps(self) -> list[" KITH_PY_STEP "]"))
      .def("set_steps", &set_steps, nb::arg("steps"),
           nb::sig("def set_steps(self, steps: list[" KITH_PY_STEP "]) -> None"))
      .def("save", &save, nb::arg("path"), nb::sig("def save(self, path: bytes) -> None"))
      .def_prop_ro("trained", &VectorTransform::trained)
      .def_prop_ro("dimension_in", &VectorTransform::dimension_in)
      .def_prop_ro("dimension_out", &VectorTransform::dimension_out);
  module.def("load_transform", &load, nb::arg("path"),
             nb::sig("def load_transform(path: bytes) -> tuple[VectorTransform, str, int, bool]"),
             "The transform, its steps, seed and check_finite.");
}

}  // namespace kith::python
