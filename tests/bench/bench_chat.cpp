// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the chat view costs: scrolling through a chat of 20,000 tokens (a frame in 16.7 ms at most, memory flat),
// opening a conversation of 2,000 messages and switching the theme (100 ms at most), and the processor time of the GUI
// thread while an answer of rich Markdown arrives at 146 tokens a second in ten flushes. Run it alone on a quiet
// machine, in a release build; by default without a display: QT_QPA_PLATFORM=offscreen. Exit status 1 = a budget is
// broken.
//
//     bench_chat [scroll|open|theme|stream|giant]
#include <QApplication>
#include <QElapsedTimer>
#include <QFile>
#include <QImage>
#include <QScrollBar>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "ui/chat/chat_view.h"
#include "ui/models/chat_model.h"

using namespace kvscope::ui;

namespace {

constexpr double kFrameMs = 16.7, kStallMs = 100, kStreamMs = 10;
constexpr QSize kSize(590, 760);

double threadMilliseconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) * 1e3 + double(time.tv_nsec) * 1e-6;
}

double residentMiB() {
    QFile file(QStringLiteral("/proc/self/statm"));
    if (!file.open(QIODevice::ReadOnly))
        return 0;
    return file.readAll().split(' ').value(1).toDouble() * 4096 / (1 << 20);
}

/// About 250 tokens of everything that an answer has.
QString richPiece(int i) {
    return QString::fromUtf8(
               "## Part %1\n\nThe cache keeps *keys* and **values** of every token in `blocks` of sixteen, so that two "
               "requests which begin alike share what they have in common, and only what differs is computed again. "
               "A block that nobody reads stays where it is until its room is needed by somebody else.\n\n"
               "- a block is full or it is not shared\n- the first difference ends the sharing\n  - even if the rest "
               "is "
               "equal\n- [x] counted\n\n| state | blocks | share |\n|---|--:|--:|\n| cached | 1,984 | 48 %% |\n"
               "| active | 653 | 16 %% |\n\n```python\ndef paged(requests, used, block):\n\treturn requests * "
               "-(-used // block) * block\n\nprint(paged(8, 512, 16))\n```\n\n> Quoted: "
               "分块缓存把每个序列切成固定大小的块。\n\n")
        .arg(i);
}

ChatMessage message(MessageRole role, const QString& text, MessageStatus status = MessageStatus::Done) {
    ChatMessage m;
    m.role = role;
    m.text = text;
    m.status = status;
    if (role == MessageRole::Assistant)
        m.receipt = Receipt{};
    return m;
}

void fill(ChatModel& model, int turns, int pieces) {
    std::vector<ChatMessage> messages;
    for (int i = 0; i < turns; ++i) {
        messages.push_back(message(MessageRole::User, QStringLiteral("What about part %1, and why?").arg(i)));
        QString text;
        for (int p = 0; p < pieces; ++p)
            text += richPiece(i * pieces + p);
        messages.push_back(message(MessageRole::Assistant, text));
    }
    model.setMessages(std::move(messages));
}

struct Times {
    std::vector<double> ms;
    void add(double value) { ms.push_back(value); }
    double at(double share) {
        std::sort(ms.begin(), ms.end());
        return ms[std::size_t(double(ms.size() - 1) * share)];
    }
};

class Bench {
public:
    bool run(const QByteArray& only) {
        const auto wanted = [&](const char* name) { return only.isEmpty() || only == name; };
        if (wanted("scroll"))
            scroll();
        if (wanted("open"))
            open();
        if (wanted("theme"))
            theme();
        if (wanted("stream"))
            stream();
        if (wanted("giant"))
            giant();
        return m_kept;
    }

private:
    void prepare(ChatView& view) {
        view.resize(kSize);
        view.show();
    }
    double paint(ChatView& view) {
        QElapsedTimer timer;
        timer.start();
        view.render(&m_picture);
        return double(timer.nsecsElapsed()) * 1e-6;
    }
    void keep(double value, double budget) { m_kept = m_kept && value <= budget; }

    /// Up through 20,000 tokens, 40 px a frame, and down again; up once more for the memory.
    void scroll() {
        ChatModel model;
        fill(model, 20, 4);
        ChatView view(m_dark);
        prepare(view);
        view.setModel(&model);
        paint(view);
        double resident = 0;
        for (const char* pass : {"up", "down", "up again"}) {
            Times frames;
            QScrollBar* bar = view.verticalScrollBar();
            const int step = pass[0] == 'd' ? 40 : -40;
            for (int value = -1; value != bar->value();) {
                value = bar->value();
                QElapsedTimer timer;
                timer.start();
                bar->setValue(value + step);
                const double moved = double(timer.nsecsElapsed()) * 1e-6;
                frames.add(moved + paint(view));
            }
            std::printf(
                "scroll %-8s %5zu frames: median %.2f ms, 99 %% %.2f ms, longest %.2f ms; %d rows laid out, %.1f MiB\n",
                pass, frames.ms.size(), frames.at(0.5), frames.at(0.99), frames.at(1), view.laidOutRows(),
                residentMiB());
            keep(frames.at(0.99), kFrameMs);
            if (pass[0] == 'd')
                resident = residentMiB();
        }
        keep(residentMiB() - resident, 2);
    }

