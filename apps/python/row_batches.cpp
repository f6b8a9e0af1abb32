#include "apps/python/row_batches.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/threads.h"

namespace melflow {
namespace {

constexpr std::uint64_t kMostReplaced = 100;  // attempts per sample

}  // namespace

RowBatches::Rows::Rows(Input input, bool samples_are_recordings, bool packs_samples)
    : Input(std::move(input)), is_ragged(samples_are_recordings), packs(packs_samples) {
  if (!is_ragged) std::partial_sum(counts.begin(), counts.end(), std::back_inserter(ends));
  const std::size_t columns = reader->row_shape().empty() ? 1 : reader->row_shape().back();
  for (std::size_t at = 0; at < mean.size(); at += columns) {
    const auto of_group = [&](const std::vector<double>& values) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(at);
      return std::vector<double>(first, first + static_cast<std::ptrdiff_t>(columns));
    };
    scales.push_back(fixed_step(of_group(mean), of_group(std)));
  }
}

std::size_t RowBatches::Rows::range_with(std::int64_t sample) const {
  if (is_ragged) return static_cast<std::size_t>(sample);
  return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), sample) -
                                  ends.begin());
}

RowReader::Range RowBatches::Rows::of(std::int64_t sample) const {
  const std::size_t range = range_with(sample);
  const auto start = static_cast<std::uint64_t>(starts[range]);
  if (is_ragged) return {start, static_cast<std::uint64_t>(counts[range])};
  const std::int64_t before = range > 0 ? ends[range - 1] : 0;
  return {start + static_cast<std::uint64_t>(sample - before), 1};
}

std::vector<RowReader::Range> RowBatches::Rows::of(const std::vector<std::int64_t>& numbers) const {
  std::vector<RowReader::Range> out;
  for (const std::int64_t s : numbers) out.push_back(of(s));
  return out;
}

SampleBatch::Rows RowBatches::Rows::read(const std::vector<std::int64_t>& numbers,
                                         RowReader::Scratch& scratch) const {
  const NumberType stored_type = reader->type();
  const bool converts = (as_float32 || !scales.empty()) && stored_type != NumberType::float32;
  const std::vector<std::size_t>& shape = reader->row_shape();
  const std::vector<RowReader::Range> ranges = of(numbers);
  std::uint64_t longest = 1, all = 0;
  std::vector<std::uint64_t> before;  // rows of packed samples
  for (const RowReader::Range& rows : ranges) {
    longest = std::max(longest, rows.count);
    before.push_back(all);
    all += rows.count;
  }
  SampleBatch::Rows out(reader->pool(), converts ? NumberType::float32 : stored_type,
                        packs ? 1 : numbers.size(), shape,
                        is_ragged ? std::optional(packs ? all : longest) : std::nullopt);
  const std::size_t values = reader->values_per_row();
  const std::size_t row_bytes = values * size_of(out.type);
  const std::size_t sample_bytes = longest * row_bytes;
  // Values that are converted or scaled after reading should stay in the cache.
  scratch.streams = !converts && scales.empty() &&
                    (packs ? all * row_bytes : numbers.size() * sample_bytes) >= kBeyondCaches;
  // Reads samples by position in the file, so that each chunk is unpacked once.
  std::vector<std::size_t> by_place(numbers.size());
  std::iota(by_place.begin(), by_place.end(), 0);
  if (reader->is_ordered())
    std::sort(by_place.begin(), by_place.end(),
              [&](std::size_t a, std::size_t b) { return ranges[a].first < ranges[b].first; });
  out.lengths.resize(is_ragged ? numbers.size() : 0);
  std::vector<std::byte> stored;
  for (const std::size_t place : by_place) {
    const RowReader::Range& rows = ranges[place];
    std::byte* to = out.data.data() + (packs ? before[place] * row_bytes : place * sample_bytes);
    if (converts) {
      stored.resize(rows.count * reader->row_bytes());
      reader->read(rows, stored.data(), scratch);
      to_float(stored.data(), rows.count * values, stored_type, reinterpret_cast<float*>(to));
    } else {
      reader->read(rows, to, scratch);
    }
    if (!scales.empty()) {
      const std::size_t columns = shape.empty() ? 1 : shape.back();
      MemoryRows scaled(reinterpret_cast<float*>(to),
                        static_cast<std::int64_t>(rows.count * (values / columns)),
                        static_cast<int>(columns));
      const std::int64_t group = groups.empty() ? 0 : groups[range_with(numbers[place])];
      scales[static_cast<std::size_t>(group)]->run(scaled, scaled);
    }
    if (!packs) std::memset(to + rows.count * row_bytes, 0, sample_bytes - rows.count * row_bytes);
    if (is_ragged) out.lengths[place] = static_cast<std::int64_t>(rows.count);
  }
  reader->confirm();
  reader->drop(scratch);
  return out;
}

