// Everything at once.
#pragma once

#include <kith/column_file.hpp>
#include <kith/custom_metric.hpp>
#include <kith/device.hpp>
#include <kith/dtype.hpp>
#include <kith/error.hpp>
#include <kith/faiss_file.hpp>
#include <kith/file_info.hpp>
#include <kith/index.hpp>
#include <kith/kmeans.hpp>
#include <kith/knn.hpp>
#include <kith/knn_graph.hpp>
#include <kith/mapped_vectors.hpp>
#include <kith/metric.hpp>
#include <kith/neighbors.hpp>
#include <kith/pairwise_distances.hpp>
#include <kith/product_quantizer.hpp>
#include <kith/range_search.hpp>
#include <kith/recall.hpp>
#include <kith/resources.hpp>
#include <kith/row_filter.hpp>
#include <kith/scalar_quantizer.hpp>
#include <kith/vector_file.hpp>
#include <kith/vector_transform.hpp>
#include <kith/version.hpp>
#include <kith/view.hpp>
