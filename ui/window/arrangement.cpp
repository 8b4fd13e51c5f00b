// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/arrangement.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>

namespace kvscope::ui {
namespace {

constexpr int kVersion = 1;

} // namespace

WindowClass classOfWidth(int windowWidth) {
    return windowWidth < 1120   ? WindowClass::Minimum
           : windowWidth < 1440 ? WindowClass::Compact
           : windowWidth < 2200 ? WindowClass::Normal
                                : WindowClass::Wide;
}

const char* windowClassName(WindowClass windowClass) {
    switch (windowClass) {
    case WindowClass::Minimum:
        return "minimum";
    case WindowClass::Compact:
        return "compact";
    case WindowClass::Normal:
        return "normal";
    case WindowClass::Wide:
        return "wide";
    }
    return "normal";
}

Arrangement Arrangement::defaultFor(WindowClass windowClass) {
    const QString map = QStringLiteral("map"), curves = QStringLiteral("curves"),
                  sequences = QStringLiteral("sequences");
    Arrangement a;
    switch (windowClass) {
    case WindowClass::Wide:
        a.sideWidth = 288;
        a.cockpitWidth = 1472;
        a.columns = {{{{{map}, 0, 0}, {{sequences}, 0, 300}}, 1000}, {{{{curves}, 0, 0}}, 0}};
        break;
    case WindowClass::Normal:
        a.sideWidth = 248;
        a.cockpitWidth = 762;
        a.columns = {{{{{map}, 0, 412}, {{curves}, 0, 266}, {{sequences}, 0, 0}}, 0}};
        break;
    case WindowClass::Compact:
        a.sideWidth = 212;
        a.cockpitWidth = 546;
        a.columns = {{{{{map}, 0, 466}, {{curves, sequences}, 0, 0}}, 0}};
        break;
    case WindowClass::Minimum:
        a.sideWidth = 248;
        a.cockpitWidth = 388;
        a.columns = {{{{{map, curves, sequences}, 0, 0}}, 0}};
        break;
    }
    return a;
}

std::optional<Arrangement::Place> Arrangement::find(const QString& panel) const {
    for (std::size_t column = 0; column < columns.size(); ++column)
        for (std::size_t cell = 0; cell < columns[column].cells.size(); ++cell) {
            const int tab = int(columns[column].cells[cell].panels.indexOf(panel));
            if (tab >= 0)
                return Place{column, cell, tab};
        }
    return std::nullopt;
}

void Arrangement::complete(const QStringList& panels) {
    const auto known = [&](const QString& panel) { return panels.contains(panel); };
    for (DockColumn& column : columns) {
        for (DockCell& cell : column.cells) {
            cell.panels.removeIf([&](const QString& panel) { return !known(panel); });
            cell.current = std::clamp<int>(cell.current, 0, std::max<int>(0, int(cell.panels.size()) - 1));
        }
        std::erase_if(column.cells, [](const DockCell& cell) { return cell.panels.isEmpty(); });
    }
    std::erase_if(columns, [](const DockColumn& column) { return column.cells.empty(); });
    std::erase_if(floating, [&](const FloatingPanel& f) { return !known(f.panel); });
    hidden.removeIf([&](const QString& panel) { return !known(panel); });
    for (const QString& panel : panels) {
        const bool floats =
            std::any_of(floating.begin(), floating.end(), [&](const FloatingPanel& f) { return f.panel == panel; });
        if (!find(panel) && !floats && !hidden.contains(panel))
            dock(panel);
    }
}

void Arrangement::remove(const QString& panel) {
    if (const auto at = find(panel)) {
        DockCell& cell = columns[at->column].cells[at->cell];
        cell.panels.removeAt(at->tab);
        cell.current = std::clamp<int>(cell.current, 0, std::max<int>(0, int(cell.panels.size()) - 1));
        if (cell.panels.isEmpty())
            columns[at->column].cells.erase(columns[at->column].cells.begin() + std::ptrdiff_t(at->cell));
        if (columns[at->column].cells.empty())
            columns.erase(columns.begin() + std::ptrdiff_t(at->column));
    }
    std::erase_if(floating, [&](const FloatingPanel& f) { return f.panel == panel; });
    hidden.removeAll(panel);
}

void Arrangement::dock(const QString& panel) {
    remove(panel);
    if (columns.empty())
        columns.emplace_back();
    columns.back().cells.push_back({{panel}, 0, 0});
}

void Arrangement::makeFloating(const QString& panel, const QRect& geometry) {
    remove(panel);
    floating.push_back({panel, geometry});
}

void Arrangement::hide(const QString& panel) {
    remove(panel);
    hidden << panel;
}

bool Arrangement::move(const QString& panel, int by) {
    const auto at = find(panel);
    if (!at)
        return false;
    auto& cells = columns[at->column].cells;
    const auto target = std::ptrdiff_t(at->cell) + by;
    if (target >= 0 && target < std::ptrdiff_t(cells.size())) {
        std::swap(cells[at->cell], cells[std::size_t(target)]);
        return true;
    }
    const auto column = std::ptrdiff_t(at->column) + by;
    if (column < 0 || column >= std::ptrdiff_t(columns.size()))
        return false;
    DockCell moved = cells[at->cell];
    cells.erase(cells.begin() + std::ptrdiff_t(at->cell));
    auto& others = columns[std::size_t(column)].cells;
    others.insert(by > 0 ? others.begin() : others.end(), moved);
    if (cells.empty())
        columns.erase(columns.begin() + std::ptrdiff_t(at->column));
    return true;
}

void Arrangement::tabWith(const QString& panel, const QString& other) {
    if (panel == other || !find(other))
        return;
    remove(panel);
    const auto at = find(other);
    DockCell& cell = columns[at->column].cells[at->cell];
    cell.panels << panel;
    cell.current = int(cell.panels.size()) - 1;
}

void Arrangement::untab(const QString& panel) {
    const auto at = find(panel);
    if (!at || columns[at->column].cells[at->cell].panels.size() < 2)
        return;
    DockCell& cell = columns[at->column].cells[at->cell];
    cell.panels.removeAt(at->tab);
    cell.current = 0;
    auto& cells = columns[at->column].cells;
    cells.insert(cells.begin() + std::ptrdiff_t(at->cell) + 1, DockCell{{panel}, 0, 0});
}

QByteArray toJson(const Arrangement& a) {
    QJsonArray columns;
    for (const DockColumn& column : a.columns) {
        QJsonArray cells;
        for (const DockCell& cell : column.cells)
            cells.append(QJsonObject{{QStringLiteral("panels"), QJsonArray::fromStringList(cell.panels)},
                                     {QStringLiteral("current"), cell.current},
                                     {QStringLiteral("height"), cell.height}});
        columns.append(QJsonObject{{QStringLiteral("cells"), cells}, {QStringLiteral("width"), column.width}});
    }
    QJsonArray floating;
    for (const FloatingPanel& f : a.floating)
        floating.append(QJsonObject{{QStringLiteral("panel"), f.panel},
                                    {QStringLiteral("x"), f.geometry.x()},
                                    {QStringLiteral("y"), f.geometry.y()},
                                    {QStringLiteral("width"), f.geometry.width()},
                                    {QStringLiteral("height"), f.geometry.height()}});
    return QJsonDocument(QJsonObject{{QStringLiteral("version"), kVersion},
                                     {QStringLiteral("columns"), columns},
                                     {QStringLiteral("floating"), floating},
                                     {QStringLiteral("hidden"), QJsonArray::fromStringList(a.hidden)},
                                     {QStringLiteral("side_width"), a.sideWidth},
                                     {QStringLiteral("cockpit_width"), a.cockpitWidth}})
        .toJson(QJsonDocument::Compact);
}

namespace {

QStringList strings(const QJsonValue& value) {
    QStringList out;
    for (const QJsonValue entry : value.toArray())
        out << entry.toString();
    return out;
}

} // namespace

std::optional<Arrangement> arrangementFromJson(const QByteArray& json) {
    const QJsonObject object = QJsonDocument::fromJson(json).object();
    if (object.value(QStringLiteral("version")).toInt() != kVersion)
        return std::nullopt;
    Arrangement a;
    a.sideWidth = std::clamp(object.value(QStringLiteral("side_width")).toInt(), 160, 600);
    a.cockpitWidth = std::clamp(object.value(QStringLiteral("cockpit_width")).toInt(), 200, 6000);
    for (const QJsonValue c : object.value(QStringLiteral("columns")).toArray()) {
        DockColumn column;
        column.width = std::max(0, c.toObject().value(QStringLiteral("width")).toInt());
        for (const QJsonValue entry : c.toObject().value(QStringLiteral("cells")).toArray()) {
            const QJsonObject cell = entry.toObject();
            column.cells.push_back({strings(cell.value(QStringLiteral("panels"))),
                                    cell.value(QStringLiteral("current")).toInt(),
                                    std::max(0, cell.value(QStringLiteral("height")).toInt())});
        }
        a.columns.push_back(std::move(column));
    }
    for (const QJsonValue entry : object.value(QStringLiteral("floating")).toArray()) {
        const QJsonObject f = entry.toObject();
        a.floating.push_back({f.value(QStringLiteral("panel")).toString(),
                              QRect(f.value(QStringLiteral("x")).toInt(), f.value(QStringLiteral("y")).toInt(),
                                    std::max(200, f.value(QStringLiteral("width")).toInt()),
                                    std::max(150, f.value(QStringLiteral("height")).toInt()))});
    }
    a.hidden = strings(object.value(QStringLiteral("hidden")));
    return a;
}

} // namespace kvscope::ui
