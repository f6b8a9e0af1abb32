#include "stages/features/mel_backend.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "cuda/gpu.h"
#include "pipeline/base/text.h"
#include "stages/front_end_nodes.h"

namespace melflow {

std::string OptionType<Operands>::parse(const Value& v, Operands& out) {
  const std::string text = v.is_scalar() ? v.text() : "";
  if (text == "fp32") return out.type = cuda::NumberType::float32, "";
  if (text == "fp16") return out.type = cuda::NumberType::float16, "";
  if (text == "bf16") return out.type = cuda::NumberType::bfloat16, "";
  if (text == "fp8")
    return "fp8 is not one of fp32, fp16, bf16: it rounds a point by up to 6 %, and that noise "
           "covers whatever is 30 dB below the loudest band";
  return detail::describe_value(v) + " is not one of fp32, fp16, bf16";
}

Value OptionType<Operands>::echo(const Operands& o) {
  return Value::scalar(o.type == cuda::NumberType::float32   ? "fp32"
                       : o.type == cuda::NumberType::float16 ? "fp16"
                                                             : "bf16");
}

namespace {

// Reads device numbers; returns "" or the problem.
std::string parse_indices(const Value& v, std::vector<int>& out) {
  std::vector<int> indices;
  if (std::string why = OptionType<std::vector<int>>::parse(v, indices); !why.empty())
    return why + ", or all";
  for (const int i : indices)
    if (i < 0) return fmt::format("{} is out of range, devices count from 0", i);
  if (std::set<int>(indices.begin(), indices.end()).size() != indices.size())
    return "a device is listed twice";
  if (indices.empty()) return "an empty list; write all, or the numbers of devices";
  out = std::move(indices);
  return {};
}

}  // namespace

std::string OptionType<Devices>::parse(const Value& v, Devices& out) {
  if (v.is_null() || (v.is_scalar() && v.text() == "all")) return out = {}, "";
  Devices parsed;
  if (!v.is_map()) {
    if (std::string why = parse_indices(v, parsed.indices); !why.empty()) return why;
  } else if (v.entries().empty()) {
    return "an empty map; write all, or devices for a split, such as {train: [0, 1], val: [2]}";
  }
  if (v.is_map()) {
    std::set<int> all;
    for (const Value::Entry& e : v.entries()) {
      std::vector<int>& indices = parsed.of_splits[e.key];
      if (std::string why = parse_indices(e.value, indices); !why.empty())
        return excerpt(e.key) + ": " + why;
      all.insert(indices.begin(), indices.end());
    }
    parsed.indices.assign(all.begin(), all.end());
  }
  out = std::move(parsed);
  return {};
}

Value OptionType<Devices>::echo(const Devices& d) {
  if (!d.of_splits.empty()) {
    Value out = Value::map({});
    for (const auto& [split, indices] : d.of_splits)
      out.set(split, OptionType<std::vector<int>>::echo(indices));
    return out;
  }
  return d.indices.empty() ? Value::scalar("all") : OptionType<std::vector<int>>::echo(d.indices);
}

void AccumulateOptions::describe_size(Schema& s) {
  s.field("bytes", bytes,
          "total size of the samples at which a batch for the device is full; neither this nor "
          "batches set: 16MiB")
      .range(4096, kMostBytes)
      .tuning();
  s.field("batches", batches,
          "number of batches, as the node before gives them, that make one for the device; in "
          "place of bytes")
      .range(1, 65536)
      .tuning();
}

void AccumulateOptions::describe(Schema& s) {
  describe_size(s);
  s.field("queue", queue, "largest number of items that may wait before the group's node")
      .range(1, 1 << 20)
      .tuning();
}

void MelBackendOptions::describe(Schema& s) {
  s.field("backend", backend,
          "where rows are computed; cpu: on the CPU; cuda: on CUDA devices, with the nodes of "
          "accumulate, h2d and rows around this one; auto: on CUDA devices where they save time "
          "and rows take the CPU auto_from or more")
      .tuning();
  const auto may_be_device = [this] { return backend != MelBackend::cpu; };
  constexpr const char* kDevice = "backend: cuda or auto";
  s.field("auto_from", auto_from,
          "estimated duration [s] of the computation of rows on the CPU, with all workers at once, "
          "from which backend: auto uses CUDA devices; 0: always")
      .range(0, 1e9)
      .tuning()
      .used_with("backend: auto", [this] { return backend == MelBackend::automatic; });
  s.field("devices", devices,
          "numbers of the CUDA devices that compute, such as [0, 2]; each batch goes to that with "
          "the fewest in flight. {train: [0, 1], val: [2]}: by split, other files to any of these")
      .tuning()
      .used_with(kDevice, may_be_device);
  s.field("slots", slots,
          "slots of each CUDA device; each holds a batch from packing until its rows are taken "
          "out; not set: h2d.concurrency / number of devices, rounded up, plus 2")
      .range(1, 64)
      .tuning()
      .used_with(kDevice, may_be_device);
  s.field("graphs", graphs,
          "records the work of a CUDA device for a batch as a CUDA graph and launches that for "
          "every further batch of the same size; false: launches each kernel and copy by itself")
      .tuning()
      .used_with(kDevice, may_be_device);
  s.field("device_timeout", device_timeout,
          "time [s] after which a CUDA device that does not open, or makes no progress with its "
          "batches, is given up; the files of these batches fail, and other devices go on")
      .range(1, 86'400)
      .tuning()
      .used_with(kDevice, may_be_device);
  s.field("path", path,
          "kernels on CUDA devices; fused: one kernel from samples to rows, for n_fft 256, 400, "
          "512, 1024 and 2048; cufft: several kernels with cuFFT, for any n_fft; auto: fused where "
          "n_fft allows it, else cufft")
      .tuning()
      .used_with(kDevice, may_be_device);
  s.field("operands", operands,
          "number format in which the fused kernel on CUDA devices keeps intermediate values of "
          "the transform; fp16, bf16: less accurate, with errors up to 0.2 % and 1.5 % of a "
          "frame's largest value; all arithmetic is fp32")
      .tuning()
      .used_with(kDevice, may_be_device);
  s.group("accumulate", accumulate, "node that puts batches together for CUDA devices")
      .used_with(kDevice, may_be_device);
  s.group("h2d", h2d,
          "node that packs a batch into page-locked memory and sends it to a CUDA device; "
          "concurrency not set: half the number of CPU cores, from 1 to 8")
      .used_with(kDevice, may_be_device);
  s.group(
       "rows", rows,
       "node that takes rows out of page-locked memory and applies ref: max, top_db and normalize")
      .used_with(kDevice, may_be_device);
}

namespace {

NodeSpec chain_node(const NodeSpec& spec, const char* group, const char* stage,
                    const std::string& from) {
  NodeSpec out = grouped_node(spec, group, stage);
  out.options.set("from", Value::scalar(from, spec.mark));
  return out;
}

// Whether a device can compute the node, given its options as written, right or wrong.
bool can_run(const NodeSpec& spec) {
  MelNodeOptions options;
  Schema schema;
  options.describe(schema);
  const std::vector<std::string> names = schema.names();
  Value known = Value::map({});
  for (const Value::Entry& e : spec.options.entries())
    if (std::find(names.begin(), names.end(), e.key) != names.end()) known.entries().push_back(e);
  Problems ignored;
  schema.read(known, "", ignored);
  const bool is_fused =
      options.backend.path != cuda::Path::cufft && cuda::is_fused_size(options.mel.mel.n_fft);
  return options.mel.mel.precision == MelOptions::Precision::float32 &&
         (is_fused || cuda::gpus().why_no_cufft().empty());
}

}  // namespace

void check(const MelBackendOptions& options, PlanCheck& check) {
  const AccumulateOptions of = options.accumulate.value_or(AccumulateOptions{});
  if (of.bytes && of.batches)
    check.error("accumulate",
                "bytes and batches both say when a batch for the device is full; keep one of them");
}

namespace {

// The nodes that compute the bands.
std::vector<NodeSpec> nodes_of_backend(const NodeSpec& spec) {
  const Value* backend = spec.options.find("backend");
  const std::string text = backend != nullptr && backend->is_scalar() ? backend->text() : "cpu";
  if (text != "cuda" && text != "auto") return {spec};
  // An automatic choice must not start a driver before the run.
  if (text == "auto" && (!cuda::gpus().may_have_some() || !can_run(spec))) return {spec};
  if (text == "cuda" && cuda::gpus().list().empty()) return {spec};
  const Value* from = spec.options.find("from");
  NodeSpec first = chain_node(spec, "accumulate", "cuda_accumulate", "");
  if (from != nullptr)
    first.options.set("from", *from);
  else
    std::erase_if(first.options.entries(), [](const Value::Entry& e) { return e.key == "from"; });
  NodeSpec mel = spec;
  mel.options.set("stage", Value::scalar("cuda_mel", spec.mark));
  mel.options.set("from", Value::scalar(spec.name + ".h2d", spec.mark));
  // Delays the chain where batches enter it: after that they hold slots that others wait for.
  if (const Value* start_at = spec.options.find("start_at")) {
    first.options.set("start_at", *start_at);
    std::erase_if(mel.options.entries(), [](const Value::Entry& e) { return e.key == "start_at"; });
  }
  return {std::move(first), chain_node(spec, "h2d", "cuda_h2d", spec.name + ".accumulate"),
          std::move(mel), chain_node(spec, "rows", "cuda_rows", spec.name)};
}

}  // namespace

std::vector<NodeSpec> mel_nodes(const NodeSpec& spec) {
  return front_end_nodes(spec, "mel", nodes_of_backend(spec));
}

}  // namespace melflow
