// Bindings for the order in which samples come.
#include <nanobind/stl/vector.h>

#include "apps/python/arrays.h"
#include "apps/python/epoch_order.h"
#include "apps/python/mixing.h"
#include "apps/python/process.h"
#include "apps/python/text_caster.h"

using namespace melflow;

namespace {

// A setting, or what stands in the struct where the dict lacks it.
template <class T>
void set(const nb::dict& from, const char* name, T& to) {
  if (from.contains(name)) to = nb::cast<T>(from[name]);
}

void set(const nb::dict& from, const char* name, std::vector<std::int64_t>& to) {
  if (from.contains(name)) to = copy_of(nb::cast<Numbers>(from[name]));
}

EpochOrder::Recordings together_of(const nb::dict& from) {
  EpochOrder::Recordings out;
  set(from, "together", out.samples);
  set(from, "rows_together", out.rows);
  set(from, "window", out.window);
  return out;
}

EpochOrder::Settings settings_of(const nb::dict& from) {
  EpochOrder::Settings out;
  set(from, "samples", out.samples);
  set(from, "lengths", out.lengths);
  set(from, "places", out.places);
  set(from, "listed", out.listed);
  set(from, "shuffles", out.shuffles);
  set(from, "bucket", out.bucket);
  set(from, "seed", out.seed);
  set(from, "epoch", out.epoch);
  set(from, "size", out.limits.size);
  set(from, "max_rows", out.limits.max_rows);
  set(from, "group", out.limits.ranks);
  set(from, "max_padding", out.limits.max_padding);
  set(from, "ranks", out.ranks);
  set(from, "keeps_groups", out.keeps_groups);
  set(from, "packs", out.packs);
  set(from, "drop_last", out.drop_last);
  set(from, "begin", out.begin);
  set(from, "order", out.order);
  out.together = together_of(from);
  if (from.contains("sources"))
    for (const auto& [name, samples] : nb::cast<nb::dict>(from["sources"]))
      out.sources.push_back({nb::cast<std::string>(name), copy_of(nb::cast<Numbers>(samples))});
  return out;
}

nb::tuple mixed(const nb::list& sources, const Numbers& lengths, const std::string& end,
                std::uint64_t samples, bool repeats, bool shuffles, std::uint64_t seed,
                std::uint64_t epoch) {
  Mix mix;
  for (const auto& one : sources) {
    const auto from = nb::cast<nb::dict>(one);
    MixSource source;
    set(from, "samples", source.samples);
    set(from, "weight", source.weight);
    source.together = together_of(from);
    mix.sources.push_back(std::move(source));
  }
  mix.lengths = copy_of(lengths);
  mix.end = end == "first"  ? Mix::End::with_first
            : end == "last" ? Mix::End::with_last
                            : Mix::End::after;
  mix.samples = samples;
  mix.repeats = repeats;
  mix.shuffles = shuffles;
  mix.seed = seed;
  mix.epoch = epoch;
  MixedOrder out;
  {
    const WithoutLock free;
    out = mixed_order(mix);
  }
  return nb::make_tuple(array(std::move(out.samples)), array(std::move(out.ended)));
}

}  // namespace

void bind_order(nb::module_& m);
void bind_order(nb::module_& m) {
  nb::class_<EpochOrder>(m, "EpochOrder")
      .def(
          "__init__",
          [](EpochOrder* self, const nb::kwargs& settings) {
            EpochOrder::Settings of = settings_of(settings);
            const WithoutLock free;
            new (self) EpochOrder(std::move(of));
          },
          nb::arg("settings"))
      .def("count", &EpochOrder::count)
      // The samples of all batches of all ranks, where lengths matter, and the end of each batch.
      .def("batches", [](const EpochOrder& order) {
        return nb::make_tuple(array(std::vector<std::int64_t>(order.listed())),
                              array(order.listed_ends()));
      });
  m.def("mixed_order", &mixed, nb::arg("sources"), nb::arg("lengths"), nb::arg("end"),
        nb::arg("samples"), nb::arg("repeats"), nb::arg("shuffles"), nb::arg("seed"),
        nb::arg("epoch"));
}
