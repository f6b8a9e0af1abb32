// batches: delivers rows to a training program, in batches that wait in a short queue.
//
// In:  MelBatch: rows of features or of audio samples; of several nodes, which make rows of the
//      same training samples.
// Out: SampleBatch, in the BatchQueue of the run's BatchDelivery. Without one, as under `melflow
//      run`, batches are made, counted and dropped.
//
// A recording's rows are delivered when it is complete by all inputs, in the order of the list,
// which depends neither on the order of threads nor on where a recording was found to be broken.
// From then on they are not part of the memory budget, so a program that keeps them does not stop
// the run.
//
// Batches are made, and wait for the program, on the stage's own thread while rows arrive, else on
// a second one: a recording that fails makes rows of others ready on a worker, which must not wait.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/base/threads.h"
#include "pipeline/stage/paired_inputs.h"
#include "pipeline/stage/registry.h"
#include "stages/items.h"
#include "stages/manifest.h"
#include "stages/output/rows/row_order.h"
#include "stages/row_type.h"
#include "stages/run_task.h"
#include "stages/training/batch_inputs.h"
#include "stages/training/batch_queue.h"
#include "stages/training/batch_source.h"
#include "stages/training/recording_rows.h"
#include "stages/training/sample_batcher.h"

namespace melflow {
namespace {

constexpr std::size_t kMostReady = 64;  // parts that wait for the thread that makes batches

struct BatchesOptions {
  int size = 32;
  int max_rows = 0;
  int shuffle = 0;
  int bucket = 0;
  std::uint64_t seed = 0;
  bool drop_last = false;
  int prefetch = 4;
  NumberType dtype = NumberType::float32;
  std::vector<std::string> names;

  void describe(Schema& s) {
    s.field("size", size,
            "number of examples in a batch; an example is a row where recordings are cut into "
            "windows, else a whole recording")
        .range(1, 1 << 20)
        .tuning();
    s.field("max_rows", max_rows,
            "where an example is a whole recording: largest number of rows in a batch, padding "
            "included; a longer recording is a batch of its own; 0: no limit; of several inputs "
            "the first one's rows are counted")
        .range(0, 1 << 30)
        .tuning();
    s.field("shuffle", shuffle,
            "size of the shuffle buffer: of this many examples the next one is drawn at random. "
            "Held windows count in memory.host; recordings take at most half of it. 0: the order "
            "of the list")
        .range(0, 1 << 24)
        .tuning();
    s.field("bucket", bucket,
            "holds this many whole recordings, so that those of similar length come in one batch "
            "with little padding; batches leave in random order. Takes at most half of "
            "memory.host, with shuffle a quarter. 0: in the order of the samples")
        .range(0, 1 << 24)
        .tuning();
    s.field("seed", seed,
            "seed of the random draws made by `shuffle` and `bucket`; together with the number of "
            "the epoch it fixes which samples a batch has, and the order of batches")
        .tuning();
    s.field("drop_last", drop_last, "drops the last batch if it is not full").tuning();
    s.field("prefetch", prefetch, "largest number of finished batches that wait for the program")
        .range(1, 1024)
        .tuning();
    s.field("dtype", dtype,
            "number type of the values; int16: for rows of samples, times 32768, clipped at full "
            "scale. Integers of a node stay as they are");
    s.field("names", names,
            "what a batch calls the rows of each input, in the order of from; not set: mel, mfcc, "
            "waveform and so on, as in an output; where several inputs are called the same, the "
            "names of their nodes")
        .tuning();
  }
};

class Batches final : public Sink<MelBatch>,
                      public PairedInputs,
                      public HoldsItems,
                      public KeepsMemory,
                      public RefusesUpdate,
                      public BatchSource {
 public:
  static constexpr const char* kFeatureStage = "hdf5_write";  // the same features as in a file

  explicit Batches(BatchesOptions options) : options_(std::move(options)) {
    traits_.max_concurrency = 1;
    traits_.order = BlockOrder::any;  // each part tells which rows of its recording it has
    traits_.pairs = true;
  }
  ~Batches() override { join(); }

  [[nodiscard]] StageResources resources() const override {
    return {.blocking = true, .default_concurrency = 1};
  }
  [[nodiscard]] Requirements require(const Requirements& below) const override {
    Requirements above = below;
    require_rows(above, options_.dtype);
    return above;
  }
  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    inputs_ = batch_inputs(PairedInputs::inputs(), options_.names, check);
    // Beside rows of floats, for which dtype is, integers stay as they are.
    const bool has_floats = std::any_of(inputs_.begin(), inputs_.end(), [](const BatchInput& i) {
      return !i.rows->has_integers();
    });
    for (BatchInput& input : inputs_) {
      if (!has_floats || !input.rows->has_integers())
        check_dtype(*input.rows, options_.dtype, check);
      input.type = stored_type(*input.rows, options_.dtype);
    }
    for (const auto& [option, value] :
         {std::pair{"bucket", options_.bucket}, {"max_rows", options_.max_rows}})
      if (!inputs_.empty() && !is_ragged() && value > 0)
        check.error(option, "is for whole recordings; windows are equally long");
    return given;
  }
  [[nodiscard]] std::optional<Value> settings() const override {
    Value out = Value::map({});
    const NumberType type = inputs_.size() == 1 ? inputs_.front().type : options_.dtype;
    out.set("dtype", OptionType<NumberType>::echo(type));
    return out;
  }

