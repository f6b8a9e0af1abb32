#include "config/edited_text.h"

#include <doctest/doctest.h>

using namespace melflow;

namespace {

constexpr const char* kText =
    "# mine\n"
    "version: 1\n"
    "graph:\n"
    "  read: {stage: disk_read, from: files, queue: \"1\"}   # the bytes\n"
    "  mel:\n"
    "    stage: mel      # rows\n"
    "    queue: ${Q:-1}  # so many\n"
    "  same: {stage: mel}\n";

}  // namespace

TEST_CASE("edited text: comments, order and all else stay") {
  const auto edited = edited_text(kText, {{"read.queue", "auto", "why 1"},
                                          {"read.buffer", "128KiB", "why 2"},
                                          {"mel.queue", "4", "why 3"},
                                          {"mel.concurrency", "2", "why 4"},
                                          {"workers", "2", "why 5"},
                                          {"memory.host", "2GiB", "why 6"}});
  REQUIRE(edited);
  CHECK(*edited ==
        "# mine\n"
        "# why 6\n"
        "memory: {host: 2GiB}\n"
        "# why 5\n"
        "workers: 2\n"
        "version: 1\n"
        "graph:\n"
        "  # why 2\n"
        "  # why 1\n"
        "  read: {buffer: 128KiB, stage: disk_read, from: files, queue: auto}   # the bytes\n"
        "  mel:\n"
        "    # why 4\n"
        "    concurrency: 2\n"
        "    stage: mel      # rows\n"
        "    # why 3\n"
        "    queue: 4  # so many\n"
        "  same: {stage: mel}\n");
}

TEST_CASE("edited text: a place that is not in the text is not guessed") {
  CHECK_FALSE(edited_text("graph:\n  a: [1]\n", {{"a.queue", "2", ""}}));
  CHECK_FALSE(edited_text("graph:\n  a:\n    queue: |\n      2\n", {{"a.queue", "3", ""}}));
  CHECK_FALSE(edited_text("graph: {a: {queue: \"1\n 2\"}}\n", {{"a.queue", "3", ""}}));
  CHECK_FALSE(edited_text("graph: {", {{"workers", "3", ""}}));
}
