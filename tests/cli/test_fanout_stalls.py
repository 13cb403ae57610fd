# SPDX-License-Identifier: Apache-2.0
"""`overcap fanout` with a peer that stops answering and a node that says nothing for a minute. Takes that minute."""
from fanout_rig import FanoutRig
from overcap_rig import main

DEADLINE_SECONDS = 400


class Stalls(FanoutRig):
    def test_who_falls_silent_is_left_and_named(self):
        self.fill(files=40)
        self.programs({"host1": self.rogue("silent"), "host2": self.after_rogue(), "host3": self.after_rogue(), "host4": self.rogue("mute")})
        done, said = self.fanout("--ssh-only", deadline=180)
        self.assertEqual((done.status, said["complete"], said["failed"]), (5, 3, 1), str(done))
        self.assertIn("nothing was heard of it for 60 s", self.node(said, "host4")["error"]["message"])
        for name in ("host2", "host3"):
            self.assert_same(name)
            self.assertIn(f"host '{name}' could not fetch from host 'host1' any more", done.err)
            self.assertNotEqual(self.node(said, name)["from"], "host1", said)


if __name__ == "__main__":
    main()
