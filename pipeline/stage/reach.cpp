#include "pipeline/stage/reach.h"

#include <utility>

#include "pipeline/stage/item.h"

namespace melflow {

Reach::Reach(std::vector<Node> nodes, std::vector<NotesLeftOut*> sinks, std::vector<Keeper> keepers,
             std::shared_ptr<const KeptItems> kept)
    : nodes_(std::move(nodes)),
      sinks_(std::move(sinks)),
      keepers_(std::move(keepers)),
      kept_(std::move(kept)) {
  for (const Node& n : nodes_) all_ |= n.sinks;
}

void Reach::keep(Stream& stream) const {
  for (const Keeper& k : keepers_) {
    if (KeptItems::contains(*k.items, stream.index())) stream.keep(k.stage);
  }
}

Reach Reach::plain(int sinks, std::size_t stages) {
  const SinkSet all = (SinkSet{1} << sinks) - 1;
  std::vector<Node> nodes(stages);
  for (std::size_t i = 0; i < stages; ++i) {
    nodes[i].sinks = all;
    nodes[i].rank = i;
  }
  const auto count = static_cast<std::size_t>(sinks);
  for (std::size_t i = 0; i < count; ++i) nodes[stages - count + i].sinks = SinkSet{1} << i;
  return {std::move(nodes), std::vector<NotesLeftOut*>(count), {}, nullptr};
}

}  // namespace melflow