RowBatches::RowBatches(std::shared_ptr<const EpochOrder> order, Settings settings)
    : order_(std::move(order)),
      settings_(std::move(settings)),
      queue_(std::make_unique<BatchQueue<Batch>>(settings_.prefetch, order_->count())) {
  check_process();
  for (Input& input : settings_.inputs)
    inputs_.emplace_back(std::move(input), settings_.is_ragged, settings_.packs);
  for (std::size_t i = 0; i < std::max<std::size_t>(1, settings_.threads); ++i)
    if (!add_thread(threads_, "rows", [this] { work(); }) && threads_.empty())
      throw RunError(no_thread_text("the loader of rows"));
  if (settings_.ahead > 0)  // without this thread the result is the same, only slower
    static_cast<void>(add_thread(threads_, "look-ahead", [this] { look_ahead(); }));
}

RowBatches::~RowBatches() { stop(); }

std::vector<std::size_t> RowBatches::fetch(const std::vector<std::int64_t>& samples,
                                           const Scratches& scratches, bool is_urgent) const {
  std::set<std::size_t> lost;
  for (std::size_t k = 0; k < inputs_.size(); ++k)
    for (const std::size_t place :
         inputs_[k].reader->fetch(inputs_[k].of(samples), *scratches[k], is_urgent))
      lost.insert(place);
  return {lost.begin(), lost.end()};
}

// Replaces samples that can no longer be read, in the same way wherever the same recordings are
// lost, and by samples no longer than the batch allows, if possible.
void RowBatches::replace_lost(EpochOrder::Batch& batch, const Scratches& scratches,
                              bool is_urgent) const {
  std::vector<std::int64_t>& samples = batch.samples;
  std::vector<std::size_t> places = fetch(samples, scratches, is_urgent);
  if (places.empty()) return;
  const std::vector<std::int64_t> lost = samples;
  std::vector<std::uint64_t> attempts(samples.size());
  const auto other = [&](std::size_t place) {
    std::int64_t out = -1;
    for (std::uint64_t i = 0;
         i < order_->samples() && (out < 0 || !order_->fits(out, lost[place], batch)); ++i)
      out = order_->other(lost[place], attempts[place]++);
    return out;
  };
  for (std::uint64_t attempt = 0; !places.empty(); ++attempt) {
    if (attempt == kMostReplaced) {
      const std::string source = order_->source_of(lost[places.front()]);
      throw RunError(fmt::format(
          "{} samples one after the other {}cannot be read any more; the last one: {}",
          kMostReplaced + 1, source.empty() ? source : fmt::format("of the source {} ", source),
          inputs_.front().reader->last_loss()));
    }
    std::vector<std::int64_t> others;
    for (const std::size_t p : places) others.push_back(samples[p] = other(p));
    std::vector<std::size_t> still;
    for (const std::size_t i : fetch(others, scratches, is_urgent)) still.push_back(places[i]);
    places = std::move(still);
  }
}

RowBatches::Batch RowBatches::make(EpochOrder::Batch batch, const Scratches& scratches,
                                   bool is_urgent) {
  replace_lost(batch, scratches, is_urgent);
  Batch out;
  for (std::size_t k = 0; k < inputs_.size(); ++k)
    out.inputs.push_back(inputs_[k].read(batch.samples, *scratches[k]));
  out.samples = std::move(batch.samples);
  out.end = batch.end;
  return out;
}

void RowBatches::work() {
  Scratches scratches;
  for (const Rows& rows : inputs_) scratches.push_back(rows.reader->scratch());
  while (const std::optional<std::uint64_t> number = queue_->begin()) try {
      queue_->put(*number, make(order_->batch(*number, settings_.rank), scratches, *number == 0));
    } catch (...) {
      queue_->fail(std::current_exception());
    }
}

void RowBatches::look_ahead() {
  while (const std::optional<std::uint64_t> number = queue_->look(settings_.ahead)) {
    const EpochOrder::Batch batch = order_->batch(*number, settings_.rank);
    for (const Rows& rows : inputs_) rows.reader->prefetch(rows.of(batch.samples));
  }
}

TakeResult RowBatches::take(Batch& out, double seconds) {
  check_process();
  return queue_->take(out, seconds);
}

void RowBatches::stop() {
  if (is_forked_off()) {  // the queue would wait for threads that are not there
    for (std::thread& t : threads_) t.detach();
    threads_.clear();
    static_cast<void>(queue_.release());
    return;
  }
  const std::lock_guard one(stopping_);
  queue_->close();
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

}  // namespace melflow
