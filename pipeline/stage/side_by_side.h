// A stage that takes the outputs of several nodes, each of which gives every item, and puts what
// they give of an item side by side, row by row (StageTraits::pairs).
//
// The pieces of a stream come by each input in any order, and the inputs need not cut a stream at
// the same rows. Each sub-item of a stream is as a stream of its own here: its rows count from 0.
// Rows go on as soon as all inputs have given them, in order. What came early waits in the state of
// its stream, with the reservation that it came with but without a reference to the stream: what it
// waits for is on its way, and holds one. Nothing waits for a place or for memory here.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "pipeline/stage/paired_inputs.h"
#include "pipeline/stage/stage.h"

namespace melflow {

class SideBySide : public ItemStage, public PairedInputs {
 public:
  Result<Emission> run(const Item& item, std::unique_ptr<StageState>& cursor,
                       ItemContext& context) final;

  /// Lets go of reservations when nothing in the graph moves, so that what waits for memory can
  /// go on: rows wait only for blocks that are not made yet then, which is a few of each stream;
  /// they are copied. False: there are none.
  bool release_parked();

 protected:
  /// The ports of what comes by every input, and of what it gives.
  SideBySide(PortType in, PortType out);

  /// Rows [first, first + count) of a stream.
  struct Piece {
    std::shared_ptr<const void> data;
    std::int64_t first = 0, count = 0;
    bool last = false;  ///< the rows of the stream, or of its sub-item, end with it
    /// What is to be known of the input when its rows may be gone; that of the last piece stays,
    /// and before that comes the newest one. Null: nothing.
    std::shared_ptr<const void> note = nullptr;
  };
  /// Rows [skip, skip + count) of what `data` has.
  struct Slice {
    std::shared_ptr<const void> data;
    std::int64_t skip = 0, count = 0;
  };
  /// Rows [first, first + count) of a stream that all inputs have given. Without a row only at the
  /// end, where these had gone on before.
  struct Ready {
    Origin origin;
    std::size_t part = 0;  ///< of the item at hand
    std::int64_t first = 0, count = 0;
    std::vector<std::vector<Slice>> inputs;
    std::vector<std::shared_ptr<const void>> notes;
  };

  /// The piece that is part number `part` of an item; without data where there is none.
  [[nodiscard]] virtual Piece piece(const Item& item, std::size_t part,
                                    std::size_t input) const = 0;
  /// The same rows in memory of their own.
  [[nodiscard]] virtual std::shared_ptr<const void> copy(const Slice& rows,
                                                         std::size_t input) const = 0;
  /// Puts these side by side; appends an origin for each part of what it gives.
  virtual Emission give(std::vector<Ready> ready, Origins& origins, ItemContext& context) const = 0;

 private:
  struct Parked;
  struct Lines;
  struct OfStream;
  // Streams share a mutex with those of an equal hash.
  struct Share {
    std::mutex mutex;
    std::unordered_set<Lines*> lines;
  };

  Share& share_of(const Stream& stream);
  void add(Parked parked, std::size_t part, ItemContext& context, std::vector<Ready>& ready,
           std::vector<Parked>& done);
  [[nodiscard]] std::string counts(const Lines& lines) const;

  std::array<Share, 16> shares_;
};

}  // namespace melflow
