#include "tests/apps/process.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace melflow::test {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

Process::Process(const TempFolder& folder, std::vector<std::string> command, const Variables& set,
                 bool terminal)
    : folder_(folder) {
  std::vector<char*> arguments;
  for (std::string& c : command) arguments.push_back(c.data());
  arguments.push_back(nullptr);
  std::string terminal_name;
  if (terminal) {
    terminal_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal_ < 0 || grantpt(terminal_) != 0 || unlockpt(terminal_) != 0)
      throw std::runtime_error("no pseudo terminal");
    winsize size{};
    size.ws_col = 100;
    size.ws_row = 30;
    ioctl(terminal_, TIOCSWINSZ, &size);
    terminal_name = ptsname(terminal_);
  }
  pid_ = fork();
  if (pid_ != 0) return;
  // In the child; failures become exit status 127.
  if (chdir(folder.path().c_str()) != 0) _exit(127);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(open(".stdout", flags, 0666), STDOUT_FILENO);
  dup2(terminal ? open(terminal_name.c_str(), O_RDWR | O_NOCTTY) : open(".stderr", flags, 0666),
       STDERR_FILENO);
  for (const char* name : {"DATA", "OUT"}) unsetenv(name);
  setenv("TERM", "xterm", 1);
  for (const auto& [name, value] : set) setenv(name.c_str(), value.c_str(), 1);
  execv(arguments[0], arguments.data());
  _exit(127);
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (terminal_ >= 0) close(terminal_);
}

void Process::send(int signal) const { kill(pid_, signal); }

void Process::type(const std::string& keys) const {
  if (write(terminal_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size()))
    throw std::runtime_error("the terminal takes no keys");
}

void Process::wait_until(const std::function<bool()>& is_so) const {
  while (!is_so()) {
    siginfo_t ended{};
    // Leaves the child to wait().
    waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (ended.si_pid != 0)
      throw std::runtime_error("the process ended too early: " + read_text(folder_ / ".stderr"));
    std::this_thread::yield();
  }
}

bool Process::has_terminals() {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) return false;
  const bool works = grantpt(terminal) == 0 && unlockpt(terminal) == 0 &&
                     access(ptsname(terminal), R_OK | W_OK) == 0;
  close(terminal);
  return works;
}

// Returns false once nobody has the other side of the terminal open.
bool Process::read_terminal() {
  char buffer[4096];
  const ssize_t n = read(terminal_, buffer, sizeof(buffer));
  if (n > 0) drawn_.append(buffer, static_cast<std::size_t>(n));
  return n > 0;
}

void Process::read_until(const std::string& text) {
  while (drawn_.find(text) == std::string::npos)
    if (!read_terminal()) throw std::runtime_error("it was never drawn: " + text);
}

Ended Process::wait() {
  Ended ended;
  if (terminal_ >= 0) {
    while (read_terminal()) {
    }
    ended.err = drawn_;
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  ended.out = read_text(folder_ / ".stdout");
  if (terminal_ < 0) ended.err = read_text(folder_ / ".stderr");
  return ended;
}

Ended run(const TempFolder& folder, std::vector<std::string> command,
          const Process::Variables& set) {
  return Process(folder, std::move(command), set).wait();
}

Ended exits(int code, Ended ended, std::source_location at) {
  if (ended.code != code)
    ADD_FAIL_AT(at.file_name(), static_cast<int>(at.line()),
                "exit status " << ended.code << " and not " << code << "\n"
                               << ended.out << ended.err);
  return ended;
}

Ended melflow_in(const TempFolder& folder, std::vector<std::string> arguments,
                 const Process::Variables& set) {
  arguments.insert(arguments.begin(), MELFLOW_PROGRAM);
  return run(folder, std::move(arguments), set);
}

}  // namespace melflow::test
