// The inputs of a stage that pairs (StageTraits::pairs): the outputs of several nodes, each of
// which gives every item.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage/facts.h"

namespace melflow {

class PairedInputs {
 public:
  /// One of the nodes whose outputs it takes, in their order.
  struct Input {
    std::string name;
    Properties given;
  };
  /// Before plan().
  void set_inputs(std::vector<Input> inputs) { inputs_ = std::move(inputs); }

 protected:
  ~PairedInputs() = default;
  [[nodiscard]] const std::vector<Input>& inputs() const { return inputs_; }

 private:
  std::vector<Input> inputs_;
};

}  // namespace melflow
