// The verbs of the program. Each adds its subcommand with its options to `app`; when that one is
// chosen, `action` becomes what it does. An action returns the exit status.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace melflow {

using Action = std::function<int()>;

void add_run(CLI::App& app, Action& action);
void add_update(CLI::App& app, Action& action);
void add_validate(CLI::App& app, Action& action);
void add_graph(CLI::App& app, Action& action);
void add_stages(CLI::App& app, Action& action);
void add_init(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_show(CLI::App& app, Action& action);
void add_verify_parity(CLI::App& app, Action& action);

/// The whole program, whatever stages are linked in.
int run_program(int argc, char** argv);

}  // namespace melflow