  [[nodiscard]] const std::vector<BatchInput>& inputs() const override { return inputs_; }
  [[nodiscard]] std::size_t prefetch() const override {
    return static_cast<std::size_t>(options_.prefetch);
  }
  [[nodiscard]] bool has_buckets() const override { return options_.bucket > 0; }

  [[nodiscard]] std::size_t kept_memory(const RunContext& run, int) const override {
    return held_memory(run.settings.host_memory);
  }
  void check_memory(std::size_t host, std::size_t others, PlanCheck& check) const override {
    const std::size_t held = held_memory(host);
    if (held + others <= host) return;
    if (is_ragged())
      return check.error(
          options_.shuffle > 0 ? "shuffle" : "bucket",
          fmt::format("half of memory.host ({}) is for the recordings that it holds, and the rest "
                      "of this pipeline needs {} at least; set memory.host: {}",
                      Bytes{host}, rounded_up(others), rounded_up(2 * others)));
    std::string smaller;
    if (size_of(options_.dtype) > 2 && !inputs_.front().rows->has_integers())
      smaller = fmt::format(", or dtype: {}, which takes half",
                            inputs_.front().rows->is_samples() ? "int16" : "float16");
    check.error("shuffle",
                fmt::format("{} examples take {}, and the rest of this pipeline needs {} "
                            "at least, which is more than memory.host ({}); set "
                            "memory.host: {}, or shuffle: {}{}",
                            options_.shuffle, rounded_up(held), rounded_up(others), Bytes{host},
                            rounded_up(held + others), (host - others) / row_memory(), smaller));
  }

  [[nodiscard]] std::string why_no_update() const override {
    return "batches: keeps nothing, so there is nothing to update; use melflow run instead";
  }
  void start(RunContext& run) override {
    check_update(run);
    delivery_ = task_of(run).delivery;
    if (delivery_ == nullptr)
      run.warn(
          "batches: nothing takes them in this run, and nothing is written; a training program "
          "takes them by melflow.Loader");
    const std::size_t files = run.ledger.counts().found;
    order_ = std::make_unique<RowOrder>(
        files,
        [&ledger = run.ledger](std::size_t i) {
          const Outcome o = ledger.outcome(i);
          return o != Outcome::open && o != Outcome::ok;
        },
        std::vector<std::size_t>{0}, inputs_.size());
    for (const BatchInput& input : inputs_) {
      recording_.emplace_back(input.rows, input.type);
      if (!is_ragged()) recording_.back().leave_in_blocks();
    }
    sample_.inputs.resize(inputs_.size());
    warn_ = run.warn;
    const SampleBatcher::Settings settings = batcher_settings(run.settings.host_memory);
    batcher_ = std::make_unique<SampleBatcher>(settings, [this](SampleBatch batch) {
      say_cut();
      ++batches_;
      samples_ += batch.files.size();
      if (delivery_ == nullptr) return true;
      const auto began = std::chrono::steady_clock::now();
      const bool is_wanted = delivery_->queue->put(std::move(batch));
      waited_ =
          waited_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      return is_wanted;
    });
    run.ledger.subscribe([this](std::size_t file, Outcome outcome) {
      if (outcome != Outcome::ok) closed(file);
    });
    leave_to_others(run, files);
    if (!add_thread(second_, "batches", [this] { make_between_rows(); }))
      throw RunError(no_thread_text("batches"));
  }

