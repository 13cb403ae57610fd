# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the engine and of agents while clients submit: no job is missing, none runs twice, and no client sees an error."""
import storm
from disasters import AgentKill, EngineKill, SharedEngineKill
from overcap_rig import Rig, main
from storm import Storm
from system_rig import SystemRig

DEADLINE_SECONDS = 400


class OwnEngine(Rig):
    def test_no_client_notices_kills_of_ones_own_engine(self):
        self.ok("ls")
        weather, kill = Storm(self, "kills of one's own engine"), EngineKill(self)
        weather.run([kill] * storm.KILLS)
        weather.check()

    def test_what_a_killed_agent_ran_is_reported_as_lost_and_nothing_runs_twice(self):
        self.ok("ls")
        weather = Storm(self, "kills of engines and agents in turns")
        weather.run([EngineKill(self), AgentKill(self)] * storm.AGENTS)
        weather.check()


class SharedEngine(SystemRig):
    def test_no_client_notices_kills_of_the_shared_engine(self):
        weather = Storm(self, "kills of the shared engine")
        weather.run([SharedEngineKill(self, weather.rng)] * storm.KILLS)
        weather.check()


if __name__ == "__main__":
    main()
