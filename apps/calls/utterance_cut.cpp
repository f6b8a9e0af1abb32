#include "apps/calls/utterance_cut.h"

#include "pipeline/stage/reach.h"
#include "stages/items.h"

namespace melflow {
namespace {

// Presents a recording as a corpus: the cutting stage asks it for the spans of its utterances.
class OneRecording final : public SourceStage, public ManifestSource {
 public:
  OneRecording(const Manifest& list, std::size_t first, std::size_t count)
      : SourceStage({.kind = StageKind::source, .out = port_type<FileRef>()}) {
    spans_.set_span_unit(list.span_unit());
    const std::uint32_t folder = spans_.add_folder("");
    for (std::size_t i = 0; i < count; ++i) {
      spans_.add(folder, "");
      spans_.set_span(i, list.span(first + i));
    }
  }
  [[nodiscard]] std::size_t count() const override { return spans_.size(); }
  [[nodiscard]] SourceItem item(std::size_t) override { return {}; }
  [[nodiscard]] std::string name(std::size_t) const override { return {}; }
  [[nodiscard]] const Manifest& manifest() const override { return spans_; }
  [[nodiscard]] FileStamp stamp(std::size_t) const override { return {}; }
  void set_stamp(std::size_t, const FileStamp&) override {}
  [[nodiscard]] ContentHashes* contents() const override { return nullptr; }

 private:
  Manifest spans_;
};

}  // namespace

std::vector<CutUtterance> cut_utterances(StageRunner& cutter, const std::string& name,
                                         const std::vector<std::shared_ptr<const void>>& blocks,
                                         const Ledger::Entry& recording, const Manifest& list,
                                         std::size_t first, std::size_t count) {
  static const Reach reach = Reach::plain(0, 2);
  constexpr int kBefore = 0, kCutter = 1;  // nodes of the graph
  OneRecording source(list, first, count);
  Ledger ledger;
  ledger.open(count, {recording.stage, name});
  RunContext& own = cutter.run();
  RunContext run{.pool = own.pool,
                 .ledger = ledger,
                 .settings = own.settings,
                 .source = source,
                 .services = own.services,
                 .warn = own.warn};
  std::vector<CutUtterance> out(count);
  const bool is_whole = recording.outcome == Outcome::ok;
  {
    auto stream = std::make_shared<Stream>(ledger, Stream::Records{0, count, true, 0}, 0, reach);
    for (std::size_t i = 0; i < blocks.size() && !stream->failed(); ++i) {
      Item item;
      const bool is_last = is_whole && i + 1 == blocks.size();
      item.origins =
          std::make_shared<const Origins>(Origins{{nullptr, stream, i == 0, is_last, i}});
      item.payload = blocks[i];
      std::unique_ptr<StageState> cursor;
      for (bool more = true; more;) {
        ItemContext context(run, item, kCutter);
        Result<Emission> piece = cutter.items().run(item, cursor, context);
        if (!piece) {
          stream->fail(kCutter, piece.error(), i);
          i = blocks.size();
          break;
        }
        more = piece->more;
        if (piece->payload) out[piece->part.stream->index()].blocks.push_back(piece->payload);
      }
    }
    if (!is_whole)
      stream->fail(kBefore,
                   recording.outcome == Outcome::skipped ? ItemError::skipped(recording.reason)
                                                         : ItemError::failed(recording.reason),
                   blocks.size());
    else if (!recording.reason.empty())
      stream->warn(kBefore, recording.reason);
  }
  for (std::size_t i = 0; i < count; ++i) out[i].entry = ledger.entry(i);
  return out;
}

}  // namespace melflow
