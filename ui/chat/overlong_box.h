// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

#include "ui/theme/apply_theme.h"

class QButtonGroup;
class QLabel;
class QVBoxLayout;

namespace kvscope::ui {

class Button;

/// A message that there is no room for: what it needs, and rows to choose from, each with its cost. The button names
/// the choice; nothing is sent or cut before it is pressed. Lies in the composer in place of its foot.
class OverlongBox final : public QWidget, public Themed {
    Q_OBJECT
public:
    struct Choice {
        int id = 0;
        QString text;   ///< "Enlarge the window to 6,144"
        QString cost;   ///< "128 more blocks, chats are read again"
        QString button; ///< "Enlarge and send"
        bool enabled = true;
    };
    explicit OverlongBox(const Theme& theme, QWidget* parent = nullptr);

    /// The first row that can be chosen is chosen.
    void ask(const QString& sentence, const std::vector<Choice>& choices);
    int chosen() const; ///< id of the chosen row; -1 = none
    QString sentence() const;
    const std::vector<Choice>& choices() const { return m_choices; }
    void choose(int id);
    Button* confirmButton() const { return m_confirm; }
    void setTheme(const Theme& theme) override;

signals:
    void confirmed(int id);
    void cancelled();

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    void showChoice();

    Theme m_theme;
    QLabel* m_sentence;
    QVBoxLayout* m_rows;
    QButtonGroup* m_group;
    Button* m_cancel;
    Button* m_confirm;
    std::vector<Choice> m_choices;
};

} // namespace kvscope::ui
