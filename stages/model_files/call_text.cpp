// Calls of torchaudio and librosa as text, of which nothing is executed: names, numbers, texts,
// lists, None, True, False, dict(...) and {...}.
#include <fmt/format.h>

#include <algorithm>

#include "pipeline/base/text.h"
#include "stages/model_files/front_end_class.h"
#include "stages/model_files/model_formats.h"

namespace melflow {
namespace {

constexpr std::size_t kLongestCall = 10'000;
constexpr int kDeepest = 20;

struct CallError {
  std::string what;
};

class CallParser {
 public:
  CallParser(std::string_view text, Mark mark) : rest_(text), mark_(std::move(mark)) {}

  std::string name() {
    skip();
    const std::size_t end = std::min(rest_.find_first_not_of(kInNames), rest_.size());
    std::string out(rest_.substr(0, end));
    rest_.remove_prefix(end);
    if (out.empty()) wrong();
    return out;
  }

  // What is in the parentheses: by position, then by name.
  std::pair<std::vector<Value>, Value> arguments() {
    std::vector<Value> by_position;
    Value by_name = Value::map({}, mark_);
    require('(');
    while (!take(')')) {
      const std::string_view before = rest_;
      std::string key;
      skip();
      if (!rest_.empty() && std::isalpha(static_cast<unsigned char>(rest_.front())) != 0)
        key = name();
      if (!key.empty() && take('=')) {
        if (by_name.find(key) != nullptr) throw CallError{excerpt(key) + " is given twice"};
        by_name.set(key, value());
      } else {
        rest_ = before;
        by_position.push_back(value());
      }
      if (!take(',') && !(skip(), rest_.starts_with(')'))) wrong();
    }
    return {std::move(by_position), std::move(by_name)};
  }

  void end() {
    skip();
    if (!rest_.empty()) wrong();
  }

 private:
  static constexpr const char* kInNames =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

  [[noreturn]] void wrong() const {
    throw CallError{rest_.empty() ? std::string("it ends too early")
                                  : fmt::format("'{}' is no argument", excerpt(rest_, 40))};
  }
  void skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  bool take(char c) {
    skip();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void require(char c) {
    if (!take(c)) wrong();
  }

  Value value() {
    if (++depth_ > kDeepest) throw CallError{"it is nested too deeply"};
    Value out = any_value();
    --depth_;
    return out;
  }

  Value any_value() {
    skip();
    if (rest_.empty()) wrong();
    const char c = rest_.front();
    if (c == '\'' || c == '"') {
      const std::size_t end = rest_.find(c, 1);
      if (end == rest_.npos) wrong();
      std::string text(rest_.substr(1, end - 1));
      rest_.remove_prefix(end + 1);
      return Value::scalar(std::move(text), mark_, true);
    }
    if (take('{')) return map();
    if (take('[')) return list(']');
    if (take('(')) return list(')');
    if (c == '-' || c == '+' || c == '.' || std::isdigit(static_cast<unsigned char>(c)) != 0) {
      std::size_t end = std::min(rest_.find_first_not_of("0123456789.eE_+-"), rest_.size());
      std::string text(rest_.substr(0, end));
      std::erase(text, '_');
      if (text.ends_with('.')) text += '0';
      if (text.starts_with('.')) text = "0" + text;
      rest_.remove_prefix(end);
      return Value::scalar(std::move(text), mark_);
    }
    const std::string word = name();
    if (word == "None") return {};
    if (word == "True" || word == "False")
      return Value::scalar(word == "True" ? "true" : "false", mark_);
    skip();
    if (!rest_.starts_with('(')) return Value::scalar(word, mark_, true);  // torch.hann_window
    if (word != "dict") throw CallError{fmt::format("{}(...) is not executed", excerpt(word))};
    auto [by_position, by_name] = arguments();
    if (!by_position.empty()) wrong();
    return std::move(by_name);
  }

  Value map() {
    Value out = Value::map({}, mark_);
    while (!take('}')) {
      const Value key = value();
      if (!key.is_scalar() || !key.quoted()) wrong();
      require(':');
      if (out.find(key.text()) != nullptr) throw CallError{excerpt(key.text()) + " is given twice"};
      out.set(key.text(), value());
      if (!take(',') && !(skip(), rest_.starts_with('}'))) wrong();
    }
    return out;
  }

  Value list(char end) {
    std::vector<Value> items;
    while (!take(end)) {
      items.push_back(value());
      if (!take(',') && !(skip(), rest_.starts_with(end))) wrong();
    }
    return Value::list(std::move(items), mark_);
  }

  std::string_view rest_;
  Mark mark_;
  int depth_ = 0;
};

// The function or class, by the end of its name: torchaudio.transforms.MFCC, T.MFCC, MFCC.
struct Called {
  const FrontEndFamily* family = nullptr;
  const FrontEndClass* of = nullptr;
};

Called target_of(const std::string& name) {
  const std::string last = name.substr(name.rfind('.') + 1);
  for (const FrontEndFamily* family : {&kTorchaudio, &kLibrosa})
    for (const FrontEndClass& of : family->classes)
      if (of.name == last) return {family, &of};
  return {};
}

// The names of arguments that may be given by position, in their order.
std::vector<std::string> names_in_order(const Called& to) {
  std::vector<std::string> out;
  // torchaudio.compliance.kaldi's functions take the waveform first, librosa's the samples by name.
  if (to.of->name == "fbank") out.emplace_back();
  for (std::string_view rest = to.of->keys; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view key = rest.substr(0, rest.find_first_of(":="));
    if (end > 0 && key.find('.') == key.npos) out.emplace_back(key);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

}  // namespace

std::optional<ModelInstance> call_instance(const std::string& text, const Mark& mark,
                                           Problems& problems) {
  ModelInstance out;
  out.mark = mark;
  try {
    if (text.size() > kLongestCall) throw CallError{"it is too long"};
    CallParser parser(text, mark);
    const std::string name = parser.name();
    const Called to = target_of(name);
    if (to.of == nullptr)
      throw CallError{
          fmt::format("{} is no call that is known here; known are MelSpectrogram, MFCC "
                      "and kaldi.fbank of torchaudio, melspectrogram and mfcc of "
                      "librosa",
                      excerpt(name))};
    out.family = to.family;
    out.class_name = to.of->name;
    auto [by_position, by_name] = parser.arguments();
    parser.end();
    const bool is_librosa = to.family == &kLibrosa;
    if (is_librosa && !by_position.empty()) by_position.erase(by_position.begin());
    if (is_librosa && !by_position.empty())
      throw CallError{"arguments behind the samples are given by name, sr=16000"};
    const std::vector<std::string> names = names_in_order(to);
    if (by_position.size() > names.size()) throw CallError{"it has too many arguments"};
    out.keys = std::move(by_name);
    for (const char* samples : {"y", "waveform"})
      std::erase_if(out.keys.entries(), [&](const Value::Entry& e) { return e.key == samples; });
    for (std::size_t i = 0; i < by_position.size(); ++i) {
      if (names[i].empty()) continue;
      if (out.keys.find(names[i]) != nullptr) throw CallError{names[i] + " is given twice"};
      out.keys.entries().push_back({names[i], by_position[i], mark});
    }
  } catch (const CallError& error) {
    problems.add(mark, fmt::format("{}: {}", excerpt(text), error.what));
  }
  return out;
}

}  // namespace melflow
