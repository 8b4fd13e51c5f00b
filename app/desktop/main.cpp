// SPDX-License-Identifier: GPL-3.0-or-later
//
// kvscope: the desktop program.
#include <QApplication>
#include <QDir>
#include <QScreen>
#include <QTemporaryDir>
#include <csignal>
#include <cstdio>

#include "app/desktop/demo.h"
#include "app/desktop/desktop.h"
#include "app/desktop/display.h"
#include "app/desktop/options.h"
#include "app/desktop/single_instance.h"

using namespace kvscope;
using namespace kvscope::desktop;

namespace {

constexpr int kFailed = 1;

int complain(const std::string& sentence) {
    std::fprintf(stderr, "%s\n", sentence.c_str());
    return kFailed;
}

/// A model file of the user's folder for the demo: the one named, or the first.
std::string demoModel(const Options& options, const std::string& modelsFolder) {
    if (!options.engine.modelPath.empty())
        return options.engine.modelPath;
    const QDir folder(QString::fromStdString(modelsFolder));
    const QStringList files = folder.entryList({QStringLiteral("*.gguf")}, QDir::Files, QDir::Name);
    return files.isEmpty() ? std::string() : folder.absoluteFilePath(files.constFirst()).toStdString();
}

int runDemo(Options options) {
    const std::string models = store::DataFolder::unlocked(options.dataDir).modelsPath();
    options.engine.modelPath = demoModel(options, models);
    if (options.engine.modelPath.empty())
        return complain("There is no model in " + models + ": packaging/fetch_model.sh gets one.");
    const QTemporaryDir data;
    if (!data.isValid())
        return complain("No temporary folder can be made: " + data.errorString().toStdString());
    auto folder = store::DataFolder::open(data.path().toStdString());
    if (!folder)
        return complain(folder.error().message);
    Desktop desktop(*folder, models, options.engine);
    const Demo demo(desktop, QString::fromStdString(options.demoFolder));
    desktop.start();
    return QCoreApplication::exec();
}

/// A folder that cannot be made or locked does not end the program: the window says why, and what helps.
int runWindow(const Options& options) {
    auto held = store::DataFolder::open(options.dataDir);
    const store::DataFolder folder = held ? std::move(*held) : store::DataFolder::unlocked(options.dataDir);
    const QString socket = QString::fromStdString(folder.socketPath());
    if (!held && held.error().code == ErrorCode::Busy && SingleInstance::raiseOther(socket))
        return 0; // the window that is open already has been raised
    Desktop desktop(folder, folder.modelsPath(), options.engine);
    SingleInstance instance;
    if (folder.locked())
        instance.listen(socket);
    else
        QObject::connect(
            &desktop, &Desktop::storeOpened, &instance,
            [&instance, socket, database = QString::fromStdString(folder.databasePath())](const QString& path) {
                if (path == database) // the folder is ours by now
                    instance.listen(socket);
            });
    QObject::connect(&instance, &SingleInstance::raiseRequested, &desktop, &Desktop::raiseWindow);
    // Not every desktop makes a window smaller that its screen cannot hold.
    ui::MainWindow& window = desktop.window();
    window.resize(window.size().boundedTo(window.screen()->availableSize()));
    desktop.start();
    return QCoreApplication::exec();
}

} // namespace

int main(int argc, char** argv) {
    std::signal(SIGXFSZ, SIG_IGN); // a limit of file size is a failed write, not the end of the program
    Options options;
    if (const auto end = parseOptions(argc, argv, options)) {
        std::fputs(end->text.c_str(), end->status == 0 ? stdout : stderr);
        return end->status;
    }
    if (!options.demoFolder.empty() && !qEnvironmentVariableIsSet("QT_QPA_PLATFORM"))
        qputenv("QT_QPA_PLATFORM", "offscreen"); // the demo shows itself by its screenshot
    if (const auto problem = displayProblem())
        return complain(*problem);
    int noArguments = 1; // ours are read already; Qt gets only the name
    QApplication application(noArguments, argv);
    QApplication::setApplicationName(QStringLiteral("kvscope"));
    QApplication::setApplicationDisplayName(QString());
    QApplication::setApplicationVersion(QStringLiteral(KVSCOPE_VERSION));
    QApplication::setDesktopFileName(QStringLiteral("kvscope"));
    return options.demoFolder.empty() ? runWindow(options) : runDemo(options);
}
