#include "apps/python/verb_call.h"

#include <chrono>
#include <utility>

#include "apps/program.h"
#include "pipeline/base/threads.h"

namespace melflow {

VerbCall::VerbCall(std::vector<std::string> arguments, std::string input) {
  check_process();
  thread_ = std::thread([this, arguments = std::move(arguments), input = std::move(input)] {
    name_this_thread(thread_name("verb", 1));
    int status = 0;
    std::exception_ptr thrown;
    try {
      status = run_program(arguments, input, *this);
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    status_ = status;
    thrown_ = std::move(thrown);
    news_.has_ended = true;
    changed_->notify_all();
  });
}

VerbCall::~VerbCall() {
  const WithoutLockIfHeld free;
  stop();
}

void VerbCall::ask_to_stop() {
  const std::lock_guard lock(stopping_);
  is_stopped_ = true;
  if (stop_) stop_();
}

bool VerbCall::is_stopped() {
  const std::lock_guard lock(stopping_);
  return is_stopped_;
}

VerbCall::News VerbCall::wait(double seconds) {
  check_process();
  std::unique_lock lock(mutex_);
  changed_->wait_for(lock, std::chrono::duration<double>(seconds),
                     [this] { return news_.has_ended || !news_.said.empty() || news_.seen; });
  News out = std::exchange(news_, {});
  news_.has_ended = out.has_ended;
  lock.unlock();
  if (out.has_ended) join();
  return out;
}

void VerbCall::stop() {
  if (is_forked_off()) {
    if (thread_.joinable()) thread_.detach();  // a forked process does not have it
    return;
  }
  ask_to_stop();
  join();
}

int VerbCall::status() const {
  if (thrown_) std::rethrow_exception(thrown_);
  return status_;
}

void VerbCall::print(std::FILE* out, const std::string& text) {
  const std::lock_guard lock(mutex_);
  (out == stdout ? printed_ : news_.said) += text;
  if (out != stdout) changed_->notify_all();
}

void VerbCall::show(const Progress& progress, double rows_per_second) {
  const std::lock_guard lock(mutex_);
  news_.seen = {progress, rows_per_second};
  changed_->notify_all();
}

void VerbCall::on_stop(std::function<void()> stop) {
  const std::lock_guard lock(stopping_);
  stop_ = std::move(stop);
  if (is_stopped_ && stop_) stop_();
}

void VerbCall::join() {
  const std::lock_guard one(joining_);
  if (thread_.joinable()) thread_.join();
}

}  // namespace melflow
