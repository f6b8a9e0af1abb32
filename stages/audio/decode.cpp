// decode: makes mono samples from the bytes of a sound file.
//
// In:  RawBytes.
// Out: Waveform blocks of at most `block` bytes (decoded_blocks.h), or those of a store.

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/audio/audio_libraries.h"
#include "stages/audio/compare_declared.h"
#include "stages/audio/decode_options.h"
#include "stages/audio/decoded_blocks.h"
#include "stages/audio/decoders/sound_file.h"
#include "stages/audio/decoders/sound_header.h"
#include "stages/audio/reading/file_reader.h"
#include "stages/audio/store/feed.h"
#include "stages/audio/store/stored_audio.h"
#include "stages/facts.h"
#include "stages/files/under_way.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/node_group.h"
#include "stages/passes_streams.h"

namespace melflow {

namespace {

/// The earlier stage that makes a result of each channel.
constexpr Property<const Stage*> kChannelsBy{"channels_by"};

SoundFile open_sound(const RawBytes& raw) {
  return SoundFile(raw.data ? SoundInput({raw.data.data(), raw.size})
                            : SoundInput(raw.fd.get(), raw.begin, raw.size, raw.window));
}

// With downmix: each, a node before decode that yields every recording once per channel.
struct EachChannelOptions {
  int timeout = 300;
  void describe(Schema& s) {
    s.field("timeout", timeout, "as that of decode").range(0, 86400).tuning();
  }
};

class EachChannel final : public OneToMany<RawBytes, RawBytes> {
 public:
  explicit EachChannel(EachChannelOptions options) : options_(options) {}

  Properties plan(const Properties& given, const Requirements&, PlanCheck&) override {
    Properties out = given;
    out.set(kChannelsBy, this);
    return out;
  }
  [[nodiscard]] StageResources resources() const override { return {.passes_on = true}; }
  void start(RunContext& run) override {
    under_way_ = run.services.find_or_make<UnderWay>();
    under_way_->expect(options_.timeout);
  }

  // Leaves problems of a file to decode, which reports them.
  Result<Many> process(std::shared_ptr<const RawBytes> in, ItemContext&) const override {
    const std::uint64_t file = UnderWay::key(in->file->path);
    const bool is_one = in->file->channel > 0;
    if (is_one || (under_way_ != nullptr && under_way_->why_excluded(file) != nullptr))
      return Many{in};
    const UnderWay::Mark mark(under_way_.get(), file, options_.timeout);
    const SoundFile sound = open_sound(*in);
    const int channels = sound.ok() ? sound.info().channels : 1;
    return Many(static_cast<std::size_t>(std::clamp(channels, 1, 1024)), in);
  }

 private:
  EachChannelOptions options_;
  std::shared_ptr<UnderWay> under_way_;
};

const RegisterStage<EachChannel, EachChannelOptions> register_each_channel{
    "each_channel",
    "Gives every recording once for each of its channels; decode with downmix: each puts this "
    "stage "
    "before itself.",
    true};

class Decode final : public Expand<RawBytes, Waveform>, public ReadsLength, public PassesStreams {
 public:
  static constexpr bool kIsPutIn = true;

  explicit Decode(DecodeOptions options) : options_(options) {}

  [[nodiscard]] std::string why_no_stream() const override {
    return options_.fit ? "fit: the length of a stream is known at its end only" : "";
  }

  static std::vector<NodeSpec> expand(const NodeSpec& spec) {
    const Value *downmix = spec.options.find("downmix"), *from = spec.options.find("from");
    if (downmix == nullptr || !downmix->is_scalar() || downmix->text() != "each") return {spec};
    NodeSpec channels = grouped_node(spec, "channels", "each_channel");
    if (from != nullptr) channels.options.set("from", *from);
    if (const Value* timeout = spec.options.find("timeout"))
      channels.options.set("timeout", *timeout);
    NodeSpec decode = spec;
    decode.options.set("from", Value::scalar(channels.name, spec.mark));
    return {std::move(channels), std::move(decode)};
  }

  Properties plan(const Properties& given, const Requirements& required,
                  PlanCheck& check) override {
    if (options_.fit && options_.fit->is_zero())
      check.error("fit", "nothing would be left of a recording; give a length or remove it");
    if (options_.fit && given.get_or(property::kHasUtterances, false))
      check.error("fit", "cuts recordings, but their utterances are wanted; remove it");
    channels_by_ = given.get_or(kChannelsBy, nullptr);
    expected_rate_ = required.get_or(requirement::kSampleRate, 0);
    lowest_rate_ = required.get_or(requirement::kLowestRate, 0);
    block_multiple_ = required.get_or(requirement::kBlockMultiple, 0);
    block_ =
        std::max<std::uint64_t>(options_.block.count, required.get_or(requirement::kWholeBlock, 0));
    Properties out = given;
    plan_meters(given, required, out);
    out.set(property::kLibraries, audio_libraries());
    out.erase(kChannelsBy);
    // Files of known length that fit into one block each.
    if (const bool is_known = options_.fit && (!options_.fit->is_time() || expected_rate_ > 0);
        is_known && options_.fit->at(expected_rate_) * sizeof(float) <= block_)
      out.set(property::kSamplesOfFile, options_.fit->at(expected_rate_));
    return out;
  }

