#include "stages/model_files/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include "pipeline/base/text.h"
#include "pipeline/options/option_type.h"

namespace melflow {
namespace {

using List = Term::List;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

double number_of(const Term& term) {
  if (const double* number = term.number()) return *number;
  if (const bool* truth = term.truth()) return *truth ? 1 : 0;
  throw ExpressionError("a number is needed");
}

// Applies a function to a number, or to each number of a list.
template <class F>
Term mapped(const Term& term, F function) {
  if (term.list() == nullptr) return function(number_of(term));
  List out = *term.list();
  std::transform(out.begin(), out.end(), out.begin(), function);
  return out;
}

std::string text_of(const Term& term) {
  return term.text() != nullptr ? *term.text() : number_text(number_of(term));
}

double power_of_two(double least) {
  if (!(least >= 1) || least > (1 << 24))
    throw ExpressionError("a length from 1 to 2^24 is needed");
  return static_cast<double>(std::bit_ceil(static_cast<unsigned>(std::ceil(least))));
}

// A number, or the name of a limit of torch.finfo(float32).
Term limit_or_number(const Term& term) {
  if (term.text() == nullptr) return number_of(term);
  if (*term.text() == "tiny") return static_cast<double>(std::numeric_limits<float>::min());
  if (*term.text() == "eps") return static_cast<double>(std::numeric_limits<float>::epsilon());
  throw ExpressionError("known are tiny, eps and numbers");
}

// A rate [Hz] as humanfriendly reads it: 16000, 16k, "22.05k".
Term hertz(const Term& term) {
  if (term.text() == nullptr) return number_of(term);
  double number = 0;
  const std::string& text = *term.text();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || !(unit.empty() || unit == "k" || unit == "kHz" || unit == "K"))
    throw ExpressionError("a rate such as 16000 or 16k is needed");
  return std::round(unit.empty() ? number : 1000 * number);
}

const List& list_in(const Term& term) {
  if (term.list() == nullptr) throw ExpressionError("a list of numbers is needed");
  return *term.list();
}

// The first numbers of a list.
List head(const Term& term, double count) {
  const List& all = list_in(term);
  if (!(count >= 1) || count > static_cast<double>(all.size()))
    throw ExpressionError("a longer list is needed");
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
}

// Whether a list is its first numbers over and over.
bool repeats(const Term& term, double period) {
  const List& all = list_in(term);
  const auto n = static_cast<std::size_t>(std::max(1.0, period));
  for (std::size_t i = n; i < all.size(); ++i)
    if (all[i] != all[i - n]) return false;
  return true;
}

struct Function {
  std::string_view name;
  Term (*of_one)(const Term&);
};

constexpr Function kFunctions[] = {
    {"int", [](const Term& x) -> Term { return std::trunc(number_of(x)); }},
    {"round", [](const Term& x) -> Term { return std::nearbyint(number_of(x)); }},  // as Python's
    {"ceil", [](const Term& x) -> Term { return std::ceil(number_of(x)); }},
    {"abs", [](const Term& x) -> Term { return std::abs(number_of(x)); }},
    {"ln", [](const Term& x) -> Term { return std::log(number_of(x)); }},
    // The least power of two that is not less.
    {"pow2", [](const Term& x) -> Term { return power_of_two(number_of(x)); }},
    {"float32", limit_or_number},
    {"hertz", hertz},
    // Lengths and levels as an option is written: "30s".
    {"s", [](const Term& x) -> Term { return text_of(x) + "s"; }},
    {"dB", [](const Term& x) -> Term { return text_of(x) + "dB"; }},
    {"inverse", [](const Term& x) { return mapped(x, [](double v) { return 1 / v; }); }},
    {"size",
     [](const Term& x) -> Term {
       return x.list() != nullptr ? static_cast<double>(x.list()->size()) : 1.0;
     }},
};

// The first matching text of pairs 'theirs', 'ours'; a name by itself is the same in both.
Term picked(const std::vector<Term>& given) {
  if (given.front().text() == nullptr) throw ExpressionError("a text is needed");
  std::string all;
  for (std::size_t i = 1; i + 1 < given.size(); i += 2) {
    if (given[i] == given.front()) return given[i + 1];
    all += (all.empty() ? "" : ", ") + *given[i].text();
  }
  throw ExpressionError("known are " + all);
}

// Whether a version is older: "1.9" than "1.23".
bool is_before(std::string_view a, std::string_view b) {
  const auto next = [](std::string_view& rest) {
    int number = 0;
    std::from_chars(rest.data(), rest.data() + rest.size(), number);
    rest.remove_prefix(std::min(rest.find('.'), rest.size() - 1) + 1);
    return number;
  };
  while (!a.empty() || !b.empty()) {
    const int of_a = a.empty() ? 0 : next(a), of_b = b.empty() ? 0 : next(b);
    if (of_a != of_b) return of_a < of_b;
  }
  return false;
}

Term called(std::string_view name, const std::vector<Term>& given) {
  if (name == "pick" && !given.empty()) return picked(given);
  if (given.size() == 2 && (name == "max" || name == "min")) {
    const double a = number_of(given[0]), b = number_of(given[1]);
    return name == "max" ? std::max(a, b) : std::min(a, b);
  }
  if (given.size() == 2 && name == "before") return is_before(text_of(given[0]), text_of(given[1]));
  if (given.size() == 2 && name == "head") return head(given[0], number_of(given[1]));
  if (given.size() == 2 && name == "repeats") return repeats(given[0], number_of(given[1]));
  const auto* at = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                [name](const Function& f) { return f.name == name; });
  if (at == std::end(kFunctions) || given.empty())
    throw ExpressionError("there is no function " + excerpt(name) + " here");
  return at->of_one(given.front());
}

