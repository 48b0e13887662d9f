// k-means: centres such that the sum of squared distances of all rows to their nearest centre is small.
//
// Lloyd's algorithm: assign every row to its nearest centre, move every centre to the mean of its rows, and again.
// Assignments are exact: a row's centre is the first of all centres ordered by (squared distance, centre), where a
// distance is computed in float64 from the stored values and rounded once to f32. Means are added up in float64 in an
// order fixed by the row numbers. So the same input, parameters and seed give the same bytes for any number of threads,
// under any memory limit, on every processor and GPU, and from a file as from memory.
//
// Rows, and what predict() and transform() fill, may lie in the memory of a GPU, which then does the work; all else is
// host memory. Every function returns when its result is complete; a result in a GPU's memory is complete in the order
// of the resources' stream, where that is the caller's.
#pragma once

#include <kith/export.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace kith {

enum class KMeansInit : uint8_t {
  kmeans_plus_plus,  // rows drawn one after the other, far ones more likely (greedy k-means++)
  random,            // distinct rows, each as likely
  given,             // KMeansInput::centres
};

// "kmeans++", "random", "given".
KITH_EXPORT std::string_view name_of(KMeansInit init);
KITH_EXPORT KMeansInit parse_kmeans_init(std::string_view name);

inline constexpr int64_t kAutomaticInitPoints = -1;

struct KMeansParams {
  int64_t clusters = 8;
  int64_t iterations = 25;  // at most; with mini-batches, passes over as many rows as there are
  double tol = 1e-4;   // stop when the centres' squared moves add up to at most tol times the columns' mean variance
  int64_t n_init = 1;  // runs from different starts; the one with the lowest objective is kept
  KMeansInit init = KMeansInit::kmeans_plus_plus;
  uint64_t seed = 0;
  int64_t max_points_per_centre = 0;  // train on a sample of so many rows for each centre; 0: on all rows
  // k-means++ looks at a sample of so many rows for each centre; 0: at all rows. Automatic: at all rows where that is
  // cheap; for many centres all rows are drawn from in rounds, and k-means++ chooses among what was drawn.
  int64_t init_points_per_centre = kAutomaticInitPoints;
  bool spherical = false;      // centres of length 1; a row belongs to the centre with the largest inner product
  int64_t batch_size = 0;      // rows of a mini-batch; 0: whole passes (Lloyd)
  bool compute_labels = true;  // a last pass, so that labels and objective are those of the final centres
  bool history = true;         // keep the objective of each iteration; without it a CPU does less in each
  bool check_finite = true;    // refuse NaN and infinities, naming the row; without it the result is undefined

  KITH_EXPORT void validate() const;
};

// What may come with the rows.
struct KMeansInput {
  VectorView<const float> weights;  // one for each row, at least 0; none: each row counts once
  MatrixView centres;               // for KMeansInit::given: clusters x cols
};

// What one fit has left, all in host memory: KMeans::snapshot() gives it and restore() takes it back.
struct KMeansSnapshot {
  MatrixView centres;                // clusters x cols, f32
  VectorView<const double> counts;   // one for each centre
  VectorView<const int32_t> labels;  // of the last fit's rows, or none
  double objective = 0;
  std::vector<double> history;
  int64_t iterations = 0;
  std::vector<double> offset = {};              // as offset()
  std::shared_ptr<const void> owner = nullptr;  // of what the views show; none where it is the caller's
};

// A prediction that runs while another thread fits uses the centres that were there when it began. What centres(),
// labels(), counts() and history() return is valid until the next fit, or whatever else replaces it: where another
// thread may fit meanwhile, take a snapshot().
class KITH_EXPORT KMeans {
 public:
  // Throws InvalidArgument for parameters that make no sense.
  explicit KMeans(KMeansParams params);
  ~KMeans();
  KMeans(KMeans&&) noexcept;
  KMeans& operator=(KMeans&&) noexcept;

  // After an exception the former state stays.
  void fit(const MatrixView& rows, const KMeansInput& input = {}, const Resources& resources = Resources());
  // The file may be larger than the memory limit: it is read in pieces, once for each pass.
  void fit(const VectorFile& rows, const KMeansInput& input = {}, const Resources& resources = Resources());

  // One mini-batch. The first call chooses the centres from its rows (or takes input.centres).
  void partial_fit(const MatrixView& rows, const KMeansInput& input = {}, const Resources& resources = Resources());

  // The nearest centre of each row and how far it is: the distance, or the inner product for spherical. Each output has
  // a value for every row, in host memory or in that of the GPU that works, or is empty where it is not wanted: without
  // distances a GPU has less to do.
  void predict(const MatrixView& rows, const VectorView<int32_t>& labels, const VectorView<float>& distances,
               const Resources& resources = Resources()) const;
  // The same for arrays in host memory; either may be null.
  void predict(const MatrixView& rows, int32_t* labels, float* distances,
               const Resources& resources = Resources()) const {
    predict(rows, VectorView<int32_t>{labels, labels == nullptr ? 0 : rows.rows(), {}},
            VectorView<float>{distances, distances == nullptr ? 0 : rows.rows(), {}}, resources);
  }
  using LabelSink =
      std::function<void(int64_t first_row, int64_t count, const int32_t* labels, const float* distances)>;
  void predict(const VectorFile& rows, const LabelSink& sink, const Resources& resources = Resources()) const;

  // The distance of each row to every centre (inner products for spherical): rows x clusters, f32.
  void transform(const MatrixView& rows, const MutableMatrixView& out, const Resources& resources = Resources()) const;

  // Takes centres that were made before, clusters x cols.
  void set_centres(const MatrixView& centres, const Resources& resources = Resources());

  // What the last fit has left, all of the same one. It stays as it is, and is kept alive, whatever is fitted or let go
  // meanwhile. InvalidState before the first fit.
  KMeansSnapshot snapshot() const;

  // Takes, bit for bit, what snapshot() of a KMeans with the same parameters returned: whatever is called next gives
  // what it would have given there, partial_fit() too. InvalidArgument for what no fit leaves.
  void restore(const KMeansSnapshot& snapshot, const Resources& resources = Resources());

  const KMeansParams& params() const;
  bool fitted() const;
  // What was subtracted from rows of f64, and is from all that are predicted or transformed (kith/view.hpp): a value
  // for each column; empty: nothing. centres() have lost it, too. Rows of files cannot, and are refused then.
  std::vector<double> offset() const;
  MatrixView centres() const;                  // clusters x cols, f32; InvalidState before the first fit
  VectorView<const int32_t> labels() const;    // of the last fit's rows; empty without compute_labels
  VectorView<const double> counts() const;     // the weight that each centre has seen
  double objective() const;                    // sum of weight x squared distance (spherical: minus inner product)
  const std::vector<double>& history() const;  // the objective at each iteration, before the centres moved; or empty
  int64_t iterations() const;                  // done; mini-batches count by passes, partial_fit by calls

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kith
