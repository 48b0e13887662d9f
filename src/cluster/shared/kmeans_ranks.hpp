// k-means by several ranks: a backend in which every rank assigns its part of the rows, around the backend of its own.
//
// All ranks run the loops of k-means in step, with the same numbers. In a pass each assigns its rows; then the centres'
// sums pass from rank to rank in the order of the rows (centre_sums.hpp), some centres at a time, as a pipeline: rank 1
// continues rank 0's sums of the first centres while rank 0 adds up the next. The last rank has the totals and sends
// them to all. So sums have the order, and the bytes, of one process.
//
// Exchanged in a pass: 16 bytes a column and centre from each rank to the next, 8 to all; 8 bytes for each 1,024 rows.
// While first centres are drawn, and where centres are empty: 8 bytes a row. At the end: 4 bytes a row.
#pragma once

#include <kith/communicator.hpp>

#include "cluster/steps/kmeans_backend.hpp"

#include <memory>

namespace kith {

class KMeansSharedByRanks final : public KMeansSharing {
 public:
  explicit KMeansSharedByRanks(Communicator& ranks) : ranks_(ranks) {}

  std::unique_ptr<KMeansBackend> share(std::unique_ptr<KMeansBackend> own, const KMeansShape& shape,
                                       const KMeansRequest& request, const KMeansPlan& plan,
                                       const Resources& resources) const override;
  void survey(DataSurvey& survey, int64_t rows, int64_t cols, const SurveyPart& survey_part) const override;

 private:
  Communicator& ranks_;
};

}  // namespace kith
