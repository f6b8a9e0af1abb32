// mel_backend.h - the options of the mel stage that choose where rows are computed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda/mel_kernels.h"
#include "pipeline/stage/registry.h"
#include "stages/features/mel_stage_options.h"
#include "stages/node_group.h"

namespace melflow {

enum class MelBackend { automatic, cpu, cuda };
template <>
struct EnumNames<MelBackend> {
  static constexpr std::pair<const char*, MelBackend> values[] = {
      {"auto", MelBackend::automatic}, {"cpu", MelBackend::cpu}, {"cuda", MelBackend::cuda}};
};
template <>
struct EnumNames<cuda::Path> {
  static constexpr std::pair<const char*, cuda::Path> values[] = {
      {"auto", cuda::Path::automatic}, {"fused", cuda::Path::fused}, {"cufft", cuda::Path::cufft}};
};

/// The number type of the transform's points between its passes.
struct Operands {
  cuda::NumberType type = cuda::NumberType::float32;
};
template <>
struct OptionType<Operands> {
  static std::string name() { return "choice"; }
  static std::vector<std::string> choices() { return {"fp32", "fp16", "bf16"}; }
  static std::string parse(const Value& v, Operands& out);
  static Value echo(const Operands& o);
};

/// The devices to use, by number; empty: all.
struct Devices {
  std::vector<int> indices;
  /// The device numbers of splits whose files go to certain devices only.
  std::map<std::string, std::vector<int>> of_splits;
};
template <>
struct OptionType<Devices> {
  static std::string name() { return "all, list of integer, or a list for each split"; }
  static std::string parse(const Value& v, Devices& out);
  static Value echo(const Devices& d);
};

struct AccumulateOptions {
  /// At most one is set; neither: kUsualBytes.
  std::optional<Bytes> bytes;
  std::optional<int> batches;
  std::optional<int> queue;
  static constexpr std::size_t kUsualBytes = 16 << 20;
  static constexpr double kMostBytes = 2.0e9;

  void describe(Schema& s);
  void describe_size(Schema& s);
};

struct MelBackendOptions {
  MelBackend backend = MelBackend::cpu;
  double auto_from = 10;  // [s]
  Devices devices;
  std::optional<int> slots;
  bool graphs = true;
  double device_timeout = 60;  // [s]
  cuda::Path path = cuda::Path::automatic;
  Operands operands;
  std::optional<AccumulateOptions> accumulate;
  std::optional<NodeGroup> h2d, rows;

  void describe(Schema& s);
};

/// All options of a mel node.
struct MelNodeOptions {
  MelStageOptions mel;
  MelBackendOptions backend;

  void describe(Schema& s) {
    mel.describe(s);
    backend.describe(s);
  }
};

/// Reports options that contradict each other, wherever rows are computed.
void check(const MelBackendOptions& options, PlanCheck& check);

/// Returns the nodes that a mel node stands for: itself or, with backend: cuda (or auto, if there
/// is a device), the chain accumulate, h2d, mel, rows; with those before and after mel in the
/// front end of its preset.
std::vector<NodeSpec> mel_nodes(const NodeSpec& spec);

}  // namespace melflow
