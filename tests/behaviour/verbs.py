# SPDX-License-Identifier: Apache-2.0
"""Finds the verbs that the help of a program lists and no case runs."""
import re
import subprocess

ENTRY = re.compile(r"^  ([a-z][a-z-]*(?: [a-z][a-z-]*)?)(?:, [a-z]+)?(?:  |$)")


def verbs_of(program):
    """The verbs that `overcap --help` lists: indented by two, below the headings behind the examples."""
    text = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    sections = text.split("\n\n")[1:]
    verbs = [match[1] for section in sections for line in section.split("\n")[1:] if (match := ENTRY.match(line))]
    if len(verbs) < 10:
        raise SystemExit(f"same_behaviour: '{program} --help' lists no verbs that this tool can read")
    return verbs


def verb_of(words, verbs):
    """The verb of a command line; None when it has none."""
    words = [word for word in words if not word.startswith("-")]
    for index, word in enumerate(words):
        pair = f"{word} {words[index + 1]}" if index + 1 < len(words) else ""
        if pair in verbs:
            return pair
        if word in verbs:
            return word
    return None


def missing(cases, verbs, words_of):
    """Verbs that no step of the cases runs; what is only refused does not count."""
    steps = [words_of(line) for case in cases if not case.name.startswith("refused/") for line in case.steps]
    run = {verb_of(words, verbs) for words in steps if words}
    return [verb for verb in verbs if verb not in run]
