# SPDX-License-Identifier: Apache-2.0
"""What the tests of elastic launches share: agents that are nodes of their own, and what they tell."""
import json
import os
import signal

from launch_rig import LaunchRig

# Leaves facts/EPOCH-RANK with what a rank is told, then does what follows.
TELL = ('{ for v in RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK ROLE_RANK MASTER_ADDR MASTER_PORT TORCHELASTIC_RUN_ID '
        'TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS TORCHELASTIC_USE_AGENT_STORE TORCHELASTIC_ERROR_FILE; do '
        'eval echo "$v=\\$$v"; done; echo "PID=$$"; } > "$FACTS/new-$OVERCAP_ELASTIC_EPOCH-$RANK" && mv "$FACTS/new-$OVERCAP_ELASTIC_EPOCH-$RANK" "$FACTS/$OVERCAP_ELASTIC_EPOCH-$RANK"; ')
STAY = 'while [ ! -e "$FACTS/go" ]; do sleep 0.02; done'


class ElasticRig(LaunchRig):
    patience = 2

    def setUp(self):
        super().setUp()
        self.agents = {}
        self.env["OVERCAP_RDZV_KEY"] = "agents that are nodes have no home in common"

    def tearDown(self):
        for agent in self.agents.values():
            for stream in (agent.stdout, agent.stderr):
                stream.close()
        super().tearDown()

    def agent(self, name, *args, env=None, **options):
        """Starts an agent that has an OVERCAP_HOME of its own."""
        home = self.root / f"home-{name}"
        self.agents[name] = self.start("launch", *args, env={"OVERCAP_HOME": str(home), **(env or {})}, **options)
        return self.agents[name]

    def ended_agent(self, name, deadline=None):
        return self.finish(self.agents.pop(name), deadline)

    def agent_folder(self, name):
        return (self.root / f"home-{name}" / "launches" / "latest").resolve(strict=True)

    def events(self, name, kind=None):
        try:
            lines = (self.agent_folder(name) / "events.jsonl").read_text().splitlines()
        except FileNotFoundError:
            return []
        found = [json.loads(line) for line in lines]
        return [event for event in found if kind is None or event["event"] == kind]

    def told(self, epoch, rank):
        path = self.facts / f"{epoch}-{rank}"
        return dict(line.split("=", 1) for line in path.read_text().splitlines()) if path.exists() else None

    def until_epoch(self, epoch, ranks, deadline=None):
        """Waits until so many ranks run in this epoch, and gives what they were told."""
        self.until(lambda: all(self.told(epoch, rank) for rank in range(ranks)), f"{ranks} ranks of epoch {epoch}", deadline)
        places = [self.told(epoch, rank) for rank in range(ranks)]
        for place in places:
            self.assertEqual(place["WORLD_SIZE"], str(ranks), places)
        return places

    def go(self):
        (self.facts / "go").touch()

    def kill_rank(self, epoch, rank):
        os.kill(int(self.told(epoch, rank)["PID"]), signal.SIGKILL)
