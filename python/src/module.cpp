// The extension module _kith: the thin layer between the package, which turns what people pass into plain arrays and
// numbers, and the library, which does the rest.
#include "module.hpp"

NB_MODULE(_kith, module) {
  module.doc() = "Kith's compiled half. Use the package kith instead.";
  // An exception that nobody caught keeps its frames, and so our objects, to the end: no reason to print.
  nanobind::set_leak_warnings(false);
  kith::python::bind_errors();
  kith::python::bind_bfloat16(module);
  kith::python::bind_call(module);
  kith::python::bind_device_array(module);
  kith::python::bind_files(module);
  kith::python::bind_gil();
  kith::python::bind_info(module);
  kith::python::bind_row_filter(module);
  kith::python::bind_index(module);
  kith::python::bind_collection(module);
  kith::python::bind_kmeans(module);
  kith::python::bind_knn(module);
  kith::python::bind_knn_graph(module);
  kith::python::bind_graph_merge(module);
  kith::python::bind_pairwise_distances(module);
  kith::python::bind_plan(module);
  kith::python::bind_quantizers(module);
  kith::python::bind_additive_quantizers(module);
  kith::python::bind_quantizer_file(module);
  kith::python::bind_range_search(module);
  kith::python::bind_recall(module);
  kith::python::bind_smooth_paths(module);
  kith::python::bind_transforms(module);
}
