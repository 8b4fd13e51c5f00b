// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/golden/golden_image.h"

#include <QDir>
#include <algorithm>

namespace kvscope::test {
namespace {

constexpr int kVisible = 85; // of 255
constexpr int kRounding = 3; // scaling and blending round differently on other processors

int distance(QRgb a, QRgb b) {
    return std::max({std::abs(qRed(a) - qRed(b)), std::abs(qGreen(a) - qGreen(b)), std::abs(qBlue(a) - qBlue(b))});
}

QString goldenPath(const QString& name) {
    return QStringLiteral(KVSCOPE_GOLDEN_IMAGES "/%1.png").arg(name);
}

QImage difference(const QImage& actual, const QImage& expected) {
    QImage out = expected.convertToFormat(QImage::Format_RGB32);
    for (int y = 0; y < std::min(out.height(), actual.height()); ++y)
        for (int x = 0; x < std::min(out.width(), actual.width()); ++x) {
            const int gray = qGray(out.pixel(x, y)) / 4 + 180; // what is the same steps back
            out.setPixel(x, y, actual.pixel(x, y) == expected.pixel(x, y) ? qRgb(gray, gray, gray) : qRgb(220, 0, 0));
        }
    return out;
}

} // namespace

ImageDifference compareImages(const QImage& actualImage, const QImage& expectedImage, const QRect& exact) {
    const QImage actual = actualImage.convertToFormat(QImage::Format_RGB32);
    const QImage expected = expectedImage.convertToFormat(QImage::Format_RGB32);
    ImageDifference out;
    if (actual.size() != expected.size()) {
        out.sizes = true;
        return out;
    }
    int outside = 0, outsideOff = 0;
    for (int y = 0; y < actual.height(); ++y)
        for (int x = 0; x < actual.width(); ++x) {
            const int off = distance(actual.pixel(x, y), expected.pixel(x, y));
            if (exact.contains(x, y)) {
                out.pixels += off > kRounding ? 1 : 0;
            } else {
                ++outside;
                outsideOff += off > kVisible ? 1 : 0;
            }
        }
    out.outsideShare = outside > 0 ? double(outsideOff) / outside : 0;
    return out;
}

QImage goldenImage(const QString& name) {
    return QImage(goldenPath(name));
}

bool matchesGolden(const QImage& actual, const QString& name, const QRect& exact, QString* message) {
    if (qEnvironmentVariableIsSet("KVSCOPE_UPDATE_GOLDEN")) {
        *message = QStringLiteral("%1 could not be written").arg(goldenPath(name));
        return actual.save(goldenPath(name));
    }
    const QImage expected = goldenImage(name);
    if (expected.isNull()) {
        *message = QStringLiteral("%1 is missing").arg(goldenPath(name));
        return false;
    }
    const ImageDifference difference_ = compareImages(actual, expected, exact);
    if (difference_.same())
        return true;
    const QDir folder(QStringLiteral(KVSCOPE_GOLDEN_FAILURES));
    folder.mkpath(QStringLiteral("."));
    actual.save(folder.filePath(name + QStringLiteral("-actual.png")));
    expected.save(folder.filePath(name + QStringLiteral("-expected.png")));
    difference(actual, expected).save(folder.filePath(name + QStringLiteral("-diff.png")));
    *message = QStringLiteral("%1: %2 pixels of the map differ, %3 % of the ruler; see %4")
                   .arg(name)
                   .arg(difference_.pixels)
                   .arg(difference_.outsideShare * 100, 0, 'f', 1)
                   .arg(folder.path());
    return false;
}

} // namespace kvscope::test
