# SPDX-License-Identifier: Apache-2.0
"""Power cuts while clients submit: what was acknowledged is there after the boot, nothing runs twice, no end changes."""
import storm
from overcap_rig import main, needs_root
from power_cut import Machine, PowerCut
from storm import Storm

GROUP = "clusters"
DEADLINE_SECONDS = 400


@needs_root
class PowerCuts(Machine):
    def test_power_cuts_take_nothing_that_was_acknowledged(self):
        self.ok("ls")
        weather = Storm(self, "power cuts")
        weather.run([PowerCut(weather)] * storm.CUTS)
        weather.check()


if __name__ == "__main__":
    main()
