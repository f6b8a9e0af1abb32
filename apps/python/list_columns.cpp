#include "apps/python/list_columns.h"

#include <memory>
#include <utility>

#include "apps/python/text_caster.h"

namespace melflow {

void add_rows(SampleBatch::Rows rows, const std::string& name, const std::string& length,
              nb::dict& out) {
  auto owner = std::make_unique<Buffer>(std::move(rows.data));
  void* data = owner->data();
  out[nb::cast(name)] = array(std::move(owner), data, rows.shape, dtype_of(rows.type));
  if (!rows.lengths.empty()) out[nb::cast(length)] = array(std::move(rows.lengths));
}

void describe(const Manifest& list, const std::vector<std::int64_t>& files, nb::dict& out) {
  nb::list paths, texts, sets;
  std::vector<std::int32_t> labels, splits;
  std::vector<float> targets;
  const std::size_t target_count = list.target_names().size();
  for (const std::int64_t file : files) {
    const auto i = static_cast<std::size_t>(file);
    paths.append(list.name(i));
    splits.push_back(list.split(i));
    if (list.has_label_sets()) {
      const auto set = list.labels(i);
      sets.append(array(std::vector<std::int32_t>(set.begin(), set.end())));
    } else {
      labels.push_back(list.label(i));
    }
    for (std::size_t t = 0; t < target_count; ++t) targets.push_back(list.target(i, t));
  }
  out["path"] = paths;
  if (list.has_label_sets())
    out["labels"] = sets;
  else if (!list.label_names().empty())
    out["label"] = array(std::move(labels));
  if (!list.split_names().empty()) out["split"] = array(std::move(splits));
  if (target_count > 0) out["target"] = array(std::move(targets), {files.size(), target_count});
  for (std::size_t t = 0; t < list.text_names().size(); ++t) {
    nb::list column;
    for (const std::int64_t file : files)
      column.append(std::string(list.text(static_cast<std::size_t>(file), t)));
    out[nb::cast(list.text_names()[t])] = column;
  }
}

}  // namespace melflow
