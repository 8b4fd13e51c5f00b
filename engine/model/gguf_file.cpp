// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/model/gguf_file.h"

#include "engine/model/gguf_parser.h"

namespace kvscope::model {

std::string TensorInfo::shape() const {
    std::string text = "[";
    for (std::uint32_t d = 0; d < dimensions; ++d)
        text += (d ? ", " : "") + std::to_string(dims[d]);
    return text + "]";
}

Result<GgufFile> GgufFile::open(const std::string& path) {
    auto window = FileWindow::open(path);
    if (!window)
        return tl::unexpected(window.error());
    GgufFile file(std::move(*window));
    if (auto ok = GgufParser(file).parse(); !ok)
        return tl::unexpected(ok.error());
    return file;
}

const TensorInfo* GgufFile::findTensor(std::string_view name) const {
    const auto it = m_tensorIndex.find(name);
    return it == m_tensorIndex.end() ? nullptr : &m_tensors[it->second];
}

} // namespace kvscope::model
