#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one unittest file and writes a line of JSON per test as it ends, so that a suite that is killed still counts.

Usage: tools/run_unittest.py tests/cli/test_x.py REPORT [TEST]
"""
import importlib.util
import json
import pathlib
import sys
import unittest


class Reporter(unittest.TextTestResult):
    report = None  # an open file

    def note(self, what, name, **more):
        self.report.write(json.dumps({"what": what, "name": name, **more}) + "\n")
        self.report.flush()

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note("passed", test.id())

    def addError(self, test, err):
        super().addError(test, err)
        self.note("failed", test.id())

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note("failed", test.id())

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note("failed", subtest.id())

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note("skipped", test.id(), reason=reason)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.note("passed", test.id())

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note("failed", test.id())


def load(path):
    sys.path[0:1] = [str(path.parent), str(path.parent.parent)]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def main():
    path, report = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    loader = unittest.TestLoader()
    if len(sys.argv) > 3 and sys.argv[3]:
        loader.testNamePatterns = [f"*{sys.argv[3]}*"]
    tests = loader.loadTestsFromModule(load(path))
    with open(report, "w") as Reporter.report:
        result = unittest.TextTestRunner(verbosity=2, resultclass=Reporter).run(tests)
        Reporter.report.write('{"what": "finished"}\n')
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
