#include "apps/report/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "apps/console.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "pipeline/base/text.h"
#include "pipeline/base/threads.h"

namespace melflow {
namespace {

constexpr std::size_t kLongestName = 18, kCells = 16;
constexpr int kLeastWidth = 40;
constexpr double kIdle = 0.1;  // no node with a smaller share is marked

std::string bar(double share) {
  const auto full = static_cast<std::size_t>(std::lround(share * kCells));
  return std::string(full, '#') + std::string(kCells - full, '.');
}

// Replaces characters whose displayed width may differ from their size in bytes.
std::string plain(const std::string& name) {
  std::string out = one_line(name).substr(0, kLongestName);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

constexpr double kRateWindow = 10;  // [s]
constexpr double kNow = 1;          // window for shares of time [s]
constexpr std::chrono::milliseconds kRedraw{120};
constexpr std::chrono::seconds kPatience{1};  // for a terminal that accepts no output

// Checks, without blocking, whether output is accepted: not by a stopped terminal or a full pipe.
bool takes_text(int fd) {
  pollfd out{fd, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0;
}

struct TerminalSize {
  int columns = 80, rows = 24;
};

TerminalSize terminal_size() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return {size.ws_col, size.ws_row};
}

double share_done(const Ledger::Counts& c) {
  return c.found == 0 ? 0 : static_cast<double>(c.closed()) / static_cast<double>(c.found);
}

// Returns "3.00 MB read", with the rate where it is known: "3.00 MB read, 210 MB/s".
std::string read_text(const Progress& p, double byte_rate) {
  return bytes_text(static_cast<double>(p.bytes)) + " read" +
         (byte_rate > 0 ? fmt::format(", {} MB/s", megabytes_text(byte_rate)) : "");
}

std::string left_text(const Ledger::Counts& c, double rate) {
  if (c.closed() == c.found) return "finishing";
  if (rate <= 0) return "-:-- left";
  return clock_text(static_cast<double>(c.found - c.closed()) / rate) + " left";
}

// Writes terminal codes unescaped; the rest of the text is not from outside.
void steer(const std::string& text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

}  // namespace

std::vector<std::string> stage_lines(const Plan& plan, const RunSample& before,
                                     const RunSample& now, int width) {
  if (now.nodes.size() != plan.nodes.size() || before.nodes.size() != now.nodes.size() ||
      width < kLeastWidth)
    return {};
  std::vector<double> busy;
  std::size_t longest = 0, busiest = 0;
  for (std::size_t i = 0; i < now.nodes.size(); ++i) {
    const StageTime &was = before.nodes[i].time, &is = now.nodes[i].time;
    const double all = is.total() - was.total();
    busy.push_back(all > 0 ? std::clamp((is.busy - was.busy) / all, 0.0, 1.0) : 0);
    if (busy[i] > busy[busiest]) busiest = i;
    longest = std::max(longest, plain(plan.nodes[i].name).size());
  }
  std::vector<std::string> out;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const PlanNode& node = plan.nodes[i];
    std::string line = fmt::format("  {:<{}} {} {:3.0f}% busy", plain(node.name), longest,
                                   bar(busy[i]), 100 * busy[i]);
    if (!node.inputs.empty())
      line += fmt::format(", {}/{} waiting", now.nodes[i].waiting, node.queue);
    if (i == busiest && busy[i] >= kIdle) line += "  <- busiest";
    out.push_back(line.substr(0, static_cast<std::size_t>(width)));
  }
  return out;
}

void RateMeter::add(double seconds, std::size_t count) {
  samples_.emplace_back(seconds, count);
  while (samples_.size() > 2 && samples_[1].first < seconds - kRateWindow) samples_.pop_front();
}

double RateMeter::per_second() const {
  if (samples_.empty()) return 0;
  const auto [now, count] = samples_.back();
  const auto [then, count_then] = samples_.size() > 1 ? samples_.front() : std::pair(0.0, 0UL);
  return now <= then ? 0 : static_cast<double>(count - count_then) / (now - then);
}

std::string bar_line(const Progress& progress, double rate, int width, double byte_rate) {
  const Progress& p = progress;
  const Ledger::Counts& c = p.counts;
  if (c.found == 0) return fmt::format("looking for files, {}", clock_text(p.seconds));
  const double share = share_done(c);
  std::string text =
      fmt::format(" {:3.0f}%  {}{}/{} files  {}/s  {}", 100 * share, p.is_filling ? "loading " : "",
                  count_text(c.closed()), count_text(c.found), rate_text(rate), left_text(c, rate));
  const auto room = [&] { return width - static_cast<int>(text.size()); };
  // The bar keeps its length when the numbers grow.
  const int wanted = width < 100 ? 12 : 24;
  const std::string failed = c.failed == 0 ? "" : fmt::format("  {} failed", count_text(c.failed));
  // No rows are computed while audio is being loaded.
  const std::string rows = p.is_filling ? "" : "  " + plural(p.rows, "row");
  for (const std::string& more : {failed, rows, "  " + read_text(p, byte_rate)})
    if (room() - static_cast<int>(more.size()) >= wanted + 2) text += more;
  const int cells = std::min(room() - 2, wanted);
  if (cells < 4) return text.substr(1, static_cast<std::size_t>(std::max(width, 1)));
  const auto full = static_cast<std::size_t>(share * cells);
  std::string bar(full, '=');
  if (full < static_cast<std::size_t>(cells)) bar += '>';
  bar.resize(static_cast<std::size_t>(cells), ' ');
  return "[" + bar + "]" + text;
}

std::string log_line(const Progress& progress, double rate, double row_rate, double byte_rate) {
  const Progress& p = progress;
  const Ledger::Counts& c = p.counts;
  if (c.found == 0) return fmt::format("looking for files, {} so far", clock_text(p.seconds));
  if (p.is_filling)
    return fmt::format("loading {} of {} files ({:.0f}%), {}, {} files/s, {}",
                       count_text(c.closed()), count_text(c.found), 100 * share_done(c),
                       read_text(p, byte_rate), rate_text(rate), left_text(c, rate));
  return fmt::format(
      "{} of {} files ({:.0f}%), {} failed, {} skipped, {}, {}, {} files/s, {} rows/s, {}",
      count_text(c.closed()), count_text(c.found), 100 * share_done(c), count_text(c.failed),
      count_text(c.skipped), plural(p.rows, "row"), read_text(p, byte_rate), rate_text(rate),
      rate_text(row_rate), left_text(c, rate));
}

ProgressDisplay::Mode ProgressDisplay::suitable_mode() {
  const char* term = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe)
  const bool is_plain = term == nullptr || std::string_view(term) == "dumb";
  return isatty(STDERR_FILENO) == 1 && !is_plain ? Mode::bar : Mode::lines;
}

void ProgressDisplay::start() {
  // If no thread can be started, nothing is shown.
  if (mode_ != Mode::none) (void)add_thread(thread_, "progress", [this] { loop(); });
}

ProgressDisplay::~ProgressDisplay() {
  clear();
  for (std::thread& t : thread_) t.join();
}

void ProgressDisplay::clear() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  erase();
  wake_.notify_all();
}

