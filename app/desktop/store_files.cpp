// SPDX-License-Identifier: GPL-3.0-or-later
//
// StoreBridge, second part: files of conversations. Files are read and written by threads of their own; the database is
// only asked by its queue, so that a message of the user passes between two pieces.
#include <algorithm>
#include <utility>

#include "app/desktop/store_bridge.h"
#include "app/desktop/store_rows.h"
#include "engine/store/chat_reader.h"
#include "engine/store/chat_writer.h"

namespace kvscope::desktop {
namespace {

constexpr std::size_t kBatchChats = 50;
constexpr std::size_t kBatchBytes = std::size_t(1) << 20;

store::ChatFormat formatOf(ui::ChatStore::ExportFormat format) {
    switch (format) {
    case ui::ChatStore::ExportFormat::Markdown:
        return store::ChatFormat::Markdown;
    case ui::ChatStore::ExportFormat::Html:
        return store::ChatFormat::Html;
    case ui::ChatStore::ExportFormat::Json:
        return store::ChatFormat::Json;
    }
    return store::ChatFormat::Json;
}

std::size_t bytesOf(const store::ConversationContent& content) {
    std::size_t bytes = 0;
    for (const store::Message& message : content.messages) {
        bytes += message.text.size() + message.thinking.size();
        for (const store::Attachment& attachment : message.attachments)
            bytes += attachment.content.size();
    }
    return bytes;
}

} // namespace

// ---- export ----

struct StoreBridge::Export {
    std::vector<store::ConversationId> conversations;
    std::size_t next = 0;
    store::ChatFormat format = store::ChatFormat::Json;
    QString path;
    Done<ExportReport> done;
    std::unique_ptr<store::ChatWriter> writer; ///< used by one thread at a time
};

void StoreBridge::exportChats(const std::vector<Id>& conversations, ExportFormat format, const QString& path,
                              Done<ExportReport> done) {
    auto job = std::make_shared<Export>();
    job->format = formatOf(format);
    job->path = path;
    job->done = std::move(done);
    for (const Id id : conversations)
        job->conversations.emplace_back(id);
    if (!conversations.empty()) {
        exportNext(job);
        return;
    }
    listConversations([this, job](Result<std::vector<ui::Conversation>> all) {
        if (!all)
            return job->done(tl::unexpected(all.error()));
        // The last used one at the end: importing the file gives the same order again.
        for (auto row = all->rbegin(); row != all->rend(); ++row)
            job->conversations.emplace_back(row->id);
        exportNext(job);
    });
}

/// Reads the next conversation, or ends the file.
void StoreBridge::exportNext(const std::shared_ptr<Export>& job) {
    // `work` runs beside the window; when it fails the export ends with its sentence.
    const auto beside = [this, job](std::function<Result<void>()> work, std::function<void()> then) {
        m_files.start([this, job, work = std::move(work), then = std::move(then)] {
            const Result<void> result = work();
            QMetaObject::invokeMethod(
                this,
                [job, result, then] {
                    if (result)
                        then();
                    else
                        job->done(tl::unexpected(result.error()));
                },
                Qt::QueuedConnection);
        });
    };
    const auto open = [job](const std::string& title) -> Result<void> {
        if (job->writer)
            return {};
        auto writer = store::ChatWriter::create(job->path.toStdString(), job->format, title);
        if (!writer)
            return tl::unexpected(writer.error());
        job->writer = std::move(*writer);
        return {};
    };
    if (job->next == job->conversations.size()) {
        beside([job, open]() { return open("Chats").and_then([&] { return job->writer->finish(); }); },
               [job] {
                   job->done(ExportReport{job->path, job->writer->conversations(), job->writer->messages()});
               });
        return;
    }
    wait(m_thread.loadConversation(job->conversations[job->next++]), [=, this](Result<store::StoreEvent> result) {
        const auto* event = result ? std::get_if<store::ContentEvent>(&*result) : nullptr;
        if (!event)
            return job->done(tl::unexpected(result ? Error{ErrorCode::Internal, "No chat came."} : result.error()));
        auto content = std::make_shared<store::ConversationContent>(event->content);
        const std::string title = job->conversations.size() == 1 ? content->conversation.title : "Chats";
        beside([=] { return open(title).and_then([&] { return job->writer->add(*content); }); },
               [this, job] { exportNext(job); });
    });
}

// ---- import ----

struct StoreBridge::Import {
    QString path;
    Done<ImportReport> done;
    ImportReport report;
    int waiting = 1; ///< batches on their way, and the reading itself
    std::optional<Error> failure;
};

void StoreBridge::importChats(const QString& path, Done<ImportReport> done) {
    auto job = std::make_shared<Import>();
    job->path = job->report.path = path;
    job->done = std::move(done);
    m_files.start([this, job] {
        std::vector<std::pair<store::ConversationContent, std::string>> batch;
        std::size_t bytes = 0;
        const auto send = [&] {
            QMetaObject::invokeMethod(
                this, [this, job, all = std::exchange(batch, {})]() mutable { takeBatch(job, std::move(all)); },
                Qt::QueuedConnection);
            bytes = 0;
        };
        store::ChatReadOptions options;
        options.stop = [this] { return m_ending.load(); };
        auto read = store::readChatFile(
            job->path.toStdString(),
            [&](store::ReadChat&& chat) -> Result<void> {
                bytes += bytesOf(chat.content);
                batch.emplace_back(std::move(chat.content), std::move(chat.fingerprint));
                if (batch.size() >= kBatchChats || bytes >= kBatchBytes)
                    send();
                return {};
            },
            options);
        if (!batch.empty())
            send();
        QMetaObject::invokeMethod(
            this,
            [this, job, read] {
                if (!read) {
                    job->failure = read.error();
                } else {
                    job->report.skippedCount = read->skippedCount;
                    for (const store::SkippedPart& part : read->skipped)
                        job->report.skipped.push_back(
                            {QString::fromStdString(part.what), QString::fromStdString(part.why)});
                }
                endImport(job);
            },
            Qt::QueuedConnection);
    });
}

void StoreBridge::takeBatch(const std::shared_ptr<Import>& job,
                            std::vector<std::pair<store::ConversationContent, std::string>> batch) {
    ++job->waiting;
    std::vector<std::int64_t> sizes;
    for (const auto& [content, fingerprint] : batch)
        sizes.push_back(std::int64_t(content.messages.size()));
    wait(m_thread.adoptConversations(std::move(batch)), [this, job, sizes](Result<store::StoreEvent> result) {
        const auto* event = result ? std::get_if<store::AdoptedEvent>(&*result) : nullptr;
        if (!event)
            job->failure = result ? Error{ErrorCode::Internal, "No outcome came."} : result.error();
        for (std::size_t i = 0; event && i < event->outcomes.size(); ++i) {
            if (!event->outcomes[i].added) {
                ++job->report.alreadyThere;
                continue;
            }
            job->report.added.push_back(event->outcomes[i].id.value());
            job->report.messages += sizes[i];
        }
        endImport(job);
    });
}

void StoreBridge::endImport(const std::shared_ptr<Import>& job) {
    if (--job->waiting > 0)
        return;
    if (job->failure && job->report.added.empty() && job->report.alreadyThere == 0)
        return job->done(tl::unexpected(*job->failure));
    if (job->failure) { // what came before is here all the same
        ++job->report.skippedCount;
        job->report.skipped.push_back({tr("the rest"), QString::fromStdString(job->failure->message)});
    }
    job->done(job->report);
}

} // namespace kvscope::desktop
