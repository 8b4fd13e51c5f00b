// SPDX-License-Identifier: GPL-3.0-or-later
//
// kvscope-cli: the engine without a window.
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include "app/cli/command_line.h"

namespace {

/// A standard stream that is closed would give its number to the next file opened, and what is printed would go there.
void occupyStandardStreams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
            (void)::open("/dev/null", O_RDONLY); // takes the lowest free number; writing to it still fails
}

} // namespace

int main(int argc, char** argv) {
    occupyStandardStreams();
    std::signal(SIGXFSZ, SIG_IGN); // a limit of file size is a failed write, not the end of the program
    return kvscope::cli::runCommandLine(argc, argv);
}