    void open() {
        ChatModel model;
        fill(model, 1000, 1);
        ChatView view(m_dark);
        prepare(view);
        QElapsedTimer timer;
        timer.start();
        view.setModel(&model);
        paint(view);
        const double ms = double(timer.nsecsElapsed()) * 1e-6;
        timer.restart();
        view.verticalScrollBar()->setValue(0);
        paint(view);
        const double top = double(timer.nsecsElapsed()) * 1e-6;
        timer.restart();
        view.resize(kSize.width() - 60, kSize.height());
        paint(view);
        std::printf("open 2,000 messages: %.1f ms; to the top: %.1f ms; resize: %.1f ms\n", ms, top,
                    double(timer.nsecsElapsed()) * 1e-6);
        keep(std::max(ms, top), kStallMs);
    }

    void theme() {
        ChatModel model;
        fill(model, 1000, 1);
        ChatView view(m_dark);
        prepare(view);
        view.setModel(&model);
        paint(view);
        Times times;
        for (int i = 0; i < 10; ++i) {
            QElapsedTimer timer;
            timer.start();
            view.setTheme(i % 2 == 0 ? m_light : m_dark);
            times.add(double(timer.nsecsElapsed()) * 1e-6 + paint(view));
        }
        std::printf("switch of the theme: median %.1f ms, longest %.1f ms\n", times.at(0.5), times.at(1));
        keep(times.at(1), kStallMs);
    }

    /// 146 tokens a second of four characters, flushed ten times a second; what a second of it costs.
    void stream() {
        for (const bool rich : {true, false}) {
            ChatModel model;
            fill(model, 5, 2);
            ChatView view(m_dark);
            prepare(view);
            view.setModel(&model);
            const int row = model.append(message(MessageRole::Assistant, {}, MessageStatus::Writing));
            QString text;
            for (int i = 0; i < 12; ++i)
                text +=
                    rich ? richPiece(i)
                         : QStringLiteral("and so the words of one long paragraph go on without an end ").repeated(9);
            QCoreApplication::processEvents();
            const double before = threadMilliseconds();
            int flushes = 0;
            for (qsizetype at = 0; at < text.size(); at += 58, ++flushes) {
                model.appendTokens(row, text.mid(at, 58), {}, 146);
                model.flush();
                QCoreApplication::processEvents();
            }
            const double perSecond = (threadMilliseconds() - before) / flushes * 10;
            std::printf("writing %s at 146 tokens/s: %.1f ms of processor time a second\n",
                        rich ? "Markdown" : "one paragraph", perSecond);
            keep(perSecond, kStreamMs);
        }
    }

    /// A message of 1.5 MB, with and without line ends, as an attachment gives it.
    void giant() {
        const QString lines = QStringLiteral("a line of a log file, 48 characters, 0x1234abcd\n").repeated(32'000);
        const QString cases[] = {lines, QStringLiteral("```\n") + lines + QStringLiteral("```"),
                                 QStringLiteral("word ").repeated(300'000)};
        for (const QString& text : cases)
            for (const MessageRole role : {MessageRole::User, MessageRole::Assistant}) {
                ChatModel model;
                ChatView view(m_dark);
                prepare(view);
                view.setModel(&model);
                QElapsedTimer timer;
                timer.start();
                model.append(message(role, text));
                paint(view);
                std::printf("a message of %.1f MB, %s: %.1f ms\n", double(text.size()) * 1e-6,
                            role == MessageRole::User ? "own" : "answer", double(timer.nsecsElapsed()) * 1e-6);
                keep(double(timer.nsecsElapsed()) * 1e-6, role == MessageRole::User ? kStallMs : 10 * kStallMs);
            }
    }

    const Theme m_dark = Theme::load(ThemeKind::Dark), m_light = Theme::load(ThemeKind::Light);
    QImage m_picture{kSize, QImage::Format_ARGB32_Premultiplied};
    bool m_kept = true;
};

} // namespace

int main(int argc, char** argv) {
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM"))
        qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(argc, argv);
    applyTheme(application, Theme::load(ThemeKind::Dark));
    return Bench().run(argc > 1 ? QByteArray(argv[1]) : QByteArray()) ? 0 : 1;
}
