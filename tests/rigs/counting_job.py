# SPDX-License-Identifier: Apache-2.0
"""A job that can be preempted and loses nothing: what tests of sharing run, in python with python/overcap on its path."""

# Counts steps until $FACTS/finish is there, and saves when it is told to stop.
COUNTING_JOB = """
from overcap import checkpoint
import os, time
state = checkpoint.load({"step": 0})
print(f"attempt {os.environ['OVERCAP_ATTEMPT']} begins at step {state['step']}", flush=True)
while not os.path.exists(os.path.join(os.environ["FACTS"], "finish")):
    time.sleep(0.01)
    state["step"] += 1
    if checkpoint.should_stop():
        checkpoint.save(state)
        print(f"saved step {state['step']}", flush=True)
        checkpoint.exit()
print(f"done at step {state['step']}", flush=True)
"""