  [[nodiscard]] StageResources resources() const override { return {.size_option = "block"}; }

  // Writes a length in samples if the rate is known.
  [[nodiscard]] std::optional<Value> settings() const override {
    Value out = *settings_alone();
    if (options_.fit && expected_rate_ > 0)
      out.set("fit", Value::scalar(std::to_string(options_.fit->at(expected_rate_))));
    return out;
  }
  [[nodiscard]] std::optional<Value> settings_alone() const override {
    DecodeOptions own = options_;
    Schema s;
    own.describe(s);
    return s.echo(false);
  }

  // A compressed file may have any length; a file with plain samples has at most two bytes for each
  // of its own. Samples that do not fit become further blocks.
  [[nodiscard]] std::size_t output_bound(const SourceInfo& source, std::size_t) const override {
    std::size_t bytes = block_;
    if (options_.fit) {
      std::size_t padded = block_;
      if (!options_.fit->is_time() || expected_rate_ > 0)
        padded = std::min<std::size_t>(
            padded, static_cast<std::size_t>(options_.fit->at(expected_rate_)) * sizeof(float));
      bytes = std::max<std::size_t>(padded, 4096);
    } else if (source.bytes < bytes / 2 && has_plain_samples(source.name)) {
      bytes = std::max<std::size_t>(2 * source.bytes, 4096);
    }
    return BufferPool::rounded(bytes);
  }

  void start(RunContext& run) override {
    under_way_ = run.services.find_or_make<UnderWay>();
    under_way_->expect(options_.timeout);
  }

  Result<std::unique_ptr<Cursor>> open(std::shared_ptr<const RawBytes> raw,
                                       ItemContext& context) const override {
    std::vector<DeclaredAudio> declared;
    if (raw->file) declared = raw->file->declared;
    auto out = blocks_of(std::move(raw), context);
    if (out && !declared.empty())
      return with_declared(std::move(*out), std::move(declared), options_.fit.has_value());
    return out;
  }

  // FFmpeg reports lengths as times, so they are not used.
  [[nodiscard]] std::optional<RecordingLength> length_in_header(
      const FileRef& file) const override {
    if (file.stored)
      return RecordingLength{file.stored->info().sample_rate, file.stored->info().count};
    if (!file.problem.empty() || file.container || (file.part && file.part->is_deflated))
      return std::nullopt;
    constexpr std::size_t kWindow = 16 * 1024;  // headers are short
    static const FileReader reader({kWindow, 0, true, Advise::none});
    int error = 0;
    const UniqueFd fd = reader.open(FileReader::file_of(file), error);
    struct stat state {};
    if (!fd || ::fstat(fd.get(), &state) != 0 || !S_ISREG(state.st_mode)) return std::nullopt;
    const std::uint64_t begin = file.part ? file.part->begin : 0,
                        size = file.part ? file.size : static_cast<std::uint64_t>(state.st_size);
    const SoundFile sound(SoundInput(fd.get(), begin, size, kWindow));
    if (!sound.ok() || sound.is_by_ffmpeg() || !sound.is_count_known()) return std::nullopt;
    const SF_INFO& info = sound.info();
    if (info.samplerate <= 0 || info.frames <= 0 ||
        (file.channel > 0 ? file.channel : options_.downmix.channel) > info.channels)
      return std::nullopt;
    return RecordingLength{info.samplerate,
                           options_.fit ? options_.fit->at(info.samplerate) : info.frames};
  }

  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    if (by_ffmpeg_ == 0) return {};
    return {{"decoded_by_ffmpeg", Value::scalar(std::to_string(by_ffmpeg_.load()))}};
  }

 private:
  // Notes whose meters are shown the samples, or why that is impossible.
  void plan_meters(const Properties& given, const Requirements& required, Properties& out) {
    meters_ = required.get_or(requirement::kMeter, nullptr);
    if (meters_ == nullptr) return;
    const auto feed = given.get_or(property::kFeed, nullptr);
    if (given.get_or(property::kHasUtterances, false))
      out.set(property::kNotMeasured,
              "measures whole recordings, and the list has utterances of recordings; remove "
              "`utterances` to measure the recordings");
    else if (feed != nullptr && !feed->decodes_all())
      out.set(property::kNotMeasured,
              "measures what is decoded, and kept audio (feed) is not decoded again; set feed: "
              "stream");
    else
      out.set(property::kMeter, meters_);
  }

  [[nodiscard]] std::unique_ptr<SampleMeter> meter(int sample_rate, int channels) const {
    return meters_ != nullptr ? meters_->meter(sample_rate, channels) : nullptr;
  }

