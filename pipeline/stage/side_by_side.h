// A stage that takes the outputs of several nodes, each of which yields every item, and joins their
// rows for the item side by side (StageTraits::pairs).
//
// The pieces of a stream arrive by each input in any order, and the inputs need not cut a stream at
// the same rows. Each sub-item of a stream is treated as a separate stream: its rows count from 0.
// Rows are passed on in order, as soon as all inputs have yielded them. Early rows wait in the
// state of their stream, with their reservation but without a reference to the stream: the rows
// they wait for are on their way and hold one. Nothing waits for a token or for memory here.
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

  /// Releases reservations when nothing in the graph moves, so that items that wait for memory can
  /// continue. Copies the waiting rows, which are those of a few blocks of each stream. Returns
  /// false if there are none.
  bool release_parked() override;

 protected:
  /// The types of the inputs and of the output.
  SideBySide(PortType in, PortType out);

  /// Rows [first, first + count) of a stream.
  struct Piece {
    std::shared_ptr<const void> data;
    std::int64_t first = 0, count = 0;
    bool last = false;  ///< the rows of the stream or sub-item end with it
    /// What the stage has to know of the input even after its rows were passed on: the newest note
    /// so far, at the end that of the last piece. Null: none.
    std::shared_ptr<const void> note = nullptr;
  };
  /// Rows [skip, skip + count) of `data`.
  struct Slice {
    std::shared_ptr<const void> data;
    std::int64_t skip = 0, count = 0;
  };
  /// Rows [first, first + count) of a stream that all inputs have yielded. Empty only at the end,
  /// if the rows were passed on before.
  struct Ready {
    Origin origin;
    std::size_t part = 0;  ///< of the current item
    std::int64_t first = 0, count = 0;
    std::vector<std::vector<Slice>> inputs;
    std::vector<std::shared_ptr<const void>> notes;
  };

  /// Returns part number `part` of an item as a piece; without data if there is none.
  [[nodiscard]] virtual Piece piece(const Item& item, std::size_t part,
                                    std::size_t input) const = 0;
  /// Copies rows into memory of their own.
  [[nodiscard]] virtual std::shared_ptr<const void> copy(const Slice& rows,
                                                         std::size_t input) const = 0;
  /// Joins the rows side by side; appends an origin for each part of the result.
  virtual Emission give(std::vector<Ready> ready, Origins& origins, ItemContext& context) const = 0;

 private:
  struct Parked;
  struct Lines;
  struct OfStream;
  // Streams with an equal hash share a mutex.
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
