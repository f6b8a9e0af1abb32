// Nodes that stand for a part of a graph in a file of its own:
//
//   speech: {use: fragments/speech.yaml, from: files, with: {RATE: 8000}}
//
// with, in that file:
//
//   version: 1
//   parameters: {RATE: 16000, BANDS: null}   # variables in the nodes below; null: has to be given
//   input: in                                # what its nodes call the node's input; in by default
//   outputs: {mel: bands, mfcc: cepstra}     # or output: bands
//   graph:
//     read: {stage: disk_read, from: in}
//     ...
//
// The nodes of the fragment are then nodes of the graph, called speech_read and so on; `from:
// speech.mel` (or `from: speech`, with one output) takes what its node `bands` gives.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/variables.h"
#include "pipeline/problem.h"
#include "pipeline/value.h"

namespace melflow {

class Fragments {
 public:
  static constexpr std::size_t kMostDepth = 8;   ///< fragments in fragments
  static constexpr std::size_t kMostUses = 256;  ///< of fragments by nodes, in all

  /// `vars` as in LoadOptions; what `parameters` does not name is looked up there and in the
  /// environment. `may_miss`: a variable without a value is no problem.
  Fragments(const std::vector<Assignment>& vars, bool may_miss, Problems& problems)
      : vars_(vars), may_miss_(may_miss), problems_(problems) {}

  /// Puts the nodes of fragments in the place of the nodes that use them. `graph` is a map of nodes
  /// whose variables have their values.
  void expand(Value& graph);
  /// Whether a name of a node can be one of a fragment that is used by a node of `graph`.
  [[nodiscard]] static bool may_name(const Value& graph, const std::string& node);
  /// Names of the variables that fragments asked for.
  [[nodiscard]] const std::set<std::string>& asked() const { return asked_; }

 private:
  // By the name of an output, "" for the only one: the node that gives it.
  using Outputs = std::map<std::string, std::string>;

  void error(const Mark& mark, std::string message) { problems_.add(mark, std::move(message)); }
  void use(const Value::Entry& node, std::vector<Value::Entry>& out);
  [[nodiscard]] bool read(const Value::Entry& node, const std::string& path, Value& root);
  [[nodiscard]] std::vector<Assignment> parameters(const Value::Entry& node, const Value& root);
  void rename(const Value::Entry& node, const Value& root, Value& graph);
  void note_outputs(const Value::Entry& node, const Value& root, const Value& graph);
  void connect(Value::Entry& node);

  const std::vector<Assignment>& vars_;
  const bool may_miss_;
  Problems& problems_;
  std::set<std::string> asked_;
  std::vector<std::filesystem::path> open_;  // files of the fragments that are being put in
  std::size_t uses_ = 0;
  std::map<std::string, Outputs> outputs_;  // of nodes that use a fragment, by their names
};

}  // namespace melflow