void ProgressDisplay::say(const std::string& text) {
  const std::unique_lock lock(mutex_, kPatience);
  if (!lock || (console() == nullptr && !takes_text(STDERR_FILENO))) return;
  erase();
  put(stderr, text + "\n");
}

void ProgressDisplay::leave() {
  const std::unique_lock lock(mutex_, kPatience);
  if (lock && takes_text(STDERR_FILENO)) erase();
}

void ProgressDisplay::erase() {
  if (is_drawn_) steer("\r\x1b[J");
  is_drawn_ = false;
}

// Draws with one write, since slow terminals flicker otherwise. Leaves the last column free, as
// some terminals wrap once it is filled. The cursor stays in the bar's line, where erasing starts.
void ProgressDisplay::draw(const Progress& progress) {
  const TerminalSize size = terminal_size();
  samples_.push_back(runner_.sample());
  while (samples_.size() > 2 && samples_[1].seconds < samples_.back().seconds - kNow)
    samples_.pop_front();
  std::vector<std::string> lines =
      stage_lines(runner_.plan(), samples_.front(), samples_.back(), size.columns - 1);
  // Lines that scroll the screen could not be removed again.
  if (static_cast<int>(lines.size()) + 2 > size.rows) lines.clear();
  std::string text =
      "\r" + bar_line(progress, rate_.per_second(), size.columns - 1, byte_rate_.per_second()) +
      "\x1b[K";
  for (const std::string& line : lines) text += "\r\n" + line + "\x1b[K";
  text += "\x1b[J";
  if (!lines.empty()) text += fmt::format("\x1b[{}A\r", lines.size());
  steer(text);
  is_drawn_ = true;
}

void ProgressDisplay::loop() {
  std::unique_lock lock(mutex_);
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::duration<double> kMost{1e9};  // fits into the clock's type
  const auto every = std::chrono::duration_cast<Clock::duration>(std::min(every_, kMost));
  auto next_line = Clock::now() + every;
  while (!wake_.wait_for(lock, kRedraw, [this] { return ended_; })) {
    Progress p = runner_.progress();
    if (std::exchange(was_filling_, p.is_filling) != p.is_filling) {
      if (!p.is_filling && mode_ == Mode::lines)
        put(stderr, fmt::format("loaded after {}, computing\n", clock_text(p.seconds)));
      // The run itself counts from zero again.
      rate_ = row_rate_ = byte_rate_ = {};
      samples_.clear();
      most_rows_ = most_bytes_ = 0;
    }
    if (p.counts.found > 0) rate_.add(p.seconds, p.counts.closed());
    // The counts vanish with the graph, so their maxima are kept.
    p.rows = most_rows_ = std::max(most_rows_, p.rows);
    p.bytes = most_bytes_ = std::max(most_bytes_, p.bytes);
    if (p.counts.found > 0) row_rate_.add(p.seconds, p.rows);
    if (p.counts.found > 0) byte_rate_.add(p.seconds, p.bytes);
    if (Console* host = console()) {
      host->show(p, row_rate_.per_second());
    } else if (mode_ == Mode::bar) {
      draw(p);
    } else if (Clock::now() >= next_line) {
      put(stderr,
          log_line(p, rate_.per_second(), row_rate_.per_second(), byte_rate_.per_second()) + "\n");
      next_line = std::max(next_line + every, Clock::now());
    }
  }
}

}  // namespace melflow
