// What other libraries take: the one data file, peers_h200.csv, that every benchmark prints beside its own times.
#pragma once

#include <kith/error.hpp>

#include "driver/report.hpp"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>

struct PeerTimes {  // milliseconds, where there is a figure
  std::optional<double> faiss;
  std::optional<double> cuvs;
  std::optional<double> goal;  // Kith's

  void add_to(kith::bench::Row& row) const {
    if (faiss) row.peers.emplace_back("FAISS", *faiss);
    if (cuvs) row.peers.emplace_back("cuVS", *cuvs);
    if (goal) row.figures.emplace_back("goal_ms", *goal);
  }
};

class Peers {
 public:
  // The figures of one benchmark. KITH_PEERS_FILE is where the build found the file.
  explicit Peers(const std::string& benchmark, const std::string& path = KITH_PEERS_FILE) {
    std::ifstream file(path);
    if (!file) throw kith::IoError("cannot read " + path, path, errno);
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line[0] == '#') continue;
      std::string fields[4];  // benchmark, case, library, milliseconds; none of them holds a comma
      size_t at = 0;
      for (std::string& field : fields) {
        const size_t comma = line.find(',', at);
        field = line.substr(at, comma - at);
        at = comma == std::string::npos ? line.size() : comma + 1;
      }
      if (fields[0] != benchmark) continue;
      PeerTimes& times = times_[fields[1]];
      const double milliseconds = std::strtod(fields[3].c_str(), nullptr);
      if (fields[2] == "FAISS") times.faiss = milliseconds;
      if (fields[2] == "cuVS") times.cuvs = milliseconds;
      if (fields[2] == "goal") times.goal = milliseconds;
    }
  }

  PeerTimes of(const std::string& name) const {
    const auto known = times_.find(name);
    return known == times_.end() ? PeerTimes() : known->second;
  }

 private:
  std::map<std::string, PeerTimes> times_;
};
