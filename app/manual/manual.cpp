// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/manual/manual.h"

#include <algorithm>

namespace kvscope::manual {

namespace {

constexpr const char* kShared = "Engine";

/// Text as troff prints it: its escape character, hyphens that are minus signs, control characters at a line's start.
std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        const bool lineStart = out.empty() || out.back() == '\n';
        if (lineStart && (c == '.' || c == '\''))
            out += "\\&";
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
    }
    return out;
}

bool isShown(const CLI::Option* option) {
    return !option->get_group().empty();
}

std::vector<const CLI::Option*> shownOptions(const CLI::App& app) {
    return app.get_options(isShown);
}

std::vector<const CLI::App*> verbsOf(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App* verb) { return !verb->get_name().empty(); });
}

/// "-h, --help", or the name of what stands without one.
std::string namesOf(const CLI::Option& option) {
    std::string out;
    const auto add = [&](const std::string& name) { out += (out.empty() ? "" : ", ") + name; };
    for (const std::string& name : option.get_snames())
        add("-" + name);
    for (const std::string& name : option.get_lnames())
        add("--" + name);
    return out.empty() ? option.get_name(true) : out;
}

bool takesValue(const CLI::Option& option) {
    return option.get_items_expected_max() > 0;
}

void putOption(std::string& out, const CLI::Option& option) {
    out += ".TP\n.B " + escaped(namesOf(option)) +
           (takesValue(option) ? " \\fI" + escaped(option.get_type_name()) : "") + "\n" +
           escaped(option.get_description());
    if (!option.get_default_str().empty())
        out += escaped(" (default: " + option.get_default_str() + ")");
    if (option.get_required())
        out += " (required)";
    out += "\n";
}

void putSection(std::string& out, const std::string& title, const std::string& text) {
    out += ".SH " + escaped(title) + "\n";
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find("\n\n", at), text.size());
        out += (at == 0 ? "" : ".PP\n") + escaped(text.substr(at, end - at)) + "\n";
        at = end + 2;
    }
}

/// A verb and the verbs below it ("export", "export log"); `before` are the words in front of its name.
void putVerb(std::string& out, const CLI::App& verb, const std::string& before = "") {
    const std::string name = before + verb.get_name();
    out += ".SS " + escaped(name) + "\n" + escaped(verb.get_description() + ".") + "\n";
    bool shared = false;
    for (const CLI::Option* option : shownOptions(verb)) {
        if (option->get_group() == kShared)
            shared = true;
        else if (option != verb.get_help_ptr())
            putOption(out, *option);
    }
    if (shared)
        out += ".PP\nAnd the engine options, below.\n";
    for (const CLI::App* below : verbsOf(verb))
        putVerb(out, *below, name + " ");
}

/// Options of the engine, from the first verb that has them.
void putShared(std::string& out, const CLI::App& app) {
    for (const CLI::App* verb : verbsOf(app)) {
        std::string options;
        for (const CLI::Option* option : shownOptions(*verb))
            if (option->get_group() == kShared)
                putOption(options, *option);
        if (options.empty())
            continue;
        out += ".SH ENGINE OPTIONS\n" + options;
        return;
    }
}

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words)
        out += (out.empty() ? "" : " ") + word;
    return out;
}

std::vector<std::string> wordsOf(const CLI::App& app) {
    std::vector<std::string> words;
    for (const CLI::Option* option : shownOptions(app))
        for (const std::string& name : option->get_lnames())
            words.push_back("--" + name);
    return words;
}

} // namespace

std::string manualPage(const CLI::App& app, const Page& page) {
    const std::vector<const CLI::App*> verbs = verbsOf(app);
    std::string out = ".TH " + escaped(page.name) + " 1 \"\" \"" + escaped("KVScope " + page.version) +
                      "\" \"User Commands\"\n.SH NAME\n" + escaped(page.name) + " \\- " + escaped(page.summary) +
                      "\n.SH SYNOPSIS\n.B " + escaped(page.name) + "\n" +
                      (verbs.empty() ? "[\\fIOPTIONS\\fR]\n" : "\\fIVERB\\fR [\\fIOPTIONS\\fR]\n");
    putSection(out, "DESCRIPTION", app.get_description());
    out += ".SH OPTIONS\n";
    for (const CLI::Option* option : shownOptions(app))
        putOption(out, *option);
    if (!verbs.empty()) {
        out += ".SH VERBS\n";
        for (const CLI::App* verb : verbs)
            putVerb(out, *verb);
        putShared(out, app);
    }
    for (const auto& [title, text] : page.sections)
        putSection(out, title, text);
    out += ".SH EXAMPLES\n.nf\n";
    for (const std::string& example : page.examples)
        out += escaped(example) + "\n";
    out += ".fi\n.SH SEE ALSO\n" + escaped(page.seeAlso) + "\n";
    return out;
}

std::string bashCompletion(const CLI::App& app, const std::string& name) {
    std::string function = "_" + name;
    std::replace(function.begin(), function.end(), '-', '_');
    std::vector<std::string> verbs;
    std::string cases;
    for (const CLI::App* verb : verbsOf(app)) {
        verbs.push_back(verb->get_name());
        cases += "    " + verb->get_name() + ") words='" + joined(wordsOf(*verb)) + "' ;;\n";
    }
    // Everything that is no option may be a file name: most values are.
    return "# bash completion for " + name + "\n" + function +
           "() {\n  local word=${COMP_WORDS[COMP_CWORD]} words=''\n  COMPREPLY=()\n  case ${COMP_WORDS[1]} in\n" +
           cases + "  esac\n  if ((COMP_CWORD == 1)); then\n    words='" + joined(verbs) + " " + joined(wordsOf(app)) +
           "'\n  elif [[ $word != -* ]]; then\n    compopt -o filenames 2>/dev/null\n    mapfile -t COMPREPLY < "
           "<(compgen "
           "-f -- \"$word\")\n    return\n  fi\n  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}\n"
           "complete -F " +
           function + " " + name + "\n";
}

} // namespace kvscope::manual
