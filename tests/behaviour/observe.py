# SPDX-License-Identifier: Apache-2.0
"""Collects what a user can see of a run: outputs, variables of ranks, files that are left. Each function gives {what: normalised text}."""
import contextlib
import json
import os
import pathlib
import re
import stat

MOST_BYTES = 256 << 10
SKIPPED = ("bin", "facts", "programs")  # folders of the case itself
# Folders whose files are not compared at all.
PASSING = [
    re.compile(r"(^|/)trash/"),   # a background process is removing them
    re.compile(r"(^|/)mirror/"),  # copies of Slurm's answers, with random marks; whether advice still needs one is a matter of time
]
# Files whose name and mode are compared, but not their text.
UNREAD = [
    re.compile(r"(^|/)(daemon|agent|mounts|mount-[^/]*)\.log$|/auto/[^/]*\.log$"),  # engines and services write sentences
    re.compile(r"/rank-[0-9]+\.times$"),                                            # in which pieces a rank's output was seen is chance
    re.compile(r"/next-task$"),                                                     # how far an array was on the disk is a matter of time
]
HOLDERS = re.compile(r"(^|/)(daemon|\.overcap/auto)\.lock$|(^|/)\.overcap/lock$")  # begin with the holder's pid


def launches(root):
    """The ids of launches in the order in which they began; those of an elastic job's nodes by node."""
    found = []
    for folder, _, files in os.walk(root):  # where folders of removed jobs may vanish meanwhile
        if "launch.json" in files:
            with contextlib.suppress(OSError, ValueError, KeyError):
                record = json.loads(pathlib.Path(folder, "launch.json").read_text())
                found.append((folder.replace(record["id"], ""), record["started_us"], record["id"]))
    return [launch for _, _, launch in sorted(found)]


def output(number, words, done, compares_output, normal):
    normal.asked = done.began
    if "--json" in words:
        return {f"json {number}": without_prose(normal.document(done.out)), f"error {number}": error_objects(done.err, normal)}
    if compares_output or "--dry-run" in words:
        return {f"output {number}": normal.text(done.out)}
    return {}


def without_prose(text):
    """Some commands print a sentence in spite of --json."""
    return "\n".join("SENTENCE" if re.match("[a-z]+ ", line) else line for line in text.split("\n"))


def error_objects(text, normal):
    """The failures that --json prints on stderr; everything else there is for people."""
    return "\n".join(normal.line(line) for line in text.splitlines() if line.startswith("{"))


def facts(folder, normal):
    """The files in $FACTS, where programs of the case leave them; env.* has the variables that a rank was started with, in their order."""
    seen = {}
    for path in sorted(folder.glob("*")):
        text = path.read_bytes().decode("utf-8", "backslashreplace").replace("\0", "\n")
        seen[f"fact {normal.text(path.name)}"] = normal.text(text)
    return seen


def tree(root, normal):
    """Every file and folder with its mode, its owner when that is another user, and what text files hold."""
    listing, seen = [], {}
    for folder, folders, files in os.walk(root):
        folders.sort()
        if folder == str(root):
            folders[:] = [name for name in folders if name not in SKIPPED]
        for name in sorted(folders + files):
            path = os.path.join(folder, name)
            shown = normal.text(os.path.relpath(path, root))
            if any(pattern.search(shown) for pattern in PASSING):
                continue
            status = os.lstat(path)
            mode, owner = status.st_mode, "" if status.st_uid == os.geteuid() else f" of {status.st_uid}"
            target = " -> " + normal.text(os.readlink(path)) if stat.S_ISLNK(mode) else ""
            line = f"{shown} {stat.filemode(mode)}{owner}{target}"
            if not (shown.endswith("packs/XX") and line in listing):  # in how many folders packs lie is chance
                listing.append(line)
            if stat.S_ISREG(mode) and not any(pattern.search(shown) for pattern in UNREAD) and (text := text_of(path)) is not None:
                text = re.sub("^(pid )?[0-9]+", r"\1PID", text) if HOLDERS.search(shown) else text
                seen.setdefault(f"file {shown}", normal.document(text))
    return {"files": "\n".join(sorted(listing)), **seen}


def text_of(path):
    if os.path.getsize(path) > MOST_BYTES:
        return None
    with open(path, "rb") as file:
        try:
            return file.read().rstrip(b"\0").replace(b"\0", b"\n").decode()  # reports are preallocated
        except UnicodeDecodeError:
            return None
