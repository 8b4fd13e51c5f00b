// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/display.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace kvscope::desktop {
namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

bool answers(const std::string& socketPath, bool abstractName) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socketPath.size() + 2 > sizeof(address.sun_path))
        return false;
    std::memcpy(address.sun_path + (abstractName ? 1 : 0), socketPath.data(), socketPath.size());
    const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return false;
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socketPath.size() + 1);
    const bool ok = ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), length) == 0;
    ::close(descriptor);
    return ok;
}

bool waylandAnswers(const std::string& display) {
    return answers(display.front() == '/' ? display : variable("XDG_RUNTIME_DIR") + "/" + display, false);
}

/// Only local displays (":0", "unix:0") can be asked by their socket; others are taken at their word.
bool x11Answers(const std::string& display) {
    const auto colon = display.find(':');
    if (colon == std::string::npos)
        return false;
    const std::string host = display.substr(0, colon);
    if (!host.empty() && host != "unix")
        return true;
    const std::string number = display.substr(colon + 1, display.find('.', colon) - colon - 1);
    const std::string path = "/tmp/.X11-unix/X" + number;
    return answers(path, true) || answers(path, false);
}

constexpr const char* kInstead = " Start it inside a desktop session, or see it without one: kvscope --demo FOLDER";

} // namespace

std::optional<std::string> displayProblem() {
    if (!variable("QT_QPA_PLATFORM").empty())
        return std::nullopt;
    const std::string wayland = variable("WAYLAND_DISPLAY");
    const std::string x11 = variable("DISPLAY");
    if (wayland.empty() && x11.empty())
        return std::string("There is no display: neither WAYLAND_DISPLAY nor DISPLAY is set.") + kInstead;
    if ((!wayland.empty() && waylandAnswers(wayland)) || (!x11.empty() && x11Answers(x11)))
        return std::nullopt;
    return "The display " + (wayland.empty() ? x11 : wayland) + " does not answer." + kInstead;
}

} // namespace kvscope::desktop
