// What every kind of index wants of the rows that are added to it, and of queries.
#pragma once

#include "index/index_kind.hpp"
#include "index/index_state.hpp"
#include "rows/narrowed_rows.hpp"
#include "rows/rows_info.hpp"

#include <string>
#include <string_view>

namespace kith {

// That an index can be trained on these for searches by that metric.
void check_trained_on(const RowsInfo& rows, Metric metric);
// That all values of rows in memory are finite, where that is to be checked.
void check_training_values(const MatrixView& rows, const IndexParams& params, const Resources& resources);

// That `rows` can come to `current`, null where the index is empty: by their dtype, their columns, their number and
// where they lie.
void check_added(const IndexState* current, const RowsInfo& rows, Metric metric);

// That all values can be searched by the metric; the first row is number first_row. Passes over rows in host memory, and
// over those in a GPU's that become codes; others there are left to their kind.
void check_added_values(const MatrixView& rows, int64_t first_row, const IndexParams& params, bool coded,
                        const Resources& resources);

// How many rows of a file are added at a time: a few megabytes, or a part of what the limit has left.
int64_t rows_of_a_piece(const RowsInfo& rows, const Resources& resources);

// That an index subtracts nothing from vectors that come from a file.
void refuse_unshifted_file(const Offset& offset, const std::string& path);

// That there is an id for each row, or none at all, in host memory.
void check_ids(VectorView<const int64_t> ids, int64_t rows);

// That these can be searched for.
void check_queries(const IndexContent& content, const MatrixView& queries, Metric metric);
// That probes, refine, beam, width and recall are in their ranges, and mean something to an index of that kind.
void check_search_params(const SearchUse& use, std::string_view factory, const SearchParams& params);
void check_search_params(const SearchUse& use, std::string_view factory, const RangeSearchParams& params);
// That a recall can be had: of a walk, or `tuned`: there is a table of what parameters reach.
void check_recall(const SearchUse& use, std::string_view factory, double recall, bool tuned);

// That `out` has room for so many vectors of the state, which may be null.
void check_reconstructed(const IndexState* state, int64_t count, const MutableMatrixView& out);

}  // namespace kith
