# SPDX-License-Identifier: Apache-2.0
"""Host lists mean to Overcap what they mean to the real `scontrol show hostnames`, on thousands of them."""
import os
import random
import re
import shutil
import subprocess
import unittest

from overcap_rig import REPOSITORY, Rig, main

ODD_CASES = REPOSITORY / "tests/data/slurm-22.05.8/hostlists.txt"
LISTS, BATCH = 5000, 100
PIECES = ("n", "node", "rack", "gpu-", "x", "nid", "a.b", "c1-", "d--", "0", "user@h", "_", "N")


def odd_cases():
    """(list, what Slurm 22.05.8 answers, what Overcap gives): hosts, or None for a refusal."""
    for line in ODD_CASES.read_text().splitlines():
        if line and not line.startswith("#"):
            words, slurm, ours = line.split("|")
            yield words, *(None if hosts == "refused" else hosts.split() for hosts in (slurm, ours))


def number(random_):
    text = str(random_.choice((random_.randrange(10), random_.randrange(120), random_.randrange(10**6))))
    return "0" * random_.choice((0, 0, 0, 1, 2, 3)) + text


def number_range(random_):
    first = number(random_)
    last = str(int(first) + random_.choice((0, 1, 2, 3, 9, 12)))
    form = random_.randrange(8)
    if form < 3:
        return first
    return f"{first}-{'0' * (form == 3)}{last if form < 6 else last.zfill(len(first))}"


def bracket(random_):
    return "[" + ",".join(number_range(random_) for _ in range(random_.choice((1, 1, 2, 3, 5)))) + "]"


def entry(random_):
    """One that Slurm reads: no text behind the last bracket."""
    brackets = random_.choice((0, 0, 1, 1, 1, 1, 2, 2, 3, 4))
    if brackets == 0:
        return random_.choice(PIECES[:6]) + random_.choice(("", number(random_), number(random_) + "-ib"))
    first = random_.choice(PIECES) + bracket(random_)
    rest = (random_.choice(("", *PIECES[:6])) + bracket(random_) for _ in range(brackets - 1))
    return first + "".join(rest)


def host_list(random_):
    entries = [entry(random_) for _ in range(random_.choice((1, 1, 1, 2, 3)))]
    return random_.choice((",", ",", ",", ", ", ",,")).join(entries)


class ExpandRig(Rig):
    def expand(self, *lists):
        return self.ok("env", "--expand", ",".join(lists)).out.split()


class HostLists(ExpandRig):
    def test_a_list_is_one_host_per_line(self):
        self.assertEqual(self.ok("env", "--expand", "rack[1-2]n[09-10],login3").out,
                         "rack1n09\nrack1n10\nrack2n09\nrack2n10\nlogin3\n")

    def test_text_behind_the_bracket_and_steps_are_understood(self):
        self.assertEqual(self.expand("gpu-[01-02]-ib", "n[0-8:4]"), ["gpu-01-ib", "gpu-02-ib", "n0", "n4", "n8"])

    def test_odd_cases_are_decided_on(self):
        for words, _, ours in odd_cases():
            with self.subTest(words):
                if ours is None:
                    self.refused("env", "--expand", words, says="host list '")
                else:
                    self.assertEqual(self.expand(words), ours)

    def test_what_is_compressed_expands_again(self):
        random_ = random.Random(3)
        for _ in range(30):
            hosts = self.expand(host_list(random_))
            compressed = self.ok("env", "--compress", *hosts).out.strip()
            self.assertEqual(self.expand(compressed), hosts, compressed)

    def test_a_list_of_100000_hosts_is_expanded(self):
        out = self.ok("env", "--expand", "n[000001-100000]").out
        self.assertEqual((out.count("\n"), out[:8], out[-8:]), (100000, "n000001\n", "n100000\n"))


@unittest.skipUnless(shutil.which("scontrol"), "NOT TESTED: there is no scontrol to compare host lists with")
class LikeScontrol(ExpandRig):
    def setUp(self):
        super().setUp()
        self.conf = self.root / "slurm.conf"  # it reads no more than that; no controller is asked
        self.conf.write_text("ClusterName=lists\nSlurmctldHost=localhost\nNodeName=n1 CPUs=1\n")
        version = self.scontrol("--version").stdout.split()[-1]
        self.recorded_version = version.startswith("22.05.")

    def scontrol(self, *args):
        return subprocess.run(["scontrol", *args], env={**os.environ, "SLURM_CONF": str(self.conf)}, text=True,
                              capture_output=True, timeout=30, stdin=subprocess.DEVNULL)

    def scontrol_hosts(self, *lists):
        """None when it refuses."""
        done = self.scontrol("show", "hostnames", ",".join(lists))
        return None if "Invalid" in done.stdout + done.stderr else done.stdout.split()

    def test_thousands_of_lists_expand_as_by_scontrol(self):
        random_ = random.Random(2205)
        lists = [host_list(random_) for _ in range(LISTS)]
        hosts = 0
        for begin in range(0, LISTS, BATCH):
            batch = lists[begin:begin + BATCH]
            expected = self.scontrol_hosts(*batch)
            hosts += len(expected or ())
            if expected is None or self.expand(*batch) != expected:
                for words in batch:  # one by one: which is it
                    self.assertEqual(self.expand(words), self.scontrol_hosts(words), words)
                self.fail(f"only together they differ: {batch}")
        self.assertGreater(hosts, 10 * LISTS)

    def test_scontrol_reads_what_overcap_compresses(self):
        random_ = random.Random(2206)
        compared = 0
        for _ in range(60):
            hosts = [name for name in self.scontrol_hosts(*(entry(random_) for _ in range(8)))
                     if not re.search(r"-ib$|[0-9]{19}$", name)][:300]  # which Slurm cannot write, or not read
            compressed = self.ok("env", "--compress", *hosts).out.strip()
            self.assertEqual(self.expand(compressed), hosts, compressed)
            if all(part.endswith("]") or "]" not in part for part in entries_of(compressed)):
                self.assertEqual(self.scontrol_hosts(compressed), hosts, compressed)
                compared += 1
        self.assertGreater(compared, 20)

    def test_the_odd_cases_are_still_what_scontrol_does(self):
        if not self.recorded_version:
            self.skipTest("NOT TESTED: the odd cases were recorded with Slurm 22.05")
        for words, slurm, _ in odd_cases():
            self.assertEqual(self.scontrol_hosts(words), slurm, words)


def entries_of(words):
    """A list cut at the commas outside of brackets."""
    depth, begin = 0, 0
    for at, char in enumerate(words):
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            yield words[begin:at]
            begin = at + 1
    yield words[begin:]


if __name__ == "__main__":
    main()
