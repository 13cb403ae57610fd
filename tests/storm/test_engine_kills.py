# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the engine and of agents while clients submit: no job is missing, none runs twice, and no client sees an error."""
import storm
from overcap_rig import Rig, main
from storm import AgentKill, EngineKill, SharedEngineKill, Storm
from system_rig import SystemRig

DEADLINE_SECONDS = 400


class OwnEngine(Rig):
    def test_kills_of_ones_own_engine_are_noticed_by_nobody(self):
        self.ok("ls")
        weather, kill = Storm(self), EngineKill(self)
        weather.run([kill] * storm.KILLS)
        weather.check()


    def test_kills_of_agents_too_are_told_and_nothing_runs_twice(self):
        self.ok("ls")
        weather = Storm(self)
        weather.run([EngineKill(self), AgentKill(self)] * storm.AGENTS)
        weather.check()


class SharedEngine(SystemRig):
    def test_kills_of_the_shared_engine_are_noticed_by_nobody(self):
        weather = Storm(self)
        weather.run([SharedEngineKill(self, weather.rng)] * storm.KILLS)
        weather.check()


if __name__ == "__main__":
    main()
