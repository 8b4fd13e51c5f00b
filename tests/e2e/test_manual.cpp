// SPDX-License-Identifier: GPL-3.0-or-later
//
// Manual pages and shell completion against the programs' own --help, and against the programs that read them.
#include <QFile>
#include <QProcess>
#include <QRegularExpression>
#include <QSet>
#include <QStandardPaths>
#include <QTest>

namespace {

const QString kManual = QStringLiteral(KVSCOPE_MANUAL_DIR "/");

QString textOf(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

QString outputOf(const QString& program, const QStringList& arguments, QByteArray* errors = nullptr) {
    QProcess process;
    process.start(program, arguments);
    if (!process.waitForFinished(60000))
        return {};
    if (errors)
        *errors = process.readAllStandardError();
    return QString::fromUtf8(process.readAllStandardOutput());
}

/// The long options that a text names.
QSet<QString> optionsIn(const QString& text) {
    static const QRegularExpression kOption(QStringLiteral("(?<![\\w-])--[a-z][a-z0-9-]*"));
    QSet<QString> out;
    for (auto it = kOption.globalMatch(text); it.hasNext();)
        out.insert(it.next().captured());
    return out;
}

/// As `kvscope-cli --help` lists them, or the help of a verb that has verbs below it.
QStringList verbsOf(const QString& cli, const QStringList& of = {}) {
    const QString help = outputOf(cli, of + QStringList{"--help"});
    static const QRegularExpression kVerb(QStringLiteral("^  ([a-z]+) "), QRegularExpression::MultilineOption);
    QStringList out;
    if (!help.contains("Subcommands:"))
        return out;
    for (auto it = kVerb.globalMatch(help, help.indexOf("Subcommands:")); it.hasNext();)
        out << it.next().captured(1);
    return out;
}

} // namespace

class TestManual : public QObject {
    Q_OBJECT
private slots:
    void everyOptionOfEveryVerbIsInThePage() {
        QString page = textOf(kManual + "kvscope-cli.1");
        page.replace("\\-", "-");
        const QString cli = QStringLiteral(KVSCOPE_BIN_DIR "/kvscope-cli");
        QSet<QString> known;
        const QStringList verbs = verbsOf(cli);
        QVERIFY(verbs.contains("generate") && verbs.size() >= 7);
        QCOMPARE(verbsOf(cli, {"trace"}), QStringList{"replay"});
        for (const QString& verb : verbs) {
            QVERIFY2(page.contains("\n.SS " + verb + "\n"), qPrintable(verb));
            known.unite(optionsIn(outputOf(cli, {verb, "--help"})));
            for (const QString& below : verbsOf(cli, {verb})) {
                QVERIFY2(page.contains("\n.SS " + verb + " " + below + "\n"), qPrintable(below));
                known.unite(optionsIn(outputOf(cli, {verb, below, "--help"})));
            }
        }
        QVERIFY(known.size() > 40);
        const QSet<QString> described = optionsIn(page);
        QVERIFY2((known - described).isEmpty(), qPrintable(QStringList((known - described).values()).join(' ')));
        const QSet<QString> invented = described - known - QSet<QString>{"--version"};
        QVERIFY2(invented.isEmpty(), qPrintable(QStringList(invented.values()).join(' ')));
    }

    void defaultsAreThoseOfTheProgram() {
        QString page = textOf(kManual + "kvscope-cli.1");
        page.replace("\\-", "-");
        for (const char* line : {"Most tokens of the answer (default: 128)", "(default: 16)", "(default: auto)"})
            QVERIFY2(page.contains(line), line);
    }

    void pagesAreCleanForMan_data() {
        QTest::addColumn<QString>("name");
        for (const char* name : {"kvscope-cli.1", "kvscope.1"})
            if (QFile::exists(kManual + name))
                QTest::newRow(name) << QString(name);
    }
    void pagesAreCleanForMan() {
        QFETCH(QString, name);
        const QString troff = QStandardPaths::findExecutable("groff");
        if (troff.isEmpty())
            QSKIP("groff is not installed.");
        QByteArray warnings;
        QString text = outputOf(troff, {"-man", "-ww", "-Tascii", "-P-c", kManual + name}, &warnings);
        text.remove(QRegularExpression(".\b")); // bold is a letter struck twice
        QVERIFY2(warnings.isEmpty(), warnings.constData());
        for (const char* part : {"NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "--block-size"})
            QVERIFY2(text.contains(part), part);
    }

    void bashCompletesVerbsAndOptions_data() {
        QTest::addColumn<QString>("line");
        QTest::addColumn<QStringList>("words");
        QTest::newRow("verbs") << "kvscope-cli ge" << QStringList{"generate"};
        QTest::newRow("options") << "kvscope-cli generate --temp" << QStringList{"--temperature"};
        QTest::newRow("engine options") << "kvscope-cli logits --num" << QStringList{"--num-blocks"};
        QTest::newRow("not of this verb") << "kvscope-cli inspect --temp" << QStringList{};
    }
    void bashCompletesVerbsAndOptions() {
        QFETCH(QString, line);
        QFETCH(QStringList, words);
        const QString script = "source '" + kManual + "kvscope-cli.bash'; COMP_WORDS=(" + line +
                               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _kvscope_cli; echo \"${COMPREPLY[@]}\"";
        QByteArray errors;
        QCOMPARE(outputOf("bash", {"-c", script}, &errors).trimmed().split(' ', Qt::SkipEmptyParts), words);
        QVERIFY2(errors.isEmpty(), errors.constData());
    }
};

QTEST_GUILESS_MAIN(TestManual)
#include "test_manual.moc"
