#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the sources under src/ to the rules that a compiler cannot see.

The layer table is the map in ARCHITECTURE.md: a line `src/NAME/ ... <- A B C` says that files of NAME may include
files of A, B, C and NAME only. The DEPS in src/CMakeLists.txt may not go past it either.

Usage: tools/check_layers.py [ROOT]      prints `file:line: rule` for each breach; exit status 1 when there is one
"""
import pathlib
import re
import sys

MAX_LINES = 800        # of a file
MAX_MAIN_LINES = 150   # of src/main in all
# A map line: src/NAME/ text <- names, or `everything`, or `nothing`
MAP_LINE = re.compile(r"^src/([a-z]+)/.*<- *([a-z ]+?) *$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CMAKE_LIBRARY = re.compile(r"^overcap_library\((\w+)(.*)\)")

# Seams whose implementations are named only in their own folder and in the table file.
SEAMS = {"clusters": "all_clusters.cc", "stores": "all_stores.cc"}

# What these folders may not touch, tests aside: header -> why.
IO_HEADERS = ("fstream", "filesystem", "iostream", "unistd.h", "fcntl.h", "dirent.h", "sys/", "poll.h", "signal.h")
PURE = {
    "sched": IO_HEADERS + ("thread", "mutex", "atomic", "chrono", "ctime", "time.h", "random"),
    "model": IO_HEADERS + ("thread", "mutex", "random"),
}

# Text that may not stand in src/ outside tests: pattern -> why.
FORBIDDEN = [
    (re.compile(r"(?<![\w.>:])(?:std::|::)?system\s*\("), "no shell: system() is forbidden, spawn an argv"),
    (re.compile(r"(?<![\w.>])(?:::)?popen\s*\("), "no shell: popen() is forbidden, spawn an argv"),
    (re.compile(r'"(?:/bin/)?(?:ba|da)?sh"\s*,\s*"-\w*c"'), "no shell: \"sh\", \"-c\" is forbidden, spawn an argv"),
]


NAMESPACE = re.compile(r"^namespace ([\w:]+) \{")
TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)(?: final)?(?: :[^;]*)? \{")


def name_breaches(root):
    """Two headers that define a type of the same name in the same namespace: the linker would mix them up in silence."""
    places = {}
    for path in sorted((root / "src").rglob("*.h")):
        namespace, relative = "", path.relative_to(root)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := NAMESPACE.match(line):
                namespace = match[1]
            elif match := TYPE.match(line):
                name = f"{namespace}::{match[1]}"
                if name in places:
                    yield relative, number, f"'{name}' is also defined in {places[name]}"
                places.setdefault(name, relative)


def read_map(root):
    """{folder: set of folders it may include} from ARCHITECTURE.md."""
    allowed = {}
    for line in (root / "ARCHITECTURE.md").read_text().splitlines():
        if match := MAP_LINE.match(line):
            allowed[match[1]] = match[2].split()
    names = set(allowed)
    for name, words in allowed.items():
        if words == ["everything"]:
            allowed[name] = names
        elif words == ["nothing"]:
            allowed[name] = {name}
        else:
            unknown = set(words) - names
            if unknown:
                raise SystemExit(f"ARCHITECTURE.md: src/{name}/ names unknown folders: {' '.join(sorted(unknown))}")
            allowed[name] = set(words) | {name}
    if not allowed:
        raise SystemExit("ARCHITECTURE.md: no line of the form `src/NAME/ ... <- NAMES`")
    return allowed


def is_test(path):
    return path.name.endswith("_test.cc") or "testing" in path.parts


def without_comment(line):
    """The line without a // comment; good enough for the rules here, which look at code only."""
    return re.sub(r'//(?=(?:[^"]*"[^"]*")*[^"]*$).*', "", line)


