# SPDX-License-Identifier: Apache-2.0
"""tools/check_words.py finds titles and words that docs/style.md does not allow."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_words  # noqa: E402


def diff(path, *lines):
    return "\n".join([f"--- a/{path}", f"+++ b/{path}", f"@@ -0,0 +7,{len(lines)} @@", *(f"+{line}" for line in lines)])


class Titles(unittest.TestCase):
    def test_a_title_with_area_verb_and_body_is_good(self):
        for title in ("locks: leave a lost number in place", "agent, daemon: keep jobs from foreign GPUs", "docs/adr: say why"):
            self.assertEqual(list(check_words.title_faults(title, "Why.")), [], title)

    def test_each_fault_is_named(self):
        for title, body, says in (("locks: " + "a" * 66, "Why.", "has 73 characters"), ("Leave a number", "Why.", "is not of the form"),
                                  ("Locks: leave it", "Why.", "is not of the form"), ("locks: leave it", " \n", "has no body")):
            self.assertIn(says, " ".join(check_words.title_faults(title, body)), title)


class Words(unittest.TestCase):
    def test_words_in_comments_messages_and_documents_are_found_with_their_line(self):
        for path, line in (("src/a.cc", "int x;  // read anew"), ("src/a.cc", 'Fail("nobody has it")'), ("docs/a.md", "The user is told."),
                           ("tools/a.py", "# so many at once"), ("tools/a.py", '"""Whoever comes first."""')):
            faults = list(check_words.word_faults(diff(path, "fine", line)))
            self.assertEqual(len(faults), 1, line)
            self.assertTrue(faults[0].startswith(f"{path}:8: "), faults)

    def test_names_in_code_flags_and_the_list_itself_are_not(self):
        for path, line in (("src/a.cc", "beside.Start(nobody);"), ("src/a.py", 'user = "nobody"'), ("docs/a.md", "`./bench --beside OTHER`"), ("docs/style.md", "| anew | again |")):
            self.assertEqual(list(check_words.word_faults(diff(path, line))), [], line)

    def test_the_list_of_the_style_page_is_the_list_that_is_checked(self):
        table = (ROOT / "docs/style.md").read_text().split("## Words we do not use")[1].split("##")[0]
        words = [word.strip() for row in re.findall(r"^\| ([^|]+) \|", table, re.M)[1:] for word in row.split(",")]
        self.assertEqual(sorted(words), sorted(check_words.WORDS))


if __name__ == "__main__":
    unittest.main()
