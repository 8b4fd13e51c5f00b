// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>
#include <QRect>
#include <QString>

namespace kvscope::test {

/// How two pictures differ. Inside `exact` a single pixel of another colour is a difference; outside (ruler text, whose
/// edges depend on the font renderer's version) only a visibly other picture is.
struct ImageDifference {
    bool sizes = false;      ///< other sizes: nothing else was compared
    int pixels = 0;          ///< in `exact`
    double outsideShare = 0; ///< of pixels outside that differ by more than a third of full contrast
    bool same() const { return !sizes && pixels == 0 && outsideShare < 0.02; }
};
ImageDifference compareImages(const QImage& actual, const QImage& expected, const QRect& exact);

/// Compares with images/NAME.png, or writes it when KVSCOPE_UPDATE_GOLDEN is set. On failure actual, expected and diff
/// lie in the build's folder golden-failures, and `message` names it.
bool matchesGolden(const QImage& actual, const QString& name, const QRect& exact, QString* message);
QImage goldenImage(const QString& name);

} // namespace kvscope::test