def seam_breach(relative, include):
    """Text of the breach when a concrete driver is named outside its folder, else None."""
    parts = include.split("/")
    if len(parts) < 3 or parts[0] not in SEAMS or parts[1] == "testing":
        return None
    seam, driver = parts[0], parts[1]
    inside = relative.parts[1:3] == (seam, driver)
    in_table = relative.parts[1] == seam and relative.name == SEAMS[seam]
    if inside or in_table or relative.parts[1] == "main" or is_test(relative):
        return None
    return f"'{seam}/{driver}' may be named only in its own folder, in {SEAMS[seam]} and in main"


def include_breaches(relative, kind, include, allowed):
    folder = relative.parts[1]
    if kind == "<":
        if relative.suffix == ".h" and re.match(r"(nlohmann|yaml-cpp)/(?!json_fwd)", include):
            yield f"<{include}> in a header: parse JSON and YAML in .cc files only"
        if not is_test(relative):
            for word in PURE.get(folder, ()):
                if include == word or (word.endswith("/") and include.startswith(word)):
                    yield f"'{folder}' is pure and may not include <{include}>"
        return
    target = include.split("/")[0]
    if "/" not in include:
        yield f'"{include}": write the path from src/, as in "{folder}/{include}"'
    elif target not in allowed:
        yield f'"{include}": there is no src/{target}/ in the map of ARCHITECTURE.md'
    elif target not in allowed[folder]:
        may = " ".join(sorted(allowed[folder] - {folder})) or "nothing"
        yield f"'{folder}' may not include '{target}' (it may include: {may})"
    if breach := seam_breach(relative, include):
        yield breach


def file_breaches(root, path, allowed):
    relative = path.relative_to(root)
    lines = path.read_text(errors="replace").splitlines()
    if not lines or lines[0] != "// SPDX-License-Identifier: Apache-2.0":
        yield 1, "the first line must be `// SPDX-License-Identifier: Apache-2.0`"
    if len(lines) > MAX_LINES:
        yield len(lines), f"{len(lines)} lines, the limit is {MAX_LINES}: move something out"
    if path.suffix == ".h" and not any(line == "#pragma once" for line in lines):
        yield 1, "a header needs `#pragma once`"
    for number, line in enumerate(lines, 1):
        if match := INCLUDE.match(line):
            for breach in include_breaches(relative, match[1], match[2], allowed):
                yield number, breach
        elif not is_test(relative):
            code = without_comment(line)
            for pattern, why in FORBIDDEN:
                if pattern.search(code):
                    yield number, why


def cmake_breaches(root, allowed):
    path = root / "src" / "CMakeLists.txt"
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not (match := CMAKE_LIBRARY.match(line)):
            continue
        folder, rest = match[1], match[2].split("TEST_DEPS")[0]
        if folder not in allowed:
            yield number, f"src/{folder}/ is not in the map of ARCHITECTURE.md"
            continue
        for target in re.findall(r"overcap_(\w+)", rest):
            if target not in allowed[folder]:
                yield number, f"'{folder}' may not link '{target}'"


def main_breach(root):
    total = sum(len(p.read_text().splitlines()) for p in (root / "src" / "main").glob("*.cc"))
    if total > MAX_MAIN_LINES:
        yield 1, f"src/main has {total} lines, the limit is {MAX_MAIN_LINES}: it only builds real objects"


def all_breaches(root):
    allowed = read_map(root)
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".h", ".cc") or not path.is_file():
            continue
        relative = path.relative_to(root)
        if len(relative.parts) < 3 or relative.parts[1] not in allowed:
            yield relative, 1, "this file stands in no folder of the map of ARCHITECTURE.md"
            continue
        for number, text in file_breaches(root, path, allowed):
            yield relative, number, text
    for number, text in cmake_breaches(root, allowed):
        yield pathlib.Path("src/CMakeLists.txt"), number, text
    yield from name_breaches(root)
    for number, text in main_breach(root):
        yield pathlib.Path("src/main"), number, text


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    breaches = list(all_breaches(root))
    for path, number, text in breaches:
        print(f"{path}:{number}: {text}")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