  std::optional<ItemError> consume(std::shared_ptr<const MelBatch> in,
                                   ItemContext& context) override {
    refuse_unstorable(*in, context);
    node_ = context.stage();
    keep_only_rows(*in, context);
    std::unique_lock lock(mutex_);
    std::vector<PlacedPart> ready;
    for (std::size_t i = 0; i < in->parts.size(); ++i) {
      const Origin& origin = context.origin(i);
      if (in->parts[i] && !context.is_lost(i))
        order_->take(origin.stream->index(), in->parts[i], origin, ready, context.input());
    }
    if (error_) std::rethrow_exception(error_);
    std::move(ready.begin(), ready.end(), std::back_inserter(ready_));
    make_batches(lock);
    changed_.wait(lock, [this] { return !is_making_ || ready_.size() < kMostReady; });
    if (error_) std::rethrow_exception(error_);
    lock.unlock();
    drop_lost();
    return std::nullopt;
  }

  // A recording that fails stays open while parts of it wait for the one that was lost.
  void drop_lost() override {
    const auto lost = [this] {
      const std::lock_guard lock(mutex_);
      return order_->take_lost(node_);
    };
    while (!lost().empty()) {  // dropped without the mutex: that calls closed()
    }
  }

  void drop_waiting() override {
    join();
    drop_lost();
    std::vector<PlacedPart> dropped;
    {
      std::unique_lock lock(mutex_);
      make_batches(lock);
      dropped = order_->take_waiting();
    }
    dropped.clear();
    if (!error_) batcher_->end();
    if (delivery_ != nullptr) delivery_->queue->end();
  }

  void finish(RunContext& run, Ending ending) override {
    if (error_) std::rethrow_exception(error_);
    if (delivery_ != nullptr && ending == Ending::complete && options_.drop_last && batches_ == 0 &&
        delivery_->skip == 0 && run.ledger.counts().ok > 0)
      throw RunError(fmt::format(
          "batches: drop_last: an epoch has fewer samples than a batch of {}, so it gives none; "
          "take a smaller batch, or omit drop_last",
          options_.size));
    if (delivery_ != nullptr && ending == Ending::complete &&
        batcher_->passed_over() < delivery_->skip)
      throw RunError(fmt::format(
          "batches: {} samples of this epoch were delivered, so its state says, and it has {}",
          delivery_->skip, batcher_->passed_over()));
  }

  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    std::vector<std::pair<std::string, Value>> out{
        {"batches", Value::scalar(std::to_string(batches_.load()))},
        {"samples", Value::scalar(std::to_string(samples_.load()))}};
    if (delivery_ != nullptr)
      out.emplace_back("waiting_for_program", Value::scalar(fmt::format("{:.3f}", waited_.load())));
    return out;
  }

