# SPDX-License-Identifier: GPL-3.0-or-later
# cmake -DOUTPUT=x.cpp -DHEADER=h -DFUNCTION=ns::f -DFILES=a|b|c -P embed_text.cmake
# Writes a source file whose function gives the texts of the files, one behind the other, a line end between them.
string(REPLACE "|" ";" FILES "${FILES}")
set(bytes)
foreach(file IN LISTS FILES)
  file(READ ${file} hex HEX)
  string(APPEND bytes ${hex} 0a)
endforeach()
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "// Generated from files of resources/.
#include \"${HEADER}\"
namespace {
constexpr unsigned char kBytes[] = {
${bytes}};
}
std::string_view ${FUNCTION}() {
    return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};
}
")
