#include "graph/build/ggm/ggm_on_disk.hpp"

#include "core/divide.hpp"
#include "core/host_array.hpp"
#include "core/parallel_for.hpp"
#include "core/reservation.hpp"
#include "core/result_exit.hpp"
#include "core/start_beside.hpp"
#include "core/within_limits.hpp"
#include "graph/build/ggm/pairs_on_disk.hpp"
#include "graph/build/ggm/shards_on_disk.hpp"
#include "graph/lists/working_lists.hpp"
#include "io/work_folder.hpp"
#include "ranks/parts.hpp"

#include <algorithm>
#include <cstddef>
#include <future>
#include <vector>

namespace kith {
namespace {

// The graphs of all shards, then all pairs, then the graph of all rows. Several devices are dealt shards, then pairs.
class MergeOnDisk {
 public:
  // Without a folder where memory is only counted.
  MergeOnDisk(const ShardWork& work, WorkFolder* folder, bool keep, int64_t most_rows, const Resources& resources)
      : work_(work),
        folder_(folder),
        keep_(keep),
        most_rows_(most_rows),
        resources_(resources),
        quiet_(resources.with_progress({})),
        shards_(work, folder),
        pairs_(shards_, keep, most_rows, resources) {}

  // What every phase takes at least.
  void count(PairPlaces places = PairPlaces::anywhere) const {
    const int64_t largest = shards_.largest_size();
    const ReadMemory reading = shards_.source(0).reserve_memory(quiet_);
    const HostArray<uint64_t> sections = shards_.section_memory(quiet_);
    const HostArray<uint64_t> found = shards_.section_memory(quiet_);
    const int64_t at_once = resources_.threads() * kShardSectionRows;
    {
      const WorkingLists working(at_once, shards_.k(), quiet_);
      const Neighbors parts[] = {Neighbors(at_once, shards_.k(), quiet_), Neighbors(at_once, shards_.k(), quiet_)};
    }
    const Reservation tables(StepFile::table_bytes(6 * divide_up(largest, kShardSectionRows)), 0, quiet_);
    for (int64_t shard = 0; shard < shards_.count(); ++shard) {
      if (work_.shards[static_cast<size_t>(shard)].graph || shards_.size(shard) == largest) {
        shards_.count_graph(shard, quiet_);
      }
    }
    pairs_.count(places);
  }

  GraphReport run(GraphSink& sink) {
    const ReadMemory reading = shards_.source(0).reserve_memory(quiet_);
    shards_.forget_lost_lists();
    if (folder_->resumed()) shards_.verify(quiet_);
    const Resources devices = devices_with_room();
    require_space(sink, devices);
    make_graphs(devices);
    merge_all(devices);
    write(sink);
    GraphReport report = pairs_.report();
    work_.put_method(report);
    return report;
  }

 private:
  // All devices, where each has room for a pair in memory; else the first.
  Resources devices_with_room() const {
    if (is_shared(quiet_) && shards_.largest_pair() > most_rows_) return quiet_.with_device(quiet_.device());
    return all_parts_or_first("graphs of shards, from disk", quiet_, [&](const Resources& part) {
      return counted(part, [&](const Resources& counting) {
        MergeOnDisk(work_, nullptr, false, most_rows_, counting).count(PairPlaces::in_memory);
      });
    });
  }

  // Room on the disk for what is to be written from here on, at its fullest: graphs beside lists, of which those of a
  // shard are there twice while they are written anew, by each of `devices`, and the graph of all beside the lists.
  // Less what is there already.
  void require_space(const GraphSink& sink, const Resources& devices) const {
    int64_t largest = 0;
    int64_t all_lists = 0;
    for (int64_t shard = 0; shard < shards_.count(); ++shard) {
      largest = std::max(largest, shards_.list_bytes(shard));
      all_lists += shards_.list_bytes(shard);
    }
    constexpr int64_t kTold = 4096;  // of a pair, with its rounds
    const int64_t graphs = shards_.graph_bytes_to_write();
    const int64_t pairs = shards_.count() * (shards_.count() - 1) / 2 * kTold + pairs_.joining_bytes(devices);
    const int64_t stored =
        folder_->stored_bytes("lists-") + folder_->stored_bytes("pair-") + folder_->stored_bytes("join-");
    const int64_t lists = std::max<int64_t>(all_lists + pairs - stored, 0);
    const int64_t merged = sink.bytes_beside(folder_->path());
    const int64_t merging = graphs + lists + largest * std::min<int64_t>(devices.parts(), shards_.count());
    if (keep_) return folder_->require_space(merging + merged);
    folder_->require_space(std::max(merging, lists + merged - folder_->stored_bytes("graph-")));
  }

  void make_graphs(const Resources& devices) {
    ProgressMeter meter("graphs", shards_.count(), resources_);
    deal_steps(shards_.count(), devices, [&](int64_t shard, const Resources& part) {
      if (shards_.is_needed(shard) && !folder_->find(ShardsOnDisk::graph_name(shard))) {
        shards_.make_graph(shard, part.with_progress({}));
      }
      meter.add(1);
      meter.checkpoint();
    });
    meter.finish();
  }

