# SPDX-License-Identifier: Apache-2.0
"""What the documentation says exists: links lead somewhere, and the manual has every configuration key."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


class Docs(unittest.TestCase):
    def test_links_lead_to_files(self):
        broken = []
        for page in PAGES:
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
                if "://" not in target and not (page.parent / target).exists():
                    broken.append(f"{page.relative_to(ROOT)}: {target}")
        self.assertEqual(broken, [])

    def test_the_manual_lists_exactly_the_keys_that_exist(self):
        schema = (ROOT / "src" / "control" / "config_schema.cc").read_text()
        manual = (ROOT / "docs" / "manual" / "configuration.md").read_text()
        keys = set(re.findall(r'^    \{"([a-z_.*]+)", ConfigType', schema, re.M))
        self.assertGreater(len(keys), 5)
        self.assertEqual(set(re.findall(r"^\| `([a-z_.*]+)` \|", manual, re.M)), keys)

    def test_the_readme_has_every_verb(self):
        commands = (ROOT / "src" / "cli" / "commands").glob("*.md")
        readme = (ROOT / "README.md").read_text()
        verbs = {page.stem.replace("shell_init", "shell-init").replace("_", " ") for page in commands} - {"overcap", "agent", "daemon", "help", "version"}
        self.assertEqual([verb for verb in sorted(verbs) if f"`{verb.split()[0]}" not in readme], [])


if __name__ == "__main__":
    unittest.main()