 private:
  [[nodiscard]] bool is_ragged() const { return inputs_.front().rows->frames == 0; }
  [[nodiscard]] std::size_t row_memory() const {
    std::size_t out = 0;
    for (const BatchInput& input : inputs_) {
      std::size_t bytes = size_of(input.type);
      for (const std::size_t n : row_shape(*input.rows)) bytes *= n;
      out += BufferPool::rounded(bytes);
    }
    return out;
  }
  // Windows have one length; the lengths of recordings are known only as they come.
  [[nodiscard]] std::size_t held_memory(std::size_t host) const {
    if (options_.shuffle == 0 && options_.bucket == 0) return 0;
    return is_ragged() ? host / 2 : static_cast<std::size_t>(options_.shuffle) * row_memory();
  }
  // Warns, once and before the next batch, that fewer are held than were asked for.
  void say_cut() {
    for (const auto& [option, asked, most] :
         {std::tuple("shuffle", options_.shuffle, batcher_->most_shuffled()),
          std::tuple("bucket", options_.bucket, batcher_->most_in_bucket())}) {
      if (most == 0 || !said_.insert(option).second) continue;
      std::string text = fmt::format(
          "batches: {}: {} recordings at a time, and not {}, fill the part of memory.host that it "
          "may take ({}); raise memory.host where more are wanted",
          option, most, asked, rounded_up(held_bytes_));
      if (delivery_ != nullptr) delivery_->warn(text);
      if (warn_) warn_(std::move(text));
    }
  }
  [[nodiscard]] SampleBatcher::Settings batcher_settings(std::size_t host) {
    SampleBatcher::Settings s;
    s.size = static_cast<std::size_t>(options_.size);
    s.max_rows = static_cast<std::size_t>(options_.max_rows);
    s.shuffle = static_cast<std::size_t>(options_.shuffle);
    s.bucket = static_cast<std::size_t>(options_.bucket);
    if (is_ragged()) held_bytes_ = held_memory(host) / (s.shuffle > 0 && s.bucket > 0 ? 2 : 1);
    s.held_bytes = held_bytes_;
    s.seed = options_.seed;
    if (delivery_ != nullptr) {
      s.epoch = delivery_->epoch;
      s.skip = delivery_->skip;
      s.pool = delivery_->pool;
    }
    s.drop_last = options_.drop_last;
    s.is_ragged = is_ragged();
    for (const BatchInput& input : inputs_) {
      s.row_shapes.push_back(row_shape(*input.rows));
      s.types.push_back(input.type);
    }
    return s;
  }
  // Skips recordings that this program does not get: those of other splits and for other ranks.
  void leave_to_others(RunContext& run, std::size_t files) const {
    if (delivery_ == nullptr || (delivery_->ranks <= 1 && delivery_->split.empty())) return;
    const ManifestSource* listed = manifest_source(run);
    const int split = listed != nullptr ? number_of(listed->manifest()) : -1;
    std::size_t mine = 0;
    for (std::size_t i = 0; i < files; ++i) {
      if (!delivery_->split.empty() && listed->manifest().split(i) != split)
        run.ledger.close(i, Outcome::skipped, -1, kInOtherSplit);
      else if (mine++ % delivery_->ranks != delivery_->rank)
        run.ledger.close(i, Outcome::skipped, -1, kForOtherRank);
    }
    if (mine > delivery_->rank) return;
    const std::string of =
        delivery_->split.empty() ? "the list" : fmt::format("the split '{}'", delivery_->split);
    throw RunError(mine == 0 ? of + " has no recordings"
                             : fmt::format("rank {} of {} has no recordings, since {} has {}; let "
                                           "at most so many programs share it",
                                           delivery_->rank, delivery_->ranks, of, mine));
  }
  [[nodiscard]] int number_of(const Manifest& manifest) const {
    if (delivery_->split.empty()) return -1;
    const auto& names = manifest.split_names();
    const auto it = std::find(names.begin(), names.end(), delivery_->split);
    if (it == names.end())
      throw RunError(fmt::format("there is no split '{}'; {}", excerpt(delivery_->split),
                                 names.empty()
                                     ? "the list has none (file_list.splits)"
                                     : fmt::format("there are: {}", fmt::join(names, ", "))));
    return static_cast<int>(it - names.begin());
  }
  void refuse_unstorable(const MelBatch& batch, const ItemContext& context) const {
    for (std::size_t i = 0; i < batch.parts.size(); ++i) {
      const MelPart* part = batch.parts[i].get();
      const BatchInput& input = inputs_[context.input()];
      if (part == nullptr || part->pending || part->type == input.type) continue;
      if (auto error =
              unstorable(part->values(), part->first_row, part->row_count, *input.rows, input.type))
        context.fail(i, std::move(*error));
    }
  }

  // Called on the thread on which the file failed.
  void closed(std::size_t file) {
    const std::lock_guard lock(mutex_);
    std::vector<PlacedPart> ready;
    order_->closed(file, ready);
    std::move(ready.begin(), ready.end(), std::back_inserter(ready_));
    changed_.notify_all();
  }

