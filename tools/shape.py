#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the shape of the source tree as one table: each row with its value, its floor and its aim. Lower is better.

Usage: tools/shape.py [ROOT]               the table
       tools/shape.py --list ROW [ROOT]    the files behind a row
       tools/shape.py --json [ROOT]        the table for programs

It reports and does not judge: the exit status is 0 whatever the values are. Terms and rows:

  product     the .h and .cc files below src/ except tests. Tests are *_test.cc and all files in testing/ folders, as in
              check_layers.py. Fakes outside testing/ (clusters/fake, sys/fake_files) are product.
  folder      a directory that directly contains product files; its sub-folders count separately.
  code        a file's text without comments. String literals are code: messages and names of variables are in them.

  lines       the lines of the product, blank lines and comments included.
  files       the files of the product.
  folder      the product files in the folder that has most of them. The list has every folder above the aim.
  headers     product headers that a product file of another folder includes, be it the parent or a sub-folder.
  cycles      groups of two or more folders each of which reaches each other by includes between product files. The list
              has the groups, and below each the files that include across it.
  polls       product files outside sys and net that themselves call poll, ppoll, epoll_wait, epoll_pwait, select or
              pselect, whether in a loop or once.
  twins       pairs in the table TWINS of which both halves still exist. A half is a type or function in the product's
              code, in any folder, so a move does not end a pair. After a rename, change the table in the same commit.
              The list has the files with each half.
  schedulers  product files whose code, includes among it, names Slurm or PBS, one of their programs (PROGRAMS) or
              variables (which contain such a name: SLURM_JOB_ID, SQUEUE_FORMAT, PBS_NODEFILE). SCHEDULER_HOMES has the
              folders and files that are not counted.
  wording     uses of the patterns in WORDING: in the comments of all C++ files below src/, tests among them; and in
              the help (.md below src/), the pages in docs/ and those in the root. A phrase may be wrapped. Texts of
              flags and messages in code are not counted.
