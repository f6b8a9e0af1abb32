#include "stages/output_index.h"

#include "stages/manifest.h"

namespace melflow {
namespace {

const std::vector<std::string> kNoNames;

}  // namespace

const Manifest* OutputIndex::manifest_of(const AnyStage& source) {
  const auto* listed = dynamic_cast<const ManifestSource*>(&source);
  return listed != nullptr ? &listed->manifest() : nullptr;
}

std::string OutputIndex::root() const { return manifest != nullptr ? manifest->root() : ""; }

std::int32_t OutputIndex::label(std::size_t file) const {
  return manifest != nullptr ? manifest->label(file) : -1;
}

std::int8_t OutputIndex::split(std::size_t file) const {
  return static_cast<std::int8_t>(manifest != nullptr ? manifest->split(file) : -1);
}

const std::vector<std::string>& OutputIndex::label_names() const {
  return manifest != nullptr ? manifest->label_names() : kNoNames;
}

const std::vector<std::string>& OutputIndex::split_names() const {
  return manifest != nullptr ? manifest->split_names() : kNoNames;
}

double OutputIndex::duration(std::size_t file) const {
  const FileAudio& a = order.audio(file);
  return a.sample_rate > 0 ? static_cast<double>(a.frames) / a.sample_rate : 0.0;
}

std::int8_t OutputIndex::status(std::size_t file) const {
  switch (run.ledger.outcome(file)) {
    case Outcome::ok:
      return 0;
    case Outcome::skipped:
      return 1;
    case Outcome::failed:
      return 2;
    default:
      return 3;
  }
}

std::vector<std::size_t> OutputIndex::remarked() const {
  std::vector<std::size_t> out;
  const std::size_t count = files();
  for (std::size_t i = 0; i < count; ++i) {
    const Outcome o = run.ledger.outcome(i);
    if (o == Outcome::skipped || o == Outcome::failed || !run.ledger.entry(i).reason.empty())
      out.push_back(i);
  }
  return out;
}

std::vector<std::pair<const char*, std::int64_t>> OutputIndex::counts() const {
  const Ledger::Counts c = run.ledger.counts();
  const auto number = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  return {{"found", number(c.found)},
          {"ok", number(c.ok)},
          {"skipped", number(c.skipped)},
          {"failed", number(c.failed)},
          {"not_run", number(c.not_run)}};
}

std::vector<std::string> OutputIndex::axes() const {
  if (info.frames > 1) return {"row", "frame", info.axis};
  return {"row", info.axis};
}

}  // namespace melflow
