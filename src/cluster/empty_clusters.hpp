// A centre that no row is nearest to gets a row of its own: the one that is farthest from its centre.
//
// The empty centres, in their order, take the rows by descending key, equal ones by row number. A row leaves its old
// centre's sum; the last row of a centre stays, and so does one that lies on its centre, since nothing would be gained.
// The objective falls by at least the row's share in it.
#pragma once

#include "cluster/kmeans_run.hpp"

namespace kith {

// Whether some centre has no weight in outcome.counts.
bool has_empty_cluster(const KMeansRun& run, const KMeansOutcome& outcome);

// After a pass whose weights are in outcome.counts: changes the backend's sums. Returns how many centres got a row.
int64_t fill_empty_clusters(const KMeansRun& run, const KMeansOutcome& outcome);

}  // namespace kith
