// Cuts a decoded recording into the utterances that a list names, outside of a graph.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/run/stage_runner.h"
#include "stages/manifest.h"

namespace melflow {

/// What became of an utterance: its blocks, in order, and whether they are all.
struct CutUtterance {
  std::vector<std::shared_ptr<const void>> blocks;
  Ledger::Entry entry;  ///< ok, perhaps with a warning, or skipped or failed with the reason
};

/// Hands the blocks of a recording to `cutter`, a stage that cuts; from any thread. The utterances
/// are the entries [first, first + count) of `list`. `recording`: what became of it before, where
/// not all of its blocks are there. Gives each utterance, as a run of the graph would.
std::vector<CutUtterance> cut_utterances(StageRunner& cutter, const std::string& name,
                                         const std::vector<std::shared_ptr<const void>>& blocks,
                                         const Ledger::Entry& recording, const Manifest& list,
                                         std::size_t first, std::size_t count);

}  // namespace melflow