// One operand of an operator may be a list; both may be lists of the same length.
template <class F>
Term combined(const Term& a, const Term& b, F function) {
  if (b.list() == nullptr) {
    const double right = number_of(b);
    return mapped(a, [&](double left) { return function(left, right); });
  }
  if (a.list() == nullptr) {
    const double left = number_of(a);
    return mapped(b, [&](double right) { return function(left, right); });
  }
  if (a.list()->size() != b.list()->size())
    throw ExpressionError("lists of the same length are needed");
  List out;
  std::transform(a.list()->begin(), a.list()->end(), b.list()->begin(), std::back_inserter(out),
                 function);
  return out;
}

double divided(double a, double b) {
  if (b == 0) throw ExpressionError("it would be divided by 0");
  return a / b;
}

double remainder_of(double a, double b) { return a - std::floor(divided(a, b)) * b; }

class Parser {
 public:
  Parser(std::string_view text, const Names& names)
      : rest_(text), names_(names), has_choices_(text.find(" if ") != text.npos) {}

  Term whole() {
    Term out = choice();
    skip();
    if (!rest_.empty()) wrong();
    return out;
  }

 private:
  // How deep parentheses and signs may be nested, in texts of files.
  struct Depth {
    explicit Depth(int& of) : of_(of) {
      constexpr int kMost = 100;
      if (++of_ > kMost) throw ExpressionError("too many parentheses");
    }
    ~Depth() { --of_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    int& of_;
  };

  [[noreturn]] void wrong() const {
    throw ExpressionError(rest_.empty() ? "this is no whole expression"
                                        : "this is no expression from '" + excerpt(rest_) + "' on");
  }