  // Pairs of the same shard follow each other, so that a device mostly has it already.
  void merge_all(const Resources& devices) {
    std::vector<ShardPair> pairs;
    for (int64_t a = 0; a < shards_.count(); ++a) {
      for (int64_t b = a + 1; b < shards_.count(); ++b) {
        if (shards_.is_merged({a, b})) {
          pairs_.forget_joins({a, b});
        } else {
          pairs.push_back({a, b});
        }
      }
      pairs_.remove_if_merged(a);  // where a process was killed before it did that
    }
    const auto count = static_cast<int64_t>(pairs.size());
    const int64_t all = shards_.count() * (shards_.count() - 1) / 2;
    ProgressMeter meter("merge", all, resources_);
    meter.add(all - count);
    const bool dealt = is_shared(devices);
    const auto merge_dealt = [&](const auto& next, const Resources& part) {
      const Resources on = part.with_progress({});
      LoadedShard loaded;
      for (int64_t step = next(); step >= 0; step = next()) {
        meter.checkpoint();
        const ShardPair& pair = pairs[static_cast<size_t>(step)];
        if (loaded.shard != pair.first) {
          loaded = {};  // frees the rows before others are loaded
          loaded.shard = pair.first;
          loaded.together = dealt ? on : pairs_.room_for_pairs_of(pair.first, on);
        }
        pairs_.merge(pair, loaded, on);
        meter.add(1);
      }
    };
    if (dealt) {
      run_parts(devices, [&](Communicator& ranks, const Resources& part) {
        ranks.begin_steps(count);
        merge_dealt([&] { return ranks.next_step(); }, part);
      });
    } else {
      int64_t step = 0;
      merge_dealt([&] { return step < count ? step++ : -1; }, devices);
    }
    meter.finish();
  }

  // A section of each thread is read while those before it are written.
  void write(GraphSink& sink) {
    const int64_t k = shards_.k();
    const HostArray<uint64_t> memory = shards_.section_memory(quiet_);
    const int64_t at_once = resources_.threads();
    Neighbors parts[2];
    for (Neighbors& part : parts) part = Neighbors(at_once * kShardSectionRows, k, quiet_);
    const ResultExit exit(shards_.metric());
    ProgressMeter meter("write", shards_.rows(), resources_);
    ProgressMeter reading("write", shards_.rows(), quiet_);
    sink.begin();
    std::future<void> written;
    int64_t turn = 0;
    for (int64_t shard = 0; shard < shards_.count(); ++shard) {
      if (shards_.size(shard) == 0) continue;
      const StepFile step = folder_->open(ShardsOnDisk::lists_name(shard));
      const ListSections sections = shards_.list_sections(shard);
      for (int64_t first = 0; first < sections.count(); first += at_once, turn = 1 - turn) {
        const int64_t end = std::min(first + at_once, sections.count());
        const NeighborsView part = parts[turn].view();
        parallel_for(end - first, reading, quiet_, [&](int64_t number, int slot) {
          uint64_t* const lists = memory.data() + slot * kShardSectionRows * k;
          sections.read(step, first + number, lists);
          const int64_t at = number * kShardSectionRows * k;
          write_results(exit, lists, sections.rows(first + number) * k, part.ids + at, part.distances + at);
        });
        if (written.valid()) written.get();
        const int64_t rows = sections.first(end - 1) + sections.rows(end - 1) - sections.first(first);
        const NeighborsView whole{part.ids, part.distances, rows, k, {}};
        written = start_beside([&sink, whole] { sink.append(whole); });
        meter.add(rows);
        meter.poll();
      }
    }
    if (written.valid()) written.get();
    meter.finish();
  }

  const ShardWork& work_;
  WorkFolder* const folder_;
  const bool keep_;
  const int64_t most_rows_;  // that are in memory together, for tests
  const Resources& resources_;
  const Resources quiet_;
  ShardsOnDisk shards_;
  PairsOnDisk pairs_;
};

}  // namespace

Footprint merge_on_disk_footprint(const ShardWork& work, const Resources& resources, int64_t most_rows) {
  return counted(resources, [&](const Resources& counting) {
    MergeOnDisk(work, nullptr, false, most_rows, counting).count();
  });
}

GraphReport merge_on_disk(const ShardWork& work, const DiskWork& disk, GraphSink& sink, const Resources& resources) {
  const auto least = [&] { return merge_on_disk_footprint(work, resources, disk.most_rows); };
  return within_limits("the graph", resources, least, [&] {
    WorkFolder folder(disk.disk, disk.folder, work.manifest, resources);
    return repairing(folder, [&] {
      const GraphReport report = MergeOnDisk(work, &folder, disk.keep, disk.most_rows, resources).run(sink);
      sink.finish(report);
      folder.finish({}, disk.keep);
      return report;
    });
  });
}

}  // namespace kith