"""
import argparse
import collections
import dataclasses
import json
import pathlib
import re
import sys
from typing import Callable, Optional

import check_layers

START_LINES = 143_532  # of the product at commit b23eb5d, before the redesign
FOLDER_AIM = 30        # files in one folder

# A literal or a comment. Unlike check_layers.without_comment this also gives the text of comments, and it finds comments
# that contain an odd number of quotation marks.
TOKEN = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/', re.S)

POLL = re.compile(r"(?<![\w.>])(?<!\w::)(?:p?poll|epoll_p?wait2?|p?select)\s*\(")
POLL_HOMES = ("sys", "net")

PROGRAMS = ("salloc", "sacct", "sacctmgr", "sattach", "sbatch", "sbcast", "scancel", "scontrol", "sinfo", "sprio",
            "squeue", "sreport", "srun", "sshare", "sstat",
            "qalter", "qdel", "qhold", "qrls", "qselect", "qstat", "qsub")
# A word of its own, or a word of a name in any of the three spellings: srun_ranks, SrunSetting, SQUEUE_FORMAT.
# Not a part of a word: IsRunning has no srun.
SCHEDULER = re.compile("|".join((
    r"[Ss]lurm|SLURM|(?<![A-Za-z])pbs|Pbs|PBS",
    rf"(?<![A-Za-z])(?:{'|'.join(PROGRAMS)})(?![a-z])",
    rf"(?:{'|'.join(p.capitalize() for p in PROGRAMS)})(?![a-z])",
    rf"(?<![A-Z])(?:{'|'.join(p.upper() for p in PROGRAMS)})(?![A-Z])")))
# Where schedulers may be named: their drivers and agents, launch, readers of history, host lists, the table of drivers.
SCHEDULER_HOMES = re.compile(r"(clusters|agent|agent/host)/(slurm|pbs)/|launch/|sched/trace/"
                             r"|model/(\w+/)*(compress_)?host_list\.|clusters/all_clusters\.cc$")

# Things that exist twice: name -> the two halves, a type (`class X`: class or struct) or a function (`X()`).
TWINS = {
    "launch heads": ("class HeadState", "class LauncherRun"),
    "schedulers": ("class Scheduler", "class PooledScheduler"),
    "capture engines": ("class CaptureIndex", "class BackupRun"),
    "agents": ("RunAgent()", "RunSlurmAgent()"),
    "engine clients": ("class EngineClient", "ConnectEngine()"),
}

WORDING = {
    "who, whoever": r"\bWho\b|\b[Ww]hoever\b",
    "one that, those that": r"(?i)\b(?:one|those)\s+(?:that|who|which)\b",
    "what is": r"(?i)\bwhat\s+(?:is|are|was|were)\b",
    "is told, tells, is said, says so": r"(?i)\b(?:is|are|was|were|be)\s+(?:told|said)\b|\btells\b|\bsays\s+so\b",
    "is none, is no": r"(?i)\b(?:is|are)\s+(?:none\b|no\s+(?!longer|more\b)\w)",
    "nobody, somebody": r"(?i)\b(?:no|some)body\b",
    "anew": r"(?i)\banew\b",
    "so long, so often, so many": r"(?i)\bso\s+(?:long|often|many)\b",
    "stands": r"(?i)\bstands?\b",
    "beside": r"(?i)\bbeside\b",
    "for ever": r"(?i)\bfor\s+ever\b",
    "goes on": r"(?i)\bgoes\s+on\b",
    "meanwhile": r"(?i)\bmeanwhile\b",
    "by itself": r"(?i)\bby\s+itself\b",
    "of its own": r"(?i)\bof\s+its\s+own\b",
    "gives way, is gone, let go of": r"(?i)\bgives?\s+way\b|\b(?:is|are)\s+gone\b|\blets?\s+go\s+of\b",
}


def split(text):
    """The code and the comments of a C++ text. The code keeps its line numbers."""
    def is_comment(token):
        return token[0].startswith(("//", "/*"))

    code = TOKEN.sub(lambda token: "\n" * token[0].count("\n") if is_comment(token) else token[0], text)
    comments, end = [], 0
    for token in filter(is_comment, TOKEN.finditer(text)):
        wrapped = text[end:token.start()].isspace()  # this comment continues the one before
        comments += [" " if wrapped else "\n;\n", token[0].lstrip("/*")]
        end = token.end()
    return code, "".join(comments)


@dataclasses.dataclass
class Source:
    """One C++ file below src/."""
    path: pathlib.PurePath  # from src/
    lines: int
    code: str
    comments: str
    includes: list  # paths from src/, of product files

    @property
    def folder(self):
        return self.path.parent.as_posix()


class Tree:
    def __init__(self, root):
        src = root / "src"
        self.root = root
        self.all = [self.read(src, path) for path in sorted(src.rglob("*")) if path.suffix in (".h", ".cc")]
        self.product = [source for source in self.all if not check_layers.is_test(source.path)]
        if not self.product:
            raise SystemExit(f"shape: there are no C++ files in '{src}'")
        known = {source.path for source in self.product}
        for source in self.product:
            source.includes = [include for include in source.includes if include in known]

    @staticmethod
    def read(src, path):
        text = path.read_text(errors="replace")
        code, comments = split(text)
        matches = map(check_layers.INCLUDE.match, code.splitlines())
        includes = [pathlib.PurePath(match[2]) for match in matches if match and match[1] == '"']
        return Source(path.relative_to(src), len(text.splitlines()), code, comments, includes)

    def folders(self):
        """{folder: number of its product files}"""
        return collections.Counter(source.folder for source in self.product)

    def edges(self):
        """{(folder, folder that it includes): the including files}"""
        edges = collections.defaultdict(set)
        for source in self.product:
            for include in source.includes:
                if include.parent != source.path.parent:
                    edges[source.folder, include.parent.as_posix()].add(source.path)
        return edges

    def pages(self):
        """The help and the documentation: (path from the root, text)."""
        for path in [*self.root.glob("*.md"), *(self.root / "docs").rglob("*.md"), *(self.root / "src").rglob("*.md")]:
            yield path.relative_to(self.root), path.read_text(errors="replace")


# Each row is measured by a function: Tree -> (value, note, lines of its list).

def measure_lines(tree):
    ordered = sorted(tree.product, key=lambda source: (-source.lines, source.path))
    return (sum(source.lines for source in tree.product), f"{START_LINES:,} at the start",
            [f"{source.lines:6} src/{source.path}" for source in ordered])


def measure_files(tree):
    return len(tree.product), "", [f"src/{source.path}" for source in tree.product]


def measure_folder(tree):
    ordered = sorted(tree.folders().items(), key=lambda item: (-item[1], item[0]))
    items = [f"{count:6} src/{folder}" for folder, count in ordered if count > FOLDER_AIM]
    return ordered[0][1], f"src/{ordered[0][0]}", items


def measure_headers(tree):
    users = collections.defaultdict(set)
    for source in tree.product:
        for include in source.includes:
            if include.suffix == ".h" and include.parent != source.path.parent:
                users[include].add(source.folder)
    headers = sum(source.path.suffix == ".h" for source in tree.product)
    return len(users), f"of {headers}", [f"src/{path}: {' '.join(sorted(users[path]))}" for path in sorted(users)]


def reachable(start, edges):
    """The folders that `start` reaches by includes; itself only when it is in a cycle."""
    seen, ahead = set(), [start]
    while ahead:
        here = ahead.pop()
        found = {target for source, target in edges if source == here} - seen
        seen |= found
        ahead += found
    return seen


def measure_cycles(tree):
    edges = tree.edges()
    reach = {folder: reachable(folder, edges) for folder in tree.folders()}
    groups = sorted({tuple(sorted(other for other in reach[folder] if folder in reach[other]))
                     for folder in reach if folder in reach[folder]})
    items = []
    for group in groups:
        items.append(" ".join(group))
        for source, target in sorted(edges):
            if source in group and target in group:
                files = " ".join(path.name for path in sorted(edges[source, target]))
                items.append(f"    {source} -> {target}: {files}")
    return len(groups), ", ".join(f"{group[0]} ({len(group)})" for group in groups), items


def files_with(pattern, sources):
    """`src/FILE: numbers of its lines with the pattern`, for the files whose code has it."""
    for source in sources:
        if pattern.search(source.code):
            numbers = [str(number) for number, line in enumerate(source.code.splitlines(), 1) if pattern.search(line)]
            yield f"src/{source.path}: {' '.join(numbers)}"


def measure_polls(tree):
    items = list(files_with(POLL, (source for source in tree.product if source.path.parts[0] not in POLL_HOMES)))
    return len(items), "", items


def measure_schedulers(tree):
    outside = (source for source in tree.product if not SCHEDULER_HOMES.match(source.path.as_posix()))
    items = list(files_with(SCHEDULER, outside))
    return len(items), "", items


def places_of(half, tree):
    """The files whose code has the type or function."""
    name = half.removeprefix("class ").removesuffix("()")
    if half.startswith("class "):
        pattern = re.compile(rf"(?<!enum )\b(?:class|struct)\s+{name}\b(?!\s*;)")
    else:
        pattern = re.compile(rf"\b{name}\s*\(")
    return [f"src/{source.path}" for source in tree.product if name in source.code and pattern.search(source.code)]


def measure_twins(tree):
    there, items = [], []
    for name, halves in TWINS.items():
        places = [places_of(half, tree) for half in halves]
        if all(places):
            there.append(name)
        items.append(f"{'there' if all(places) else 'gone'}: {name}")
        items += [f"    {half}: {' '.join(found) or 'nowhere'}" for half, found in zip(halves, places)]
    return len(there), f"of {len(TWINS)}", items


def measure_wording(tree):
    comments = {f"src/{source.path}": source.comments for source in tree.all}
    pages = {str(path): text for path, text in tree.pages()}
    in_comments, in_pages, by_file = collections.Counter(), collections.Counter(), collections.Counter()
    for texts, counts in ((comments, in_comments), (pages, in_pages)):
        for path, text in texts.items():
            for name, pattern in WORDING.items():
                found = sum(1 for _ in re.finditer(pattern, text))
                counts[name] += found
                by_file[path] += found
    items = ["comments  pages"]
    items += [f"{in_comments[name]:8} {in_pages[name]:6}  {name}" for name in WORDING]
    ordered = sorted(by_file.items(), key=lambda item: (-item[1], item[0]))
    items += [f"{count:6} {path}" for path, count in ordered if count]
    total = in_comments.total() + in_pages.total()
    return total, f"{in_comments.total():,} in comments, {in_pages.total():,} in docs and help", items


@dataclasses.dataclass(frozen=True)
class Row:
    title: str
    floor: Optional[int]  # what the redesign must reach; None: no goal
    aim: Optional[int]
    measure: Callable


ROWS = {
    "lines": Row("product lines in src, tests aside", START_LINES - 8_000, START_LINES - 14_000, measure_lines),
    "files": Row("files in src, tests aside", 1_250, 1_050, measure_files),
    "folder": Row("files in the largest folder", 40, FOLDER_AIM, measure_folder),
    "headers": Row("headers used outside their folder", 220, 150, measure_headers),
    "cycles": Row("folder cycles", 3, 3, measure_cycles),
    "polls": Row("files with a raw poll outside sys, net", 15, 5, measure_polls),
    "twins": Row("twins", 3, 0, measure_twins),
    "schedulers": Row("files that name a scheduler", 5, 0, measure_schedulers),
    "wording": Row("banned wording in comments, docs, help", None, None, measure_wording),
}


def reached(row, value):
    if row.aim is None:
        return ""
    return "aim" if value <= row.aim else "floor" if value <= row.floor else "no"


def print_table(tree):
    def number(value):
        return "-" if value is None else f"{value:,}"

    print(f"{'ROW':11}{'':40}{'NOW':>8}{'FLOOR':>9}{'AIM':>9}  REACHED  NOTE")
    for name, row in ROWS.items():
        value, note, _ = row.measure(tree)
        print(f"{name:11}{row.title:40}{number(value):>8}{number(row.floor):>9}{number(row.aim):>9}"
              f"  {reached(row, value):7}  {note}".rstrip())


def print_json(tree):
    result = {}
    for name, row in ROWS.items():
        value, note, _ = row.measure(tree)
        result[name] = {"title": row.title, "value": value, "floor": row.floor, "aim": row.aim,
                        "reached": reached(row, value), "note": note}
    print(json.dumps(result, indent=2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", metavar="ROW", choices=ROWS, help=", ".join(ROWS))
    what.add_argument("--json", action="store_true")
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent)
    args = parser.parse_args()
    tree = Tree(args.root.resolve())
    if args.list:
        for item in ROWS[args.list].measure(tree)[2]:
            print(item)
    elif args.json:
        print_json(tree)
    else:
        print_table(tree)
    return 0


if __name__ == "__main__":
    sys.exit(main())
