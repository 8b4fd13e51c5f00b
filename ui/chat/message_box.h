// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <functional>

#include "ui/theme/apply_theme.h"
#include "ui/theme/icons.h"

class QHBoxLayout;
class QLabel;

namespace kvscope::ui {

/// What happened, then what it costs or what helps, with its buttons: beside the words, or below
/// them where there are more than two. Lies above the messages, never over them.
class MessageBox final : public QFrame, public Themed {
    Q_OBJECT
public:
    enum class Kind { Neutral, Warn, Danger };
    struct Action {
        QString text;
        bool primary = false;
        std::function<void()> run;
    };
    MessageBox(Kind kind, const QString& sentence, const QString& detail, const std::vector<Action>& actions,
               const Theme& theme, QWidget* parent = nullptr);
    void setTheme(const Theme& theme) override;
    QString sentence() const;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Theme m_theme;
    Kind m_kind;
    QLabel* m_sentence;
};

} // namespace kvscope::ui
