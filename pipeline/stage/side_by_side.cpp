#include "pipeline/stage/side_by_side.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace melflow {

struct SideBySide::Parked {
  // Destroyed after the rows that it covers.
  std::shared_ptr<const Reservation> reservation;
  Piece piece;
  std::int64_t skip = 0;  // rows at the beginning of the data that were passed on
};

// For a stream or a sub-item: the rows of each input that were not passed on yet, by row.
struct SideBySide::Lines {
  Lines(Share& own, const Stream& of, int at, std::size_t inputs)
      : share(own), stream(of), stage(at), parked(inputs), totals(inputs, -1), notes(inputs) {}
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines() {
    const std::lock_guard lock(share.mutex);
    share.lines.erase(this);
  }

  /// The row up to which input number `k` has yielded all rows.
  [[nodiscard]] std::int64_t end_of(std::size_t k) const {
    std::int64_t end = next;
    for (const Parked& p : parked[k]) {
      if (p.piece.first > end) break;
      end = p.piece.first + p.piece.count;
    }
    return end;
  }
  [[nodiscard]] bool knows_all_totals() const {
    return std::find(totals.begin(), totals.end(), -1) == totals.end();
  }
  [[nodiscard]] bool is_uneven() const {
    return knows_all_totals() &&
           std::adjacent_find(totals.begin(), totals.end(), std::not_equal_to<>()) != totals.end();
  }
  void drop_all(std::vector<Parked>& done) {
    for (auto& line : parked) {
      std::move(line.begin(), line.end(), std::back_inserter(done));
      line.clear();
    }
  }
  /// Takes rows [next, end) of input number `k`; appends their reservations to `held`.
  std::vector<Slice> take(std::size_t k, std::int64_t end,
                          std::vector<std::shared_ptr<const Reservation>>& held) {
    std::vector<Slice> out;
    for (auto& line = parked[k]; !line.empty() && line.front().piece.first < end;) {
      Parked& p = line.front();
      if (p.reservation) held.push_back(p.reservation);
      const std::int64_t n = std::min(end - p.piece.first, p.piece.count);
      out.push_back({p.piece.data, p.skip, n});
      p.piece.first += n;
      p.piece.count -= n;
      p.skip += n;
      if (p.piece.count == 0) line.pop_front();
    }
    return out;
  }

  Share& share;
  const Stream& stream;
  const int stage;
  std::vector<std::deque<Parked>> parked;          // per input
  std::vector<std::int64_t> totals;                // stream's rows, per input; -1: not known yet
  std::vector<std::shared_ptr<const void>> notes;  // per input
  std::int64_t next = 0;                           // the next row to pass on
  std::uint64_t given = 0;                         // pieces passed on
  bool ended = false;
  bool is_last = false;  // the stream ends with it
};

// The state of a stream. Its sub-items, possibly many, complete one by one; a completed one takes
// hardly any memory.
struct SideBySide::OfStream final : StageState {
  std::map<std::size_t, Lines> by_sub_item;  // by SubItem::place
};

namespace {

// A block number after all blocks.
constexpr std::uint64_t kNoMore = ~std::uint64_t{0};

// Returns one reservation that keeps all of them.
std::shared_ptr<const Reservation> together(std::vector<std::shared_ptr<const Reservation>> all) {
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.empty()) return nullptr;
  if (all.size() == 1) return all.front();
  const Reservation* any = all.front().get();
  auto owner = std::make_shared<std::vector<std::shared_ptr<const Reservation>>>(std::move(all));
  return {std::move(owner), any};
}

}  // namespace

SideBySide::SideBySide(PortType in, PortType out)
    : ItemStage({.kind = StageKind::transform,
                 .in = in,
                 .out = out,
                 .order = BlockOrder::any,
                 .pairs = true}) {}

SideBySide::Share& SideBySide::share_of(const Stream& stream) {
  return shares_[std::hash<const Stream*>()(&stream) / sizeof(Stream) % shares_.size()];
}

Result<Emission> SideBySide::run(const Item& item, std::unique_ptr<StageState>&,
                                 ItemContext& context) {
  std::vector<Ready> ready;
  std::vector<Parked> done;  // destroyed without a lock, because that may close streams
  for (std::size_t part = 0; part < item.origins->size(); ++part) {
    Piece p = piece(item, part, context.input());
    if (p.data == nullptr) continue;
    add({context.origin(part).reservation, std::move(p)}, part, context, ready, done);
  }
  if (ready.empty()) return Emission{};
  auto origins = std::make_shared<Origins>();
  Emission out = give(std::move(ready), *origins, context);
  out.origins = std::move(origins);
  return out;
}

