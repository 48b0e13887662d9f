// Checks of rows and queries that all kinds of index share. They throw InvalidArgument.
#pragma once

#include "index/index_kind.hpp"
#include "index/index_state.hpp"
#include "rows/narrowed_rows.hpp"
#include "rows/rows_info.hpp"

#include <string>
#include <string_view>

namespace kith {

// Checks that an index for this metric can be trained on these rows.
void check_trained_on(const RowsInfo& rows, Metric metric);
// Checks that all values of rows in memory are finite, if params.check_finite.
void check_training_values(const MatrixView& rows, const IndexParams& params, const Resources& resources);

// Checks that `rows` can be added to `current`, or to an empty index if it is null: by dtype, columns, number and
// memory space.
void check_added(const IndexState* current, const RowsInfo& rows, Metric metric);

// Checks that all values can be searched by the metric; the first row is number first_row. Looks at rows in host
// memory, and at rows in a GPU's memory that become codes; other rows there are left to the kind of index.
void check_added_values(const MatrixView& rows, int64_t first_row, const IndexParams& params, bool coded,
                        const Resources& resources);

// How many rows of a file to add at a time: some megabytes, or a part of what the limit has left.
int64_t rows_of_a_piece(const RowsInfo& rows, const Resources& resources);

// Checks that the index has no offset, which it could not subtract from vectors of a file.
void refuse_unshifted_file(const Offset& offset, const std::string& path);

// Checks that there is one id per row, in host memory, or none at all.
void check_ids(VectorView<const int64_t> ids, int64_t rows);

// Checks that queries fit the content and the metric.
void check_queries(const IndexContent& content, const MatrixView& queries, Metric metric);
// Checks that probes, refine, beam, width and recall are in range, and used by the kind of index.
void check_search_params(const SearchUse& use, std::string_view factory, const SearchParams& params);
void check_search_params(const SearchUse& use, std::string_view factory, const RangeSearchParams& params);
// Checks that a search can ask for a recall: it walks over a graph, or there is a table of measurements (`tuned`).
void check_recall(const SearchUse& use, std::string_view factory, double recall, bool tuned);

// Checks that `out` fits `count` vectors of the state, which may be null.
void check_reconstructed(const IndexState* state, int64_t count, const MutableMatrixView& out);

}  // namespace kith
