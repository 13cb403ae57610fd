# SPDX-License-Identifier: Apache-2.0
"""Replaces what differs between two runs of the same program by placeholders, and nothing else.

Both programs run a case in the same folder, on the same host and with the same environment: paths, host names and hashes of
captured code are compared as they are. Each rule says why its values differ.
"""
import datetime
import itertools
import json
import re
import time

NEAR = 3600  # seconds: a time so close to now was made by this run; any other is a part of the case
FREE_PORTS = range(32768, 61000)  # the kernel's choice for a program that asks for any port; a port that a case names stays
UNITS = {0: "TIME_S", 3: "TIME_MS", 6: "TIME_US", 9: "TIME_NS"}  # digits after those of the seconds since 1970

# Members of JSON objects whose numbers the kernel chooses. 0 and less mean "none" and stay.
CHOSEN = {"pid": "PID", "pids": "PID", "start_ticks": "TICKS"}
# Members that hold a measured duration.
DURATIONS = {"elapsed_s", "age_s", "uptime_s", "seconds", "took_us"}
# Members that hold a sentence; a value of one word (a state, a code, a name) is compared all the same.
SENTENCES = {"reason", "text", "hint", "message", "facts", "note", "notes", "problem", "no_promise", "sooner", "assumed", "change", "object"}
# Members that promise when a job starts: compared as minutes from the question.
PROMISED = {"p50", "p90", "start", "estimated_start", "p50_us", "p90_us"}
# Members that hold random bytes in hex: ids of repositories and workspaces, a checksum over such an id, an encrypted key
# and its salt.
RANDOM = {"id", "check", "master", "salt"}
# Members that name a tree of a workspace: its folders have times of this run.
TREES = {"tree", "base_tree", "restoring_tree"}
# Members that count bytes of what a repository keeps: the times in it take more or less room.
KEPT = {"new_bytes", "stored_bytes", "bytes_read", "kept_bytes", "removed_bytes", "object_bytes"}

# Ids made of a time and random digits, numbered in the order in which the case met them.
IDS = {
    "JOB": re.compile(r"\b[A-Za-z0-9.-]+_[0-9]{9,11}_[0-9a-f]{8}\b"),
    "LAUNCH": re.compile(r"\b20[0-9]{6}-[0-9]{6}-[0-9a-f]{6}\b"),
    "SNAPSHOT": re.compile(r"(?<=Z-)[0-9a-f]{64}\b"),  # of a workspace, in the name of its file
}
# Parts of texts and paths: (pattern, replacement).
PARTS = [
    # Packs and their index are named by bytes that hold times and the repository's id.
    (re.compile(r"((?:^|/)packs/)[0-9a-f]{2}/[0-9a-f]{64}$"), r"\1XX/PACK"),
    (re.compile(r"((?:^|/)packs/)[0-9a-f]{2}$"), r"\1XX"),
    (re.compile(r"((?:^|/)index/)[0-9a-f]{64}$"), r"\1INDEX"),
    # An elastic agent is named by its launch and a random number.
    (re.compile(r"(LAUNCH[0-9]+-)[0-9]{1,6}\b"), r"\1N"),
    # Ranks of one launch find each other by a random number.
    (re.compile(r"(?<=OVERCAP_LAUNCH_ID=)[0-9a-f]{16}\b"), "RANDOM"),
    # The version of a file in a folder begins with its inode.
    (re.compile(r"^[0-9]+(-[0-9]+-[0-9]+\.[0-9]+)$"), r"INODE\1"),
]
PORT = re.compile(r"(?<=PORT=)[0-9]{5}$", re.M)
NUMBER_IN_WORDS = re.compile(r"(?<![\w.:])[0-9]+(?:\.[0-9]+)?(?![\w.:])")  # in the facts of `why`; a duration has a unit behind it
ISO_TIME = re.compile(r"\b20\d\d(-?)\d\d\1\d\d[T ]\d\d(:?)\d\d\2\d\d(?:\.\d+)?Z?")
EPOCH = re.compile(r"(?<![\w.])(1[0-9]{9})([0-9]{9}|[0-9]{6}|[0-9]{3}|)(?:\.[0-9]+)?(?!\w)")
MADE_SNAPSHOT = re.compile(r'^\{"event":"done",.*"snapshot":"([0-9a-f]{64})"', re.M)
# A batch script's SLURM_JOB_ID on the embedded engine is the time and the random digits of the job's id, plus the task.
NUMBER = re.compile(r"(?<![\w.])[0-9]{17,19}(?!\w)")
NUMBER_EPOCH = 1_577_836_800
KEY_LINE = re.compile(r"^[0-9a-f]{64}$")  # the random key of a workspace, in a file of its own
JOURNAL_LINE = re.compile(r"^[0-9a-f]{8} (\{.*\})$")