void SideBySide::add(Parked parked, std::size_t part, ItemContext& context,
                     std::vector<Ready>& ready, std::vector<Parked>& done) {
  const Origin& origin = context.origin(part);
  Share& share = share_of(*origin.stream);
  // Destroyed without the lock, as what they hold may close streams.
  Ready r;
  std::vector<std::shared_ptr<const Reservation>> held;
  std::unique_lock lock(share.mutex);
  std::unique_ptr<StageState>& state = origin.stream->state(context.stage());
  if (!state) state = std::make_unique<OfStream>();
  const std::size_t place = origin.sub_item ? origin.sub_item->place : 0;
  auto& all = static_cast<OfStream&>(*state).by_sub_item;
  const auto [it, is_new] =
      all.try_emplace(place, share, *origin.stream, context.stage(), inputs().size());
  Lines& lines = it->second;
  if (is_new) share.lines.insert(&lines);
  if (context.is_lost(part)) {
    done.push_back(std::move(parked));
    for (auto& [of, lost] : all) lost.drop_all(done);
    return;
  }
  const std::size_t input = context.input();
  if (parked.piece.note && (parked.piece.last || lines.totals[input] < 0))
    lines.notes[input] = std::move(parked.piece.note);
  lines.is_last |= origin.last;
  if (parked.piece.last) lines.totals[input] = parked.piece.first + parked.piece.count;
  if (parked.piece.count > 0) {
    auto& line = lines.parked[input];
    const auto is_later = [](std::int64_t first, const Parked& p) { return first < p.piece.first; };
    line.insert(std::upper_bound(line.begin(), line.end(), parked.piece.first, is_later),
                std::move(parked));
  } else {
    done.push_back(std::move(parked));
  }
  if (lines.is_uneven()) {
    lines.drop_all(done);
    const std::string why = counts(lines);
    lock.unlock();
    return context.fail(part, ItemError::failed(why));
  }
  std::int64_t end = lines.end_of(0);
  for (std::size_t k = 1; k < inputs().size(); ++k) end = std::min(end, lines.end_of(k));
  const bool ends = lines.knows_all_totals() && end == lines.totals.front();
  // All rows may have been passed on before the last block, which is then empty.
  if (lines.ended || (end == lines.next && !ends)) return;
  if (origin.reservation != nullptr) held.push_back(origin.reservation);
  r.part = part;
  r.first = lines.next;
  r.count = end - lines.next;
  for (std::size_t k = 0; k < inputs().size(); ++k) r.inputs.push_back(lines.take(k, end, held));
  r.notes = lines.notes;
  r.origin = {together(held),
              origin.stream,
              place == 0 && lines.given == 0,
              ends && lines.is_last,
              (place << 32) + lines.given,
              origin.sub_item,
              ends};
  ++lines.given;
  lines.next = end;
  lines.ended = ends;
  ready.push_back(std::move(r));
}

// "mel gives 101 rows, other 99"
std::string SideBySide::counts(const Lines& lines) const {
  std::string out;
  for (std::size_t k = 0; k < inputs().size(); ++k)
    out += fmt::format("{} {}{}", k == 0 ? "" : ",", inputs()[k].name,
                       k == 0 ? fmt::format(" gives {} rows", lines.totals[k])
                              : fmt::format(" {}", lines.totals[k]));
  return "its rows do not fit side by side:" + out;
}

bool SideBySide::release_parked() {
  std::vector<Parked> done;
  bool is_any = false;
  for (Share& share : shares_) {
    const std::lock_guard lock(share.mutex);
    for (Lines* lines : share.lines) {
      const bool is_lost = lines->stream.is_lost_to(lines->stage, kNoMore);
      for (std::size_t k = 0; k < lines->parked.size(); ++k) {
        for (Parked& p : lines->parked[k]) {
          if (p.reservation == nullptr) continue;
          is_any = true;
          if (!is_lost) {
            auto own = copy({p.piece.data, p.skip, p.piece.count}, k);
            Parked& rest = done.emplace_back();
            rest = {nullptr, {std::move(own), p.piece.first, p.piece.count, p.piece.last}};
            std::swap(p, rest);
          }
        }
      }
      if (is_lost) lines->drop_all(done);
    }
  }
  return is_any;
}

}  // namespace melflow
