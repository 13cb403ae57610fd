# SPDX-License-Identifier: Apache-2.0
"""`./bench --beside`: what it makes of two programs' rows."""
import contextlib
import io
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
sys.dont_write_bytecode = True
import run  # noqa: E402
from rows import Row, Setting  # noqa: E402

NOW, BEFORE = Setting(pathlib.Path("now"), pathlib.Path("p"), True, 2), Setting(pathlib.Path("before"), pathlib.Path("p"), True, 2)


def rows(now, before, **more):
    """A row function that gives `now` for this build and `before` for the other, and notes the order."""
    def function(setting):
        function.order.append(str(setting.overcap))
        yield Row("a row", now if setting is NOW else before, "ms", 100, 50, **more)
    function.order = []
    return function


class Beside(unittest.TestCase):
    def run_it(self, function):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                run.run_beside({"name": function}, NOW, BEFORE, 3)
            except SystemExit as end:
                return out.getvalue(), end.code
        return out.getvalue(), None

    def test_the_programs_take_turns_and_each_goes_first(self):
        function = rows(10, 10)
        _, end = self.run_it(function)
        self.assertIsNone(end)
        self.assertEqual(function.order, ["now", "before", "before", "now", "now", "before"])

    def test_a_time_that_grew_by_a_quarter_is_a_loss_and_named(self):
        out, end = self.run_it(rows(12.5, 10))
        self.assertIn("0.80x", out)
        self.assertIn("a row (0.80x)", end)

    def test_a_rate_that_fell_is_a_loss_and_one_that_rose_is_none(self):
        self.assertIn("0.50x", self.run_it(rows(5, 10, more_is_better=True))[1])
        self.assertIsNone(self.run_it(rows(20, 10, more_is_better=True))[1])

    def test_a_tenth_more_time_is_allowed(self):
        self.assertIsNone(self.run_it(rows(11, 10))[1])

    def test_values_below_zero_are_shown_without_a_ratio(self):
        out, end = self.run_it(rows(-276, 12))
        self.assertIsNone(end)
        self.assertIn("| -276.0 ms | 12.0 ms | - |", out)

    def test_a_row_that_breaks_is_a_failure(self):
        def broken(setting):
            raise TimeoutError("never came")
            yield
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertIn("not measured", self.run_it(broken)[1])

    def test_bad_words_end_with_one_line(self):
        for words in (["--beside"], ["--beside", "/nonexistent"], ["--besides"], ["--turns"], ["--turns", "0"], ["--turns", "x"]):
            with self.assertRaises(SystemExit) as end:
                run.read_words(words)
            self.assertEqual(len(str(end.exception.code).splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