  void skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  bool take(std::string_view token) {
    skip();
    if (!rest_.starts_with(token)) return false;
    // "int" does not begin with the word "in", nor "**" with "*".
    if (is_letter(token.front()) && rest_.size() > token.size() &&
        (is_letter(rest_[token.size()]) || is_digit(rest_[token.size()])))
      return false;
    if ((token == "*" || token == "/") && rest_.substr(1).starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  Term choice() {
    const Depth depth(depth_);
    if (!has_choices_ || is_skipped_) {
      Term out = any();
      if (take("if")) skip_choice();
      return out;
    }
    // The condition is behind the first value.
    const std::string_view first = rest_;
    is_skipped_ = true;
    any();
    is_skipped_ = false;
    if (!take("if")) {
      rest_ = first;
      return any();
    }
    if (!any().holds()) {
      if (!take("else")) wrong();
      return choice();
    }
    skip_else();
    const std::string_view end = rest_;
    rest_ = first;
    Term out = any();
    rest_ = end;
    return out;
  }
  void skip_choice() {
    any();
    skip_else();
  }
  void skip_else() {
    if (!take("else")) wrong();
    unless(true, [this] { return choice(); });
  }
  // Evaluates what is next, or only passes it.
  template <class F>
  Term unless(bool is_passed, F next) {
    const bool was_skipped = std::exchange(is_skipped_, is_skipped_ || is_passed);
    Term out = next();
    is_skipped_ = was_skipped;
    return out;
  }
  Term any() {
    Term out = all();
    while (take("or")) {
      const bool is_decided = out.holds();
      Term other = unless(is_decided, [this] { return all(); });
      if (!is_decided) out = std::move(other);
    }
    return out;
  }
  Term all() {
    Term out = negation();
    while (take("and")) {
      const bool is_decided = !out.holds();
      Term other = unless(is_decided, [this] { return negation(); });
      if (!is_decided) out = std::move(other);
    }
    return out;
  }
  Term negation() {
    const Depth depth(depth_);
    return take("not") ? Term(!negation().holds()) : comparison();
  }
  Term comparison() {
    Term a = sum();
    if (take("==")) return a == sum();
    if (take("!=")) return !(a == sum());
    if (take("<=")) return compared(a, sum(), std::less_equal<>());
    if (take(">=")) return compared(a, sum(), std::greater_equal<>());
    if (take("<")) return compared(a, sum(), std::less<>());
    if (take(">")) return compared(a, sum(), std::greater<>());
    return a;
  }
  template <class F>
  [[nodiscard]] Term compared(const Term& a, const Term& b, F function) const {
    return is_skipped_ ? Term() : Term(function(number_of(a), number_of(b)));
  }
  template <class F>
  [[nodiscard]] Term computed(const Term& a, const Term& b, F function) const {
    return is_skipped_ ? Term() : combined(a, b, function);
  }
  Term sum() {
    Term out = product();
    for (;;) {
      if (take("+"))
        out = computed(out, product(), std::plus<>());
      else if (take("-"))
        out = computed(out, product(), std::minus<>());
      else
        return out;
    }
  }
  Term product() {
    Term out = sign();
    for (;;) {
      if (take("*"))
        out = computed(out, sign(), std::multiplies<>());
      else if (take("//"))
        out = computed(out, sign(), [](double a, double b) { return std::floor(divided(a, b)); });
      else if (take("/"))
        out = computed(out, sign(), divided);
      else if (take("%"))
        out = computed(out, sign(), remainder_of);
      else
        return out;
    }
  }
  Term sign() {
    const Depth depth(depth_);
    if (take("-")) return computed(Term(0.0), sign(), std::minus<>());
    Term base = atom();
    if (take("**"))
      return computed(base, sign(), [](double a, double b) { return std::pow(a, b); });
    return base;
  }
  Term atom() {
    skip();
    if (rest_.empty()) wrong();
    if (take("(")) {
      Term out = choice();
      if (!take(")")) wrong();
      return out;
    }
    if (rest_.front() == '\'') {
      const std::size_t end = rest_.find('\'', 1);
      if (end == rest_.npos) wrong();
      std::string text(rest_.substr(1, end - 1));
      rest_.remove_prefix(end + 1);
      return text;
    }
    if (is_digit(rest_.front())) {
      double number = 0;
      const auto read = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
      rest_.remove_prefix(static_cast<std::size_t>(read.ptr - rest_.data()));
      return number;
    }
    if (!is_letter(rest_.front())) wrong();
    std::size_t end = 1;
    while (end < rest_.size() &&
           (is_letter(rest_[end]) || is_digit(rest_[end]) || rest_[end] == '.'))
      ++end;
    const std::string_view name = rest_.substr(0, end);
    rest_.remove_prefix(end);
    if (!rest_.starts_with('(')) return constant_or_key(name);
    rest_.remove_prefix(1);
    std::vector<Term> given;
    while (!take(")")) {
      given.push_back(choice());
      take(",");
    }
    return is_skipped_ ? Term() : called(name, given);
  }
  Term constant_or_key(std::string_view name) {
    if (name == "none") return {};
    if (name == "true") return true;
    if (name == "false") return false;
    return is_skipped_ ? Term() : names_(name);
  }

  std::string_view rest_;
  const Names& names_;
  bool has_choices_ = false, is_skipped_ = false;
  int depth_ = 0;
};

}  // namespace

bool Term::holds() const {
  if (const bool* value = truth()) return *value;
  if (const double* value = number()) return *value != 0;
  if (const std::string* value = text()) return !value->empty();
  return list() != nullptr && !list()->empty();
}

Term evaluate(std::string_view expression, const Names& names) {
  return Parser(expression, names).whole();
}

}  // namespace melflow
