// The kinds of stages a graph is made of. A stage derives from one of them:
//
//   Source<Out>            makes items by index; knows their names and sizes
//   Transform<In, Out>     one item in, one out; const, many at a time
//   StreamTransform<...>   a Transform with state that is kept between blocks of a stream
//   Expand<In, Out>        one item in, one or more blocks out, each within the memory reservation
//   OneToMany<In, Out>     one item in, several items out
//   Divide<In, Out>        one item in, several items out, each in pieces
//   Split<In, Outs...>     one item in, a payload of its own type by each of several outputs
//   Join<In1, In2, Out>    two payloads of the same item in, one out (join.h)
//   Combine<In, Out>       many items in, one out (batches)
//   Sink<In>               takes items, yields none
//
// A payload type has `static constexpr const char* kName` and the members bytes() and rows(), which
// the report counts.
#pragma once

#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "pipeline/stage/stage.h"
#include "pipeline/stage/stage_abilities.h"

namespace melflow {

template <class T>
std::shared_ptr<const T> payload_of(const Item& item) {
  return std::static_pointer_cast<const T>(item.payload);
}

template <class Out>
class Source : public SourceStage {
 protected:
  Source()
      : SourceStage({.kind = StageKind::source, .out = port_type<Out>(), .max_concurrency = 1}) {}
};

template <class In, class Out>
class Transform : public ItemStage {
 public:
  /// Returns null (not an error) if this block yields nothing; never for the last block of a stream
  /// or of a sub-item (Origin::ends).
  virtual Result<std::shared_ptr<const Out>> process(std::shared_ptr<const In> in,
                                                     ItemContext& context) const = 0;
  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&, ItemContext& context) final {
    auto out = process(payload_of<In>(item), context);
    if (!out) return out.error();
    return emission(std::move(*out));
  }

 protected:
  Transform()
      : ItemStage({.kind = StageKind::transform,
                   .in = port_type<In>(),
                   .out = port_type<Out>(),
                   .order = BlockOrder::kept}) {}
};

template <class In, class Out, class State>
class StreamTransform : public Transform<In, Out> {
 public:
  /// Processes a block. `state` is that of the current stream or sub-item, default-constructed at
  /// the first block.
  virtual Result<std::shared_ptr<const Out>> process_block(std::shared_ptr<const In> in,
                                                           State& state,
                                                           ItemContext& context) const = 0;
  Result<std::shared_ptr<const Out>> process(std::shared_ptr<const In> in,
                                             ItemContext& context) const final {
    std::unique_ptr<StageState>& state_of_stream = context.state();
    if (!state_of_stream) state_of_stream = std::make_unique<State>();
    auto& state = static_cast<State&>(*state_of_stream);
    auto out = process_block(std::move(in), state, context);
    if (context.origin().ends()) state_of_stream.reset();
    return out;
  }

 protected:
  StreamTransform() { this->traits_.order = BlockOrder::needed; }
};

/// Yields several blocks for one input. A Cursor is the rest of an input; `next` returns one block
/// and whether more follow.
template <class In, class Out>
class Expand : public ItemStage {
 public:
  struct Block {
    std::shared_ptr<const Out> out;
    bool more = false;  ///< the input yields more
    // For a stage that divides:
    bool ends = true;                         ///< no further piece of this sub-item follows
    std::optional<Span> span = std::nullopt;  ///< of the sub-item, in its last piece
  };
  class Cursor : public StageState {
   public:
    virtual Result<Block> next(ItemContext& context) = 0;
  };
  virtual Result<std::unique_ptr<Cursor>> open(std::shared_ptr<const In> in,
                                               ItemContext& context) const = 0;
  Result<Emission> run(const Item& item, std::unique_ptr<StageState>& cursor,
                       ItemContext& context) final {
    if (!cursor) {
      auto opened = open(payload_of<In>(item), context);
      if (!opened) return opened.error();
      cursor = std::move(*opened);
    }
    auto block = static_cast<Cursor&>(*cursor).next(context);
    if (!block) return block.error();
    Emission out = emission(std::move(block->out), block->more);
    out.ends = block->ends;
    out.span = block->span;
    return out;
  }

 protected:
  Expand()
      : ItemStage({.kind = StageKind::transform,
                   .in = port_type<In>(),
                   .out = port_type<Out>(),
                   .expands = true}) {}
};

/// Makes several items of one: its sub-items, each of one or more pieces, one after the other. Each
/// payload has its own memory reservation; the first has the input's. If the input comes in blocks,
/// sub-items may begin and end in any of them. The last payload of the last block (Origin::ends)
/// must exist and end a sub-item; it may be a piece without content.
template <class In, class Out>
class Divide : public Expand<In, Out> {
 protected:
  Divide() { this->traits_.divides = true; }
};

