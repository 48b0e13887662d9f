// Replaces collections in a build without SQLite.
#include "collection_commands.hpp"

#include <kith/error.hpp>

namespace kith::cli {

void offer_collection(Commands& commands) {
  OfferedCommand command =
      commands.offer("collection", "Not in this program, which was built without SQLite", [](const RunOptions&) -> Report {
        throw Unsupported(
            "this program has no collections, since it was built without SQLite: install SQLite's headers (Debian: "
            "apt-get install libsqlite3-dev) and build it again");
      });
  command.output();
}

}  // namespace kith::cli
