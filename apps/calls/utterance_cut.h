// Cuts a decoded recording into the utterances that a list names, without a graph.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/run/stage_runner.h"
#include "stages/manifest.h"

namespace melflow {

/// The result of an utterance: its blocks in order, and whether they are all there.
struct CutUtterance {
  std::vector<std::shared_ptr<const void>> blocks;
  Ledger::Entry entry;  ///< ok, perhaps with a warning, or skipped or failed with the reason
};

/// Passes the blocks of a recording to `cutter`, a stage that cuts; thread-safe. The utterances are
/// the entries [first, first + count) of `list`. `recording`: the outcome of the earlier stages,
/// where not all blocks are there. Returns each utterance as a run of the graph would.
std::vector<CutUtterance> cut_utterances(StageRunner& cutter, const std::string& name,
                                         const std::vector<std::shared_ptr<const void>>& blocks,
                                         const Ledger::Entry& recording, const Manifest& list,
                                         std::size_t first, std::size_t count);

}  // namespace melflow
