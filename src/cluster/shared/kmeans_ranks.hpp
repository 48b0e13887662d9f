// k-means by several ranks: a backend in which every rank assigns its part of the rows, around the backend of its own.
//
// All ranks go through the loops of k-means side by side, with the same numbers. In a pass each assigns its rows; then
// the centres' sums go from rank to rank in the order of the rows (centre_sums.hpp), some centres at a time, so that
// ranks add up side by side: rank 1 goes on with what rank 0 has of the first centres while that is at the next. The
// last rank has the totals and tells all. So sums have the order, and the bytes, of one process.
//
// Exchanged in a pass: 16 bytes a column and centre from each rank to the next, 8 to all; 8 bytes for each 1,024 rows.
// While first centres are drawn, and where centres are empty: 8 bytes a row. At the end: 4 bytes a row.
#pragma once

#include <kith/communicator.hpp>

#include "cluster/steps/kmeans_backend.hpp"
#include "ranks/agreement.hpp"
#include "rows/row_source.hpp"

#include <memory>
#include <optional>

namespace kith {

// Rows of a file, of which this rank's part lies in memory too.
class HeldRows final : public RowSource {
 public:
  HeldRows(const VectorFile& file, const MatrixView& held, RankPart part) : file_(file), held_(held), part_(part) {}

  RowsInfo info() const override { return file_.info(); }
  void open(int64_t most, const Resources& resources) override { file_.open(most, resources); }
  MatrixView fetch(int64_t first, int64_t count) override {
    const bool has = first >= part_.first && first + count <= part_.first + held_.rows();
    return has ? held_.slice(first - part_.first, count) : file_.fetch(first, count);
  }
  void gather(const uint32_t* rows, int64_t count, const MutableMatrixView& out, const Resources& resources) override {
    file_.gather(rows, count, out, resources);
  }
  // Those rows in one piece, where they are held.
  std::optional<MatrixView> whole(RankPart part) const {
    if (part.first != part_.first || part.count != held_.rows()) return std::nullopt;
    return held_;
  }

 private:
  FileSource file_;
  const MatrixView held_;
  const RankPart part_;
};

// The rows of a rank: whole blocks of kSumBlock.
RankPart kmeans_part(int64_t rows, const Communicator& ranks);

class KMeansSharedByRanks final : public KMeansSharing {
 public:
  explicit KMeansSharedByRanks(Communicator& ranks) : ranks_(ranks) {}

  std::unique_ptr<KMeansBackend> share(std::unique_ptr<KMeansBackend> own, const KMeansShape& shape,
                                       const KMeansWish& wish, const KMeansPlan& plan,
                                       const Resources& resources) const override;
  void survey(DataSurvey& survey, int64_t rows, int64_t cols, const SurveyPart& survey_part) const override;

 private:
  Communicator& ranks_;
};

}  // namespace kith
