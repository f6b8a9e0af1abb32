#include "stages/routing/routing_facts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>

#include "pipeline/stage/stage_kinds.h"
#include "stages/items.h"
#include "stages/manifest.h"

namespace melflow {

std::vector<PortType> RoutingFacts::ports() {
  return {port_type<FileRef>(), port_type<RawBytes>(), port_type<Waveform>()};
}

RoutingFacts::RoutingFacts(const Item& item, const PortType& port, const ItemContext& context)
    : index_(context.origin().stream->index()) {
  const ManifestSource* listed = manifest_source(context.run());
  path_ = listed != nullptr ? listed->manifest().name_in_source(index_)
                            : context.run().source.name(index_);
  if (listed != nullptr) {
    manifest_ = &listed->manifest();
    size_ = static_cast<std::uint64_t>(std::max<std::int64_t>(listed->stamp(index_).size, 0));
  }
  if (!(port == port_type<Waveform>())) return;
  const Waveform& block = *payload_of<Waveform>(item);
  sample_rate_ = block.file.sample_rate;
  channels_ = block.file.channels;
  is_duration_promised_ = !block.last;
  const std::int64_t frames = block.last ? block.file.frames : block.file.total;
  if (frames > 0 && sample_rate_ > 0) duration_ = static_cast<double>(frames) / sample_rate_;
  note(item);
}

void RoutingFacts::note(const Item& item) {
  const Waveform& block = *payload_of<Waveform>(item);
  is_at_end_ = block.last;
  measured_ = block.file.measured;
}

void RoutingFacts::note_peak(const Item& item) {
  const Waveform& block = *payload_of<Waveform>(item);
  const auto count = static_cast<std::size_t>(block.samples.count);
  if (block.samples.type == SampleType::int16) {
    int largest = 0;
    for (const std::int16_t s :
         std::span(reinterpret_cast<const std::int16_t*>(block.samples.data), count))
      largest = std::max(largest, std::abs(int{s}));
    peak_ = std::max(peak_, largest / 32768.0);
  } else {
    float largest = 0;
    for (const float s : std::span(reinterpret_cast<const float*>(block.samples.data), count))
      largest = std::max(largest, std::abs(s));
    peak_ = std::max(peak_, static_cast<double>(largest));
  }
  is_peak_whole_ = block.last;
}

std::vector<std::string> RoutingFacts::texts(Fact fact, const std::string& name) const {
  if (fact == Fact::path) return {path_};
  if (manifest_ == nullptr) return {};
  std::vector<std::string> out;
  if (fact == Fact::label)
    for (const std::int32_t l : manifest_->labels(index_))
      out.push_back(manifest_->label_names()[static_cast<std::size_t>(l)]);
  if (const int split = manifest_->split(index_); fact == Fact::split && split >= 0)
    out.push_back(manifest_->split_name(split));
  if (fact == Fact::column) {
    const std::vector<std::string>& names = manifest_->text_names();
    const auto at = std::find(names.begin(), names.end(), name);
    if (at != names.end())
      out.emplace_back(manifest_->text(index_, static_cast<std::size_t>(at - names.begin())));
  }
  return out;
}

std::optional<double> RoutingFacts::number(Fact fact, const std::string& name) const {
  if (fact == Fact::size) return static_cast<double>(size_);
  if (fact == Fact::sample_rate) return sample_rate_;
  if (fact == Fact::duration) return duration_;
  if (fact == Fact::peak) return peak_;
  if (fact == Fact::measure) {
    const MeasureInfo* which = measure_named(name);
    if (measured_ == nullptr || which == nullptr) return std::nullopt;
    const float value = (*measured_)[measure_of(*which)];
    return std::isnan(value) ? std::nullopt : std::optional<double>(value);
  }
  if (fact == Fact::channels)
    return channels_ > 0 ? std::optional<double>(channels_) : std::nullopt;
  if (fact != Fact::target || manifest_ == nullptr) return std::nullopt;
  const std::vector<std::string>& names = manifest_->target_names();
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  const float value = manifest_->target(index_, static_cast<std::size_t>(at - names.begin()));
  return std::isnan(value) ? std::nullopt : std::optional<double>(value);
}

}  // namespace melflow