  Result<std::unique_ptr<Cursor>> blocks_of(std::shared_ptr<const RawBytes> raw,
                                            ItemContext& context) const {
    if (raw->file && raw->file->stored) {
      const bool is_mean = downmix_of(*raw, context.origin()).channel == 0;
      if (auto cursor =
              stored_blocks(raw, output_bound({raw->file->path, raw->file->size}, 0), is_mean))
        return cursor;
      auto again = read_again(*raw, context.run().pool);
      if (!again) return again.error();
      raw = std::move(*again);
    }
    const Downmix downmix = downmix_of(*raw, context.origin());
    if (const auto plain = plain_in(*raw, downmix))
      return plain_block(std::move(raw), *plain, meter(plain->sample_rate, 1));
    const std::uint64_t file = UnderWay::key(raw->file->path);
    if (under_way_ != nullptr)
      if (const char* why = under_way_->why_excluded(file)) return ItemError::failed(why);
    const UnderWay::Mark mark(under_way_.get(), file, options_.timeout);
    SoundFile sound = open_sound(*raw);
    if (!sound.ok()) {
      if (sound.io_error() != 0)
        return ItemError::failed(
            fmt::format("cannot be read: {}", std::strerror(sound.io_error())));
      return ItemError::failed(sound.why());
    }
    if (sound.is_by_ffmpeg()) by_ffmpeg_.fetch_add(1, std::memory_order_relaxed);
    const SF_INFO& info = sound.info();
    if (info.samplerate <= 0 || info.channels <= 0)
      return ItemError::failed(fmt::format("the header makes no sense: {} Hz, {} channels",
                                           info.samplerate, info.channels));
    if (downmix.channel > info.channels)
      return ItemError::failed(fmt::format(
          "has {}, and {} asks for channel {}",
          info.channels == 1 ? "one channel" : fmt::format("{} channels", info.channels),
          raw->file->channel > 0 ? "the list" : "downmix", downmix.channel));
    // Below an eighth of it, blocks would be too short to be efficient.
    if (8.0 * info.samplerate < lowest_rate_)
      return ItemError::failed(
          fmt::format("is sampled at {} Hz: too low to be resampled, the "
                      "least is {:.0f} Hz",
                      info.samplerate, lowest_rate_ / 8));
    if (options_.fit && options_.fit->at(info.samplerate) == 0)
      return ItemError::failed(
          fmt::format("is sampled at {} Hz, where fit is less than one sample", info.samplerate));
    const BlockSize block{block_bytes(*raw, info.samplerate), block_multiple_};
    auto meter = this->meter(info.samplerate, info.channels);
    return decoded_blocks(std::move(raw), std::move(sound), options_, downmix, block,
                          {under_way_, file}, std::move(meter));
  }

  // Returns the size of the longest block for a file of that rate [bytes].
  [[nodiscard]] std::size_t block_bytes(const RawBytes& raw, int sample_rate) const {
    const std::size_t block = output_bound({raw.file->path, raw.file->size}, raw.size);
    return sample_rate >= lowest_rate_
               ? block
               : static_cast<std::size_t>(static_cast<double>(block) * sample_rate / lowest_rate_);
  }

  // Returns the channel that the recording or the result stands for, if it stands for one.
  [[nodiscard]] Downmix downmix_of(const RawBytes& raw, const Origin& origin) const {
    if (raw.file->channel > 0) return {raw.file->channel};
    if (!options_.downmix.is_each()) return options_.downmix;
    const SubItem* result = origin.sub_item.get();
    while (result != nullptr && result->by != channels_by_) result = result->of.get();
    return {result == nullptr ? 0 : static_cast<int>(result->number) + 1};
  }

  [[nodiscard]] std::optional<PlainSamples> plain_in(const RawBytes& raw, Downmix downmix) const {
    if (std::endian::native != std::endian::little || !raw.data || downmix.channel > 1)
      return std::nullopt;
    auto out = plain_samples({raw.data.data(), raw.size});
    if (!out || 8.0 * out->sample_rate < lowest_rate_) return std::nullopt;
    if (options_.fit) {
      const std::int64_t fit = options_.fit->at(out->sample_rate);
      if (fit > out->count || fit == 0) return std::nullopt;
      out->count = fit;
    }
    const auto bytes = static_cast<std::size_t>(out->count) * sizeof(std::int16_t);
    return bytes <= block_bytes(raw, out->sample_rate) ? out : std::nullopt;
  }

  DecodeOptions options_;
  std::shared_ptr<const MakesMeters> meters_;      // null: nothing is measured
  const Stage* channels_by_ = nullptr;             // with downmix: each, numbers the channels
  std::shared_ptr<UnderWay> under_way_;            // the run's; null before it
  mutable std::atomic<std::size_t> by_ffmpeg_{0};  // number of recordings
  double expected_rate_ = 0;                       // [Hz] required by later stages; 0 if unknown
  std::uint64_t block_ = options_.block.count;     // [bytes], for what comes after
  std::int64_t block_multiple_ = 0;                // samples; 0: any
  double lowest_rate_ = 0;                         // [Hz] blocks of slower files become shorter
};

const RegisterStage<Decode, DecodeOptions> register_decode{
    "decode",
    "Decodes FLAC, MP3, WAV, Ogg, AIFF and all formats that libsndfile reads, to mono; M4A, WebM, "
    "WMA and AMR where the program was built with FFmpeg.",
    true};

}  // namespace
}  // namespace melflow