class Normaliser:
    """Normalises all that one run of one case left, and numbers its ids. `known` is {kind: ids in the order in which they were made}."""

    def __init__(self, known):
        self.names = {word: f"{kind}{number}" for kind, words in known.items() for number, word in enumerate(words, 1)}
        self.now = self.asked = time.time()

    # ---- text

    def text(self, text):
        for word, name in self.names.items():
            text = text.replace(word, name)
        for kind, pattern in IDS.items():
            text = pattern.sub(lambda match, kind=kind: self.name_of(kind, match[0]), text)
        for pattern, replacement in PARTS:
            text = pattern.sub(replacement, text)
        text = NUMBER.sub(lambda match: self.number_of_job(int(match[0])) or match[0], text)
        text = PORT.sub(lambda match: "PORT" if int(match[0]) in FREE_PORTS else match[0], text)
        return EPOCH.sub(self.epoch, ISO_TIME.sub(self.iso_time, text))

    def name_of(self, kind, word):
        number = 1 + sum(name.startswith(kind) for name in self.names.values())
        return self.names.setdefault(word, f"{kind}{number}")

    def number_of_job(self, number):
        for word, name in self.names.items():
            match = re.search(r"_([0-9]{9,11})_([0-9a-f]{8})$", word)
            first = (int(match[1]) - NUMBER_EPOCH << 32 | int(match[2], 16)) if match else number + 1
            if first <= number < first + 1_000_000:
                return f"{name}+{number - first}"
        return None

    def promised(self, then):
        return f"in {round((then - self.asked) / 60)} min"

    def iso_time(self, match):
        try:
            return "TIME" if abs(seconds_of(match[0]) - self.now) < NEAR else match[0]
        except ValueError:
            return match[0]

    def epoch(self, match):
        return UNITS[len(match[2])] if abs(int(match[1]) - self.now) < NEAR else match[0]

    # ---- JSON

    def value(self, value, name=""):
        if isinstance(value, dict):
            self.asked = value.get("made_us", self.asked * 1e6) / 1e6
            file = set(value) == {"name", "text"}  # of `policy render`: its text is no sentence
            return {self.text(key): self.value(member, "" if file else key) for key, member in value.items()}
        if isinstance(value, list):
            return [self.value(member, name) for member in value]
        if isinstance(value, str):
            return self.word(value, name)
        if isinstance(value, bool) or value is None:
            return value
        return self.number(value, name)

    def word(self, value, name):
        if name in SENTENCES and " " in value:
            return " ".join(["SENTENCE", *(NUMBER_IN_WORDS.findall(self.text(value)) if name == "facts" else ())])
        if name in RANDOM and re.fullmatch("[0-9a-f]{32,}", value):
            return self.names.get(value, "RANDOM")  # a snapshot has a name
        if name == "snapshot" and re.fullmatch("[0-9a-f]{10}", value):  # its beginning
            return next((known for word, known in self.names.items() if word.startswith(value)), value)
        if name in TREES and re.fullmatch("[0-9a-f]{64}", value):
            return self.name_of("TREE", value)
        match = ISO_TIME.fullmatch(value) if name in PROMISED else None
        return self.promised(seconds_of(value)) if match else self.text(value)

    def number(self, value, name):
        if name in CHOSEN and value > 0:
            return CHOSEN[name]
        if name in DURATIONS and value >= 0:
            return "SECONDS"
        if name in KEPT and value > 0:
            return "BYTES"
        if name.endswith("port") and value in FREE_PORTS:
            return "PORT"
        if name in PROMISED and value > 1e15:  # a time; elsewhere these are names of quantiles
            return self.promised(value / 1e6)
        text = self.text(str(value))
        return text if text.startswith("TIME") else value

    def json(self, value, indent=1):
        return json.dumps(self.value(value), indent=indent, sort_keys=True, ensure_ascii=False)

    # ---- files and outputs

    def document(self, text):
        """A JSON text with a member in each line, so that the first line that differs names the member; any other text line by line. Lines of
        progress are left out: their number depends on time."""
        try:
            return self.json(json.loads(text))
        except ValueError:
            pass
        lines = in_order([self.line(line) for line in text.split("\n") if not line.startswith('{"event":"progress"')])
        return "\n".join(lines)

    def line(self, line):
        match = JOURNAL_LINE.match(line)  # its checksum is over times
        try:
            return ("CRC " if match else "") + self.json(json.loads(match[1] if match else line), indent=None)
        except ValueError:
            return "KEY" if KEY_LINE.match(line) else self.text(line)


def seconds_of(text):
    """Converts a time in ISO 8601, UTC, to whole seconds since 1970."""
    digits = re.sub("[^0-9]", "", text)[:14]
    return datetime.datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=datetime.timezone.utc).timestamp()


def in_order(lines):
    """Sorts lines that come in any order where they follow each other: ranks that end in the same instant, problems that several threads find."""
    result = []
    for any_order, group in itertools.groupby(lines, lambda line: '"e": "rank_end"' in line or '"event": "problem"' in line):
        result += sorted(group) if any_order else group
    return result
