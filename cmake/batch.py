#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts several sources into one unit of compilation: the headers that all of them read are read once.

Usage: batch.py SOURCE_ROOT FOLDER NAME SIZE < sources, one a line

Writes FOLDER/NAME_<n>.cc, which includes about SIZE of the sources each, and prints what is to be compiled: those, and the
sources that stay alone. Unchanged files are not written again; units that are no longer wanted are removed.

Two sources share a unit only when no name that is local to one of them (in an unnamed namespace, `static`, a macro)
stands anywhere in the other, and all headers are read before the first of them: so every name means what it means
when the file is compiled alone. A source's place follows from its path: what is added moves few others.
"""
import os
import pathlib
import re
import sys
import zlib

NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.S)
NAME = re.compile(r"[A-Za-z_]\w*")
INCLUDE = re.compile(r"^#include .*$", re.M)
CONDITION = re.compile(r"^#if[^\n]*\n.*?^#endif", re.M | re.S)
NAMESPACE = re.compile(r"\bnamespace\s*([\w:]*)\s*\Z")
TEST = re.compile(r"\s*(?:TYPED_)?TEST(?:_[FP])?\s*\(\s*(\w+)\s*,\s*(\w+)")
LOCAL_WORDS = {"static", "constexpr", "const", "using", "namespace"}


def statements(code):
    """Each declaration at namespace scope: what it says before its body, its body, how many unnamed namespaces are around."""
    scopes, begin, depth, body = [], 0, 0, 0
    for match in re.finditer("[;{}]", code):
        char, at = match[0], match.start()
        if char == "{":
            opened = NAMESPACE.search(code, begin, at) if depth == 0 else None
            if opened:
                scopes.append(opened[1])
                begin = at + 1
                continue
            body = at if depth == 0 else body
            depth += 1
        elif char == "}" and depth > 0:
            depth -= 1
            if depth == 0:
                yield code[begin:body], code[body:at], scopes.count("")
                begin = at + 1
        elif depth == 0:
            if char == ";":
                yield code[begin:at], "", scopes.count("")
            elif scopes:
                scopes.pop()
            begin = at + 1


def declared(head, body):
    """The names that a declaration gives to its file."""
    head = re.sub(r"\[\[.*?\]\]|__attribute__\s*\(\(.*?\)\)|\balignas\s*\([^)]*\)", " ", head)
    test = TEST.match(head)
    if test:
        return {f"{test[1]}_{test[2]}_Test"}
    while True:  # template arguments, from the inside out
        shorter = re.sub(r"<[^<>;{}]*>", " ", head)
        if shorter == head:
            break
        head = shorter
    kind = re.match(r"\s*(?:template\s+)?(enum\s+class|enum\s+struct|enum|struct|class|union)\b\s*(\w*)", head)
    if kind:
        return ({kind[2]} if kind[2] else set()) | (set(NAME.findall(body)) if kind[1] == "enum" else set())
    before = re.split(r"[(=\[]", head, maxsplit=1)[0]
    return set(NAME.findall(before)[-1:])


def local_names(text, code):
    names = set(re.findall(r"^\s*#\s*define\s+(\w+)", text, re.M))
    for head, body, unnamed in statements(code):
        words = NAME.findall(head)
        if words and (unnamed or words[0] in LOCAL_WORDS):
            names |= declared(head, body)
    return names - {"operator", "std", "overcap"}


def wants_own_unit(text):
    """Whether it changes how what follows it is read: headers under a condition or behind a macro of its own, or a pragma."""
    macro = re.search(r"^\s*#\s*define\b", text, re.M)
    return (any(INCLUDE.search(part) for part in CONDITION.findall(text)) or bool(re.search(r"^\s*#\s*pragma", text, re.M)) or
            bool(macro and INCLUDE.search(text, macro.end())))


class Source:
    def __init__(self, path, root):
        text = path.read_text()
        plain = NOISE.sub(lambda match: '""' if match[0][0] in "\"R" else " ", text)
        self.path = path
        self.words = os.path.relpath(path, root)
        self.includes = INCLUDE.findall(text)
        self.code = re.sub(r"^\s*#.*(?:\\\n.*)*$", "", plain, flags=re.M)
        self.names = set(NAME.findall(plain))
        self.local = local_names(plain, self.code)
        self.alone = wants_own_unit(text)

    def suits(self, other):
        return not (self.local & other.names or other.local & self.names)


def place(sources, size):
    """Lists of sources that may share a unit."""
    count = 1
    while count * size < len(sources):
        count *= 2
    units = [[] for _ in range(count)]
    alone = []
    for source in sources:
        first = zlib.crc32(source.words.encode()) % count
        turns = [units[(first + turn) % count] for turn in range(count)]
        fits = [unit for unit in turns if len(unit) < size + size // 2 and all(source.suits(other) for other in unit)]
        if source.alone or not fits:
            alone.append([source])
        else:
            fits[0].append(source)
    return units + alone


def unit_text(unit):
    headers = dict.fromkeys(line for source in unit for line in source.includes)
    # g++ takes the sources for headers, in which a class had better not hold what is local.
    silence = '#pragma GCC diagnostic ignored "-Wsubobject-linkage"'
    lines = ["// Written by cmake/batch.py.", *headers, silence, *(f'#include "{source.words}"' for source in unit)]
    return "\n".join(lines) + "\n"


def main():
    root, folder, name, size = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    sources = [Source(pathlib.Path(line), root) for line in sys.stdin.read().split("\n") if line]
    folder.mkdir(parents=True, exist_ok=True)
    written = set()
    for number, unit in enumerate(place(sources, size)):
        if len(unit) < 2:
            print("".join(f"{source.path}\n" for source in unit), end="")
            continue
        path = folder / f"{name}_{number}.cc"
        written.add(path)
        text = unit_text(unit)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        print(path)
    for path in set(folder.glob(f"{name}_[0-9]*.cc")) - written:
        path.unlink()


if __name__ == "__main__":
    main()
