// The parts of the module _kith; each binds one concept and lives in the file of its name.
#pragma once

#include <nanobind/nanobind.h>

namespace kith::python {

namespace nb = nanobind;

void bind_errors();
void bind_bfloat16(nb::module_& module);
void bind_call(nb::module_& module);
void bind_collection(nb::module_& module);
void bind_device_array(nb::module_& module);
void bind_files(nb::module_& module);
void bind_gil();
void bind_index(nb::module_& module);
void bind_info(nb::module_& module);
void bind_kmeans(nb::module_& module);
void bind_knn(nb::module_& module);
void bind_graph_merge(nb::module_& module);
void bind_knn_graph(nb::module_& module);
void bind_pairwise_distances(nb::module_& module);
void bind_additive_quantizers(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_quantizers(nb::module_& module);
void bind_quantizer_file(nb::module_& module);
void bind_range_search(nb::module_& module);
void bind_recall(nb::module_& module);
void bind_row_filter(nb::module_& module);
void bind_smooth_paths(nb::module_& module);
void bind_transforms(nb::module_& module);

}  // namespace kith::python
