#include "collection/segment_writing.hpp"

#include "io/container/container_file.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string>

namespace kith {
namespace {

constexpr int64_t kWriteStep = int64_t{4} << 20;

std::vector<int64_t> living_places(const StatePart& part) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < part.rows->size(); ++i) {
    if (part.lives(i)) places.push_back(i);
  }
  return places;
}

// Calls use(source, place, run) for runs of consecutive places of a source, of at most `most`, in the order of rows
// over all sources. Each source ascends, so they are merged directly, without memory per item.
template <typename Use>
void for_runs(const std::vector<SegmentSource>& sources, int64_t most, const Use& use) {
  constexpr int64_t kBehindAll = std::numeric_limits<int64_t>::max();
  const auto row_at = [&](size_t s, int64_t i) {
    return i == sources[s].size() ? kBehindAll : sources[s].rows->row(sources[s].place(i));
  };
  std::vector<int64_t> next(sources.size(), 0);
  std::vector<int64_t> rows;
  for (size_t s = 0; s < sources.size(); ++s) rows.push_back(row_at(s, 0));
  for (;;) {
    const auto first = static_cast<size_t>(std::min_element(rows.begin(), rows.end()) - rows.begin());
    if (rows.empty() || rows[first] == kBehindAll) return;
    int64_t bound = kBehindAll;  // the first row of another source
    for (size_t s = 0; s < rows.size(); ++s) {
      if (s != first) bound = std::min(bound, rows[s]);
    }
    const int64_t place = sources[first].place(next[first]);
    int64_t run = 0;
    do {
      ++run;
      rows[first] = row_at(first, ++next[first]);
    } while (run < most && rows[first] < bound && sources[first].place(next[first]) == place + run);
    use(first, place, run);
  }
}

}  // namespace

SegmentSource source_of(const StatePart& part) {
  SegmentSource source;
  source.rows = part.rows;
  source.all = !part.dead || part.dead->count() == 0;
  if (!source.all) source.places = living_places(part);
  return source;
}

int64_t items_in(const std::vector<SegmentSource>& sources) {
  int64_t items = 0;
  for (const SegmentSource& source : sources) items += source.size();
  return items;
}

void write_segment_file(DiskFile& file, const std::vector<SegmentSource>& sources, const CollectionParams& params,
                        SegmentRow& entry, const Resources& resources) {
  int64_t count = 0;
  entry.first_row = std::numeric_limits<int64_t>::max();
  entry.last_row = 0;
  for (const SegmentSource& source : sources) {
    if (source.size() == 0) continue;
    count += source.size();
    entry.first_row = std::min(entry.first_row, source.rows->row(source.place(0)));
    entry.last_row = std::max(entry.last_row, source.rows->row(source.place(source.size() - 1)));
  }
  const int64_t row_bytes = params.dimension * size_of(params.dtype);
  ContainerWriter writer("segment");
  using Put = ContainerWriter::Put;
  const auto rows_of = [&](size_t s) -> const StoredRows& { return *sources[s].rows; };

  writer.produce("vectors", [&](const Put& put) {
    const int64_t most = std::max<int64_t>(kWriteStep / row_bytes, 1);
    HostBuffer buffer;
    for_runs(sources, most, [&](size_t s, int64_t place, int64_t run) {
      const MatrixView view = rows_of(s).view();
      if (!view.empty() && view.row_stride() == view.cols()) {
        put({view.row(place), static_cast<size_t>(run * row_bytes)});
        return;
      }
      if (buffer.bytes() == 0) buffer = HostBuffer(std::min(most, count) * row_bytes, "rows on their way", resources);
      rows_of(s).read_vectors(place, run, buffer.data());
      put({buffer.data(), static_cast<size_t>(run * row_bytes)});
    });
  });
  const auto for_items = [&](const auto& use) {
    for_runs(sources, count, [&](size_t s, int64_t place, int64_t run) {
      for (int64_t i = place; i < place + run; ++i) use(rows_of(s), i);
    });
  };
  // Numbers of each item, some thousand at a time.
  const auto numbers = [&](const auto& number_of) {
    return [number_of](const Put& put) {
      constexpr size_t kSome = 8192;
      std::vector<int64_t> some;
      some.reserve(kSome);
      const auto give = [&] {
        put(std::as_bytes(std::span(some)));
        some.clear();
      };
      number_of([&](int64_t number) {
        some.push_back(number);
        if (some.size() == kSome) give();
      });
      give();
    };
  };
  writer.produce("rows", numbers([&](const auto& add) {
    for_items([&](const StoredRows& rows, int64_t place) { add(rows.row(place)); });
  }));
  writer.produce("ids", numbers([&](const auto& add) {
    for_items([&](const StoredRows& rows, int64_t place) { add(rows.number_id(place)); });
  }));
  int64_t text_bytes = 0;
  if (params.ids == IdType::text) {
    for_items([&](const StoredRows& rows, int64_t place) {
      text_bytes += static_cast<int64_t>(rows.text_id(place).size());
    });
  }
  writer.produce("id.offsets", numbers([&](const auto& add) {
    int64_t at = 0;
    add(at);
    for_items([&](const StoredRows& rows, int64_t place) { add(at += static_cast<int64_t>(rows.text_id(place).size())); });
  }));
  writer.produce("id.text", [&](const Put& put) {
    for_items([&](const StoredRows& rows, int64_t place) {
      const std::string text = rows.text_id(place);
      put(std::as_bytes(std::span(text)));
    });
  });

  writer.add("vectors", section_type(params.dtype), {count, params.dimension}, {});
  writer.add("rows", SectionType::i64, {count}, {});
  if (params.ids == IdType::integer) {
    writer.add("ids", SectionType::i64, {count}, {});
  } else {
    writer.add("id.offsets", SectionType::i64, {count + 1}, {});
    writer.add("id.text", SectionType::u8, {text_bytes}, {});
  }
  entry.rows = count;
  entry.bytes = writer.file_bytes();
  file.reserve(entry.bytes);
  entry.hash = static_cast<int64_t>(writer.write_to(file, resources));
}

}  // namespace kith
