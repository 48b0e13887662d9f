// k-means by several GPUs of this process, or parts of one: each labels its part of the rows and keeps it.
//
// Sums pass from device to device in the order of the rows, so that they have the order, and the bytes, of one device.
// The first adds up its rows and passes its totals and the sums of the unfinished block to the next, and so on; the
// last has the totals, which all others copy. Every device then moves the centres itself. Copies between devices go
// through transfer(), and nobody reads the sums of a device that has given them back (ranks/mutual_reads.hpp).
//
// Exchanged in a pass: 16 bytes a column and centre from each device to the next, 8 to all; 8 bytes on the host for
// each 1,024 rows if the objective is wanted. While first centres are drawn, and if centres are empty: 8 bytes a row on
// the host. At the end: 4 bytes a row.
#pragma once

#include <kith/communicator.hpp>

#include "cluster/steps/kmeans_backend.hpp"
#include "ranks/mutual_reads.hpp"

#include <functional>
#include <memory>

namespace kith {

class KMeansSharedByDevices final : public KMeansSharing {
 public:
  // `reads`: one for all devices.
  KMeansSharedByDevices(Communicator& ranks, const MutualReads& reads, bool rows_on_host)
      : ranks_(ranks), reads_(reads), rows_on_host_(rows_on_host) {}

  KMeansShape own_shape(const KMeansShape& shape) const override;
  // The first device chooses them and passes them to the others.
  void begin(const std::function<void()>& choose, const MutableMatrixView& centres) const override;
  std::unique_ptr<KMeansBackend> share(std::unique_ptr<KMeansBackend> own, const KMeansShape& shape,
                                       const KMeansRequest& request, const KMeansPlan& plan,
                                       const Resources& resources) const override;
  void survey(DataSurvey& survey, int64_t rows, int64_t cols, const SurveyPart& survey_part) const override;

 private:
  Communicator& ranks_;
  const MutualReads& reads_;
  const bool rows_on_host_;
};

}  // namespace kith