  void make_between_rows() {
    std::unique_lock lock(mutex_);
    while (!is_over_) {
      make_batches(lock);
      changed_.wait(lock, [this] { return is_over_ || (!is_making_ && !ready_.empty()); });
    }
  }
  void join() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      changed_.notify_all();
    }
    for (std::thread& t : second_) t.join();
    second_.clear();
  }

  // With the mutex held. One thread makes batches, also of the parts that others made ready.
  void make_batches(std::unique_lock<std::mutex>& lock) {
    if (is_making_) return;
    is_making_ = true;
    while (!ready_.empty()) {
      std::deque<PlacedPart> taken;
      taken.swap(ready_);
      changed_.notify_all();
      lock.unlock();
      std::exception_ptr error;
      try {
        // Taken one by one: the last part of a recording closes its record, which calls closed().
        for (; !taken.empty(); taken.pop_front()) take(taken.front());
      } catch (...) {
        error = std::current_exception();
        is_wanted_ = false;
      }
      taken.clear();
      lock.lock();
      if (error) error_ = error;
    }
    is_making_ = false;
    changed_.notify_all();
  }

  void take(const PlacedPart& placed) {
    if (!is_wanted_) return;
    if (placed.file != file_) {
      file_ = placed.file;
      complete_ = 0;
      for (RecordingRows& r : recording_) r.clear();
    }
    RecordingRows& rows = recording_[placed.input];
    if (!rows.add(placed.part, placed.rows)) return;
    if (++complete_ < recording_.size()) return;
    if (fits_together(placed)) give(placed);
    for (RecordingRows& r : recording_) r.clear();
    complete_ = 0;  // a further result of the recording may come
  }

  // Whether all inputs have as many samples, as they must where samples are windows.
  [[nodiscard]] bool fits_together(const PlacedPart& placed) const {
    const auto other = std::find_if(
        recording_.begin(), recording_.end(),
        [this](const RecordingRows& r) { return r.count() != recording_.front().count(); });
    if (is_ragged() || other == recording_.end()) return true;
    const auto name = [this](auto k) {
      return PairedInputs::inputs()[static_cast<std::size_t>(k)].name;
    };
    placed.origin.stream->fail(
        node_,
        ItemError::failed(fmt::format("its windows do not fit together: {} gives {}, {} gives {}",
                                      name(0), recording_.front().count(),
                                      name(other - recording_.begin()), other->count())),
        placed.origin.block);
    return false;
  }

  // Delivers the samples of the complete recording, or of the result of one.
  void give(const PlacedPart& placed) {
    sample_.file = static_cast<std::int64_t>(placed.file);
    sample_.offset = placed.begin;
    sample_.result_offset = 0;
    sample_.result = placed.origin.sub_item;
    const std::int64_t count = recording_.front().count();
    if (is_ragged()) {
      for (std::size_t k = 0; k < recording_.size(); ++k)
        sample_.inputs[k] = {recording_[k].data(), recording_[k].count()};
      if (count > 0) is_wanted_ = batcher_->add(sample_);
      return;
    }
    for (std::int64_t row = 0; row < count && is_wanted_; ++row, ++sample_.offset) {
      sample_.result_offset = row;
      for (std::size_t k = 0; k < recording_.size(); ++k)
        sample_.inputs[k] = {recording_[k].row(row), 1};
      is_wanted_ = batcher_->add(sample_);
    }
  }

  BatchesOptions options_;
  std::vector<BatchInput> inputs_;
  std::shared_ptr<BatchDelivery> delivery_;
  std::atomic<std::uint64_t> batches_{0}, samples_{0};
  std::atomic<double> waited_{0};  // for the program to take batches [s]
  std::atomic<int> node_{-1};      // this node's number

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::unique_ptr<RowOrder> order_;
  std::deque<PlacedPart> ready_;
  bool is_making_ = false, is_over_ = false;
  std::exception_ptr error_;

  // Used only by the thread that makes batches.
  bool is_wanted_ = true;
  std::unique_ptr<SampleBatcher> batcher_;
  std::size_t held_bytes_ = 0;  // SampleBatcher::Settings::held_bytes
  std::set<std::string> said_;  // options that say_cut() has reported
  std::function<void(std::string)> warn_;
  std::size_t file_ = static_cast<std::size_t>(-1);
  std::vector<RecordingRows> recording_;  // by input
  std::size_t complete_ = 0;              // inputs that have all rows
  SampleView sample_;

  std::vector<std::thread> second_;  // one thread, or none
};

const RegisterStage<Batches, BatchesOptions> register_batches{
    "batches", "Delivers rows in batches to a training program.", true};

}  // namespace
}  // namespace melflow
