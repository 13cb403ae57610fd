# SPDX-License-Identifier: Apache-2.0
"""cmake/batch.py puts sources together only when every name keeps its meaning."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

BATCH = pathlib.Path(__file__).resolve().parents[2] / "cmake" / "batch.py"


def in_file(local, use="", before=""):
    return f'{before}#include <string>\n#include "a/h.h"\nnamespace overcap {{\nnamespace {{\n{local}\n}}  // namespace\n{use}\n}}\n'


class Batch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def units(self, sources, size=12):
        """What is compiled: a tuple of source names for each unit."""
        for name, text in sources.items():
            (self.root / name).write_text(text)
        lines = "".join(f"{self.root / name}\n" for name in sources)
        out = subprocess.run([sys.executable, "-B", BATCH, self.root, self.root / "units", "u", str(size)], input=lines,
                             capture_output=True, text=True, timeout=60, check=True).stdout
        return sorted(self.members(pathlib.Path(line)) for line in out.splitlines())

    def members(self, path):
        if path.parent.name != "units":
            return (path.name,)
        lines = path.read_text().splitlines()
        sources = [line for line in lines if line.endswith('.cc"')]
        self.assertEqual(lines[-len(sources):], sources)  # behind every header
        return tuple(line.split('"')[1] for line in sources)

    def assert_apart(self, one, other):
        self.assertEqual(self.units({"a.cc": one, "b.cc": other}), [("a.cc",), ("b.cc",)])

    def assert_together(self, one, other):
        self.assertEqual(self.units({"a.cc": one, "b.cc": other}), [("a.cc", "b.cc")])

    def test_what_shares_no_name_is_together(self):
        self.assert_together(in_file("int One() { return 1; }"), in_file("int Two() { return 2; }"))

    def test_local_names_of_every_kind_keep_apart(self):
        for local in ("int Shared() { return 1; }", "constexpr int Shared = 1;", "struct Shared { int a; };",
                      "enum Kind { kOther, Shared };", "using Shared = int;", "template <class T>\nT Shared(T t) { return t; }",
                      "const std::map<std::string, std::vector<int>> Shared[] = {{}};", "class Shared;",
                      "[[maybe_unused]] bool Shared(const std::string& text);"):
            with self.subTest(local):
                self.assert_apart(in_file(local), in_file("int Other();", "int Use() { return Shared(2); }"))
                self.assert_apart(in_file("int Other();", "int Use() { return Shared(2); }"), in_file(local))

    def test_static_names_and_macros_keep_apart(self):
        use = in_file("", "int Use() { return Shared(2); }")
        self.assert_apart("static int Shared(int a) { return a; }\n", use)
        self.assert_apart("#include <string>\n#define Shared(a) a\n", use)

    def test_names_inside_functions_strings_and_comments_do_not_count(self):
        self.assert_together(in_file("int One() { int inner = 1; return inner; }"), in_file("int Two() { int inner = 2; return inner; }"))
        self.assert_together(in_file("int One();"), in_file("// One\nconst char* two = \"One\";"))

    def test_what_changes_how_headers_are_read_stays_alone(self):
        plain = in_file("int Two();")
        for before in ("#define _SOMETHING 1\n", "#ifdef __linux__\n#include <poll.h>\n#endif\n", "#pragma GCC optimize(3)\n"):
            with self.subTest(before):
                self.assert_apart(in_file("int One();", before=before), plain)

    def test_tests_of_one_suite_are_together(self):
        self.assert_together(in_file("TEST(Suite, One) { EXPECT_TRUE(1); }"), in_file("TEST(Suite, Two) { EXPECT_TRUE(1); }"))

    def test_no_source_is_lost_and_units_are_of_the_size(self):
        sources = {f"f{n}.cc": in_file(f"int Name{n}();") for n in range(50)}
        units = self.units(sources, size=8)
        self.assertEqual(sorted(name for unit in units for name in unit), sorted(sources))
        self.assertLessEqual(max(map(len, units)), 12)
        self.assertLess(len(units), 20)

    def test_what_did_not_change_is_not_written_again_and_what_is_over_is_removed(self):
        sources = {f"f{n}.cc": in_file(f"int Name{n}();") for n in range(30)}
        self.units(sources, size=4)
        before = {path: path.stat().st_mtime_ns for path in (self.root / "units").iterdir()}
        self.units(sources, size=4)
        self.assertEqual({path: path.stat().st_mtime_ns for path in (self.root / "units").iterdir()}, before)
        self.units(sources, size=1000)
        self.assertEqual(len(list((self.root / "units").iterdir())), 1)


if __name__ == "__main__":
    unittest.main()
