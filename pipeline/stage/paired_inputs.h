// The inputs of a stage that pairs (StageTraits::pairs): the outputs of several nodes, each of
// which yields every item.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage/facts.h"

namespace melflow {

class PairedInputs {
 public:
  /// One of the nodes whose outputs the stage takes.
  struct Input {
    std::string name;
    Properties given;
  };
  /// Sets the inputs, in their order; called before plan().
  void set_inputs(std::vector<Input> inputs) { inputs_ = std::move(inputs); }
  /// Called when nothing in the graph moves: releases the memory of blocks that wait here for
  /// blocks of other inputs. Returns false if there is none.
  virtual bool release_parked() { return false; }

 protected:
  ~PairedInputs() = default;
  [[nodiscard]] const std::vector<Input>& inputs() const { return inputs_; }

 private:
  std::vector<Input> inputs_;
};

}  // namespace melflow
