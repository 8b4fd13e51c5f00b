// SPDX-License-Identifier: GPL-3.0-or-later
//
// fuzz_chats_seeds FOLDER: a small file of every kind that is read.
#include <fstream>
#include <string>

int main(int argc, char** argv) {
    if (argc != 2)
        return 2;
    const std::string seeds[] = {
        R"({"format":"kvscope-chats","version":1,"conversations":[{"title":"t","title_by_user":true,"created":5,)"
        R"("updated":6,"system_prompt":"s","settings":{"seed":1},"model":"/m","draft":"d","active":3,"messages":[)"
        R"({"id":1,"role":"user","text":"a","status":"complete","created":7,"attachments":[{"name":"n","text":"x"}]},)"
        R"({"id":2,"parent":1,"sibling":1,"role":"assistant","text":"b","text_hex":"ff00","thinking":"c","created":8,)"
        R"("status":"interrupted","finish_reason":"cancelled","tokens":{"tokenizer":"f","ids":[1,2],"end_token":3}},)"
        R"({"id":3,"parent":1,"role":"assistant","text":"e","status":"error","error":"w","created":9,)"
        R"("receipt":{"prompt_tokens":1,"ttft_ms":0.5,"cause":"evicted"}}]}]})",
        R"([{"title":"T","create_time":1.5,"messages":[{"role":"system","content":"s"},{"role":"user","content":)"
        R"([{"type":"text","text":"q"},{"type":"image_url"}]},{"role":"assistant","content":"a","reasoning":"r"}]}])",
        R"({"id":"x","conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}]})",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"1\"}]}\n{\"messages\":[{\"role\":\"user\",\"content\":\"2\"}]}"
        "\n",
        R"([{"role":"user","content":"q"},{"role":"assistant","content":"```\ncode"}])",
        R"([{"title":"m","current_node":"b","mapping":{"a":{"message":{"author":{"role":"user"},"content":{"parts":)"
        R"(["q"]}},"parent":null,"children":["b"]},"b":{"message":{"author":{"role":"assistant"},"content":)"
        R"({"parts":["a"]}},"parent":"a","children":["a"]}}}])",
        "\xEF\xBB\xBF[]",
        "[[[[",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"cut"};
    int number = 0;
    for (const std::string& seed : seeds)
        if (!(std::ofstream(std::string(argv[1]) + "/" + std::to_string(number++) + ".json", std::ios::binary) << seed))
            return 1;
    return 0;
}
