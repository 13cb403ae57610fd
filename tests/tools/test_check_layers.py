# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers.py finds each kind of breach and nothing in a clean tree."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
MAP = """
src/base/      small things            <- nothing
src/sched/     pure                    <- base
src/clusters/  the seam                <- base
src/cli/       commands                <- base clusters
src/main/      all                     <- everything
"""


class CheckLayers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        (self.root / "ARCHITECTURE.md").write_text(MAP)
        self.write("src/CMakeLists.txt", "overcap_library(base)\novercap_library(cli DEPS overcap_clusters)\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def breaches(self):
        result = subprocess.run([sys.executable, SCRIPT, self.root], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 1 if result.stdout else 0, result.stderr)
        return result.stdout.splitlines()

    def assert_breach(self, name, text, expected):
        self.write(name, text)
        found = self.breaches()
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def test_a_clean_tree_passes(self):
        self.write("src/cli/x.cc", SPDX + '#include "base/text.h"\n#include <unistd.h>\nint Filesystem();\n')
        self.write("src/main/main.cc", SPDX + '#include "cli/x.h"\n#include "clusters/local/local_cluster.h"\n')
        self.assertEqual(self.breaches(), [])

    def test_an_include_against_the_layers_is_named_with_its_line(self):
        self.assert_breach("src/base/x.cc", SPDX + '\n#include "cli/x.h"\n',
                           "src/base/x.cc:3: 'base' may not include 'cli' (it may include: nothing)")

    def test_a_driver_is_named_only_in_its_folder_and_in_the_table(self):
        self.write("src/clusters/all_clusters.cc", SPDX + '#include "clusters/local/x.h"\n')
        self.assert_breach("src/cli/x.cc", SPDX + '#include "clusters/local/x.h"\n', "'clusters/local' may be named only")

    def test_the_scheduler_has_no_clock(self):
        self.assert_breach("src/sched/x.cc", SPDX + "#include <chrono>\n", "'sched' is pure")

    def test_json_stays_out_of_headers(self):
        self.assert_breach("src/base/x.h", SPDX + "#pragma once\n#include <nlohmann/json.hpp>\n", "in a header")

    def test_no_shell(self):
        for text in ("int a = system(cmd);", "FILE* f = ::popen(cmd, mode);", 'Run({"sh", "-c", text});',
                     'Run({"/bin/bash", "-lc", text});'):
            with self.subTest(text):
                self.assert_breach("src/base/x.cc", SPDX + text + "\n", "no shell")

    def test_a_comment_may_speak_of_system(self):
        self.write("src/base/x.cc", SPDX + "// never system() here\n")
        self.assertEqual(self.breaches(), [])

    def test_licence_line_and_length(self):
        self.assert_breach("src/base/x.cc", "int a;\n", "SPDX-License-Identifier")
        self.assert_breach("src/base/x.cc", SPDX + "int a;\n" * 801, "802 lines, the limit is 800")

    def test_cmake_may_not_link_past_the_map(self):
        self.assert_breach("src/CMakeLists.txt", "overcap_library(base DEPS overcap_cli)\n", "'base' may not link 'cli'")

    def test_two_types_of_one_name(self):
        for name in ("a", "b"):
            self.write(f"src/base/{name}.h", SPDX + "#pragma once\nnamespace overcap {\nstruct Both {\n};\n}\n")
        self.assertEqual(self.breaches(), ["src/base/b.h:4: 'overcap::Both' is also defined in src/base/a.h"])


if __name__ == "__main__":
    unittest.main()
