// Decides what a configuration may cause, by who wrote it; no other place decides this. SECURITY.md
// has the same verb by verb.
#pragma once

#include <string>
#include <vector>

#include "pipeline/base/problem.h"
#include "pipeline/base/value.h"
#include "pipeline/stage/registry.h"

namespace melflow {

/// What a configuration can cause beyond reading files.
enum class Effect { function, command, plugin, model, url, write, variable, preset };

class Trust {
 public:
  /// Trust in what the user types and in the pipelines that the user names.
  Trust() = default;
  /// Trust in a configuration stored in an output or a job, whose author may be anybody;
  /// `is_given`: whether the user says --trust.
  static Trust in_stored(bool is_given) { return {true, is_given}; }

  [[nodiscard]] bool is_stored() const { return is_stored_; }
  [[nodiscard]] bool allows(Effect effect) const;
  /// The end of a message that names an effect which is not allowed: what would happen, and what to
  /// do.
  [[nodiscard]] static std::string refusal(Effect effect);

 private:
  Trust(bool is_stored, bool is_given) : is_stored_(is_stored), is_given_(is_given) {}
  bool is_stored_ = false, is_given_ = false;
};

/// An effect that the options of a node have.
struct Demand {
  Effect effect;
  std::string option, value;
  Mark mark;
};
/// The effects of a node; plug-ins, variables and paths of outputs are not options of one stage.
/// `node`: its options, with variables filled in.
std::vector<Demand> demands_of(const Value& node, const StageInfo& stage);

}  // namespace melflow
