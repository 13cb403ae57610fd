# SPDX-License-Identifier: Apache-2.0
"""Times and medians. Contenders take turns within each round, so that a slow moment of the machine hits all of them."""
import statistics
import subprocess
import time


def now():
    return time.monotonic_ns() / 1e9


def seconds(argv, **more):
    """How long a command takes that must succeed."""
    begin = now()
    subprocess.run([str(word) for word in argv], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   timeout=600, **more)
    return now() - begin


def medians(rounds, contenders):
    """{name: median of the numbers that its function gave}; the functions take turns."""
    found = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, function in contenders.items():
            found[name].append(function())
    return {name: statistics.median(values) for name, values in found.items()}


def wait_until(condition, limit, pause=0.002):
    """Gives what `condition` gave when it first was true; an error after `limit` seconds."""
    end = now() + limit
    while not (value := condition()):
        if now() > end:
            raise TimeoutError(f"waited {limit} s in vain")
        time.sleep(pause)
    return value
