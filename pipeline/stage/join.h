// A stage that joins two branches: it makes one payload of the two that come from the same item.
//
// A block waits in the state of its stream until that of the other branch has come. Both share the
// reservation of the block that they were made from, so waiting takes no memory that the other one
// needs. If the item was lost to one branch alone, the waiting block is dropped when nothing else
// moves. The branches may not differ in the blocks that they give of an item.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/stage/paired_inputs.h"
#include "pipeline/stage/stage_kinds.h"

namespace melflow {

template <class In1, class In2, class Out>
class Join : public ItemStage, public PairedInputs {
 public:
  /// As Transform::process().
  virtual Result<std::shared_ptr<const Out>> process(std::shared_ptr<const In1> first,
                                                     std::shared_ptr<const In2> second,
                                                     ItemContext& context) const = 0;
  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&, ItemContext& context) final {
    const Origin& origin = context.origin();
    const std::size_t input = context.input();
    Block mine, other;
    {
      const std::lock_guard lock(mutex_);
      std::unique_ptr<StageState>& state = context.state();
      if (!state) state = std::make_unique<Waiting>(*this, *origin.stream, context.stage());
      auto& waiting = static_cast<Waiting&>(*state).inputs;
      waiting[input].push_back({origin.block, origin.ends(), origin.reservation, item.payload});
      if (waiting[1 - input].empty()) return Emission{};
      mine = take(waiting[input]);
      other = take(waiting[1 - input]);
    }
    if (mine.block != other.block || mine.ends != other.ends)
      return ItemError::failed(fmt::format("{} and {} give other blocks of it (a bug in a stage)",
                                           inputs()[0].name, inputs()[1].name));
    const Block& first = input == 0 ? mine : other;
    const Block& second = input == 0 ? other : mine;
    auto out = process(std::static_pointer_cast<const In1>(first.payload),
                       std::static_pointer_cast<const In2>(second.payload), context);
    if (!out) return std::move(out.error());
    return emission(std::move(*out));
  }

  /// Drops blocks whose partner will not come, since an item was lost to the other branch alone.
  bool release_parked() override {
    std::vector<std::deque<Block>> done;  // destroyed without the lock: that may close streams
    const std::lock_guard lock(mutex_);
    for (Waiting* waiting : waiting_)
      if (waiting->stream.is_lost_to(waiting->stage, ~std::uint64_t{0}))
        for (std::deque<Block>& blocks : waiting->inputs)
          if (!blocks.empty()) done.push_back(std::exchange(blocks, {}));
    return !done.empty();
  }

 protected:
  Join()
      : ItemStage({.kind = StageKind::transform,
                   .in = port_type<In1>(),
                   .out = port_type<Out>(),
                   .ins = {port_type<In1>(), port_type<In2>()},
                   .pairs = true}) {}

 private:
  struct Block {
    std::uint64_t block = 0;
    bool ends = false;
    // Before the payload, so destroyed after it.
    std::shared_ptr<const Reservation> reservation;
    std::shared_ptr<const void> payload;
  };
  // The blocks of a stream that wait. It lives as long as the stream.
  struct Waiting final : StageState {
    Waiting(Join& owner, const Stream& of, int at) : join(owner), stream(of), stage(at) {
      join.waiting_.insert(this);
    }
    ~Waiting() override {
      const std::lock_guard lock(join.mutex_);
      join.waiting_.erase(this);
    }
    Join& join;
    const Stream& stream;
    const int stage;
    std::array<std::deque<Block>, 2> inputs;
  };
  static Block take(std::deque<Block>& blocks) {
    Block first = std::move(blocks.front());
    blocks.pop_front();
    return first;
  }

  std::mutex mutex_;  // of all Waiting, and of:
  std::unordered_set<Waiting*> waiting_;
};

}  // namespace melflow