/// Makes several items of one at once; each is passed on when there is memory for its results.
template <class In, class Out>
class OneToMany : public Divide<In, Out> {
 public:
  using Many = std::vector<std::shared_ptr<const Out>>;
  /// output_bound() covers all of them together. If there are none, the recording is skipped.
  virtual Result<Many> process(std::shared_ptr<const In> in, ItemContext& context) const = 0;
  Result<std::unique_ptr<typename Expand<In, Out>::Cursor>> open(std::shared_ptr<const In> in,
                                                                 ItemContext& context) const final {
    auto many = process(std::move(in), context);
    if (!many) return std::move(many.error());
    if (many->empty()) return ItemError::skipped("nothing is made of it");
    return std::unique_ptr<typename Expand<In, Out>::Cursor>(std::make_unique<Rest>(*many));
  }

 private:
  class Rest final : public Expand<In, Out>::Cursor {
   public:
    explicit Rest(Many& many) : many_(std::move(many)) {}
    Result<typename Expand<In, Out>::Block> next(ItemContext&) override {
      auto& out = many_[next_++];
      return typename Expand<In, Out>::Block{std::move(out), next_ < many_.size()};
    }

   private:
    Many many_;
    std::size_t next_ = 0;
  };
};

/// Gives for one item a payload by each of its outputs, whose names are those of the class's
/// `static std::vector<std::string> outputs(const NodeSpec&)`. output_bound() is of all of them
/// together; plan() gives the properties of each.
template <class In, class... Outs>
class Split : public ItemStage {
 public:
  using Parts = std::tuple<std::shared_ptr<const Outs>...>;
  /// A null pointer: the item does not leave by this output. All blocks of a recording, or of one
  /// of its sub-items, leave by the same outputs.
  virtual Result<Parts> process(std::shared_ptr<const In> in, ItemContext& context) const = 0;
  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&, ItemContext& context) final {
    auto parts = process(payload_of<In>(item), context);
    if (!parts) return std::move(parts.error());
    const auto leave = [&context](auto& part) {
      const std::size_t bytes = part ? part->bytes() : 0, rows = part ? part->rows() : 0;
      context.outputs().push_back({std::move(part), bytes, rows});
    };
    std::apply([&](auto&... part) { (leave(part), ...); }, *parts);
    return Emission{};
  }

 protected:
  Split()
      : ItemStage({.kind = StageKind::transform,
                   .in = port_type<In>(),
                   .out = port_type<std::tuple_element_t<0, std::tuple<Outs...>>>(),
                   .outs = {port_type<Outs>()...},
                   .order = BlockOrder::kept,
                   .splits = true}) {}
};

/// Combines items, one call at a time. The result of take() has the origins of all added items, in
/// that order.
template <class In, class Out>
class Combine : public CombineStage {
 public:
  /// Adds an item; returns true when the combined item is full and should be taken. After an error
  /// or an exception the item is not added, and fails alone.
  virtual Result<bool> push(std::shared_ptr<const In> in, ItemContext& context) = 0;
  /// Returns the combined item, full or not. The parts of `context` are the added items, in that
  /// order; each can be failed, or get a warning, by its number. An error or an exception fails all
  /// of them; the next push() begins a new combined item.
  virtual Result<std::shared_ptr<const Out>> pull(ItemContext& context) = 0;

  Result<bool> add(const Item& item, ItemContext& context) final {
    return push(payload_of<In>(item), context);
  }
  Result<Emission> take(ItemContext& context) final {
    auto out = pull(context);
    if (!out) return std::move(out.error());
    return emission(std::move(*out));
  }

 protected:
  Combine()
      : CombineStage({.kind = StageKind::combine,
                      .in = port_type<In>(),
                      .out = port_type<Out>(),
                      .max_concurrency = 1}) {}
};

/// Takes items. Blocks of one recording come one at a time and in order, unless a sink's
/// constructor sets traits_.order to BlockOrder::any.
template <class In>
class Sink : public ItemStage {
 public:
  /// Takes an item. The sink may keep it (with its origins); its memory stays charged until it is
  /// released, at the latest by the end of drop_waiting() (HoldsItems). Any thread may release it,
  /// but without holding a lock that a listener of the ledger takes: the release may close the
  /// item's record.
  virtual std::optional<ItemError> consume(std::shared_ptr<const In> in, ItemContext& context) = 0;
  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&, ItemContext& context) final {
    if (auto error = consume(payload_of<In>(item), context)) return std::move(*error);
    return Emission{};
  }

 protected:
  Sink() : ItemStage({.kind = StageKind::sink, .in = port_type<In>()}) {}
};

}  // namespace melflow
