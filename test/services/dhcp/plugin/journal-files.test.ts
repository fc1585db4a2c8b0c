/** Whatever lies in the place of the journal or a file of it: the service says so and starts not, or goes on without it. */
import { expect, test } from "bun:test";
import { openMachine } from "../../../support/machine.ts";
import { network } from "../../../support/network.ts";
import { patchbayPlugins } from "../../../support/plugins.ts";
import { spoilings } from "../../../support/state-spoilings.ts";

const JOURNAL = "/run/leases", OUTSIDE = "/run/outside";
const directories = {
  "another's": 'chown 65534 "$P"',
  "one that its group can write": 'chmod 2770 "$P"',
  "a link to it": 'mv "$P" "$D/moved"; ln -s "$D/moved" "$P"',
  "a FIFO": 'rm -r "$P"; mkfifo "$P"',
};

const cases = [
  ...Object.entries(directories).map(([what, script]) => ({ path: JOURNAL, what, script })),
  ...Object.entries(spoilings).map(([what, script]) => ({ path: `${JOURNAL}/lock`, what, script })),
];

test("without a service, DEL ends with a warning; a service does not start", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const ipam = { type: "dhcp", daemonSocketPath: "/run/none.sock", dataDir: JOURNAL };
  const net = network(machine, { type: "dhcp", ipam });
  for (const { path, what, script } of cases) {
    await machine.sh(`mkdir -m 700 ${JOURNAL} ${OUTSIDE}; echo 1 >${JOURNAL}/lock; chmod 600 ${JOURNAL}/lock
      P=${path} D=${OUTSIDE}; ${script}`);
    const outside = () => machine.sh(`cd ${OUTSIDE}; find . -printf '%p %y %U %m %s\\n' | sort`),
      before = await outside();
    const deleted = await net.call("DEL", container);
    expect({ what, code: deleted.code, stderr: deleted.stderr })
      .toEqual({ what, code: 0, stderr: expect.stringContaining(`${path} is not trusted: `) });
    const daemon = ["timeout", "-s", "KILL", "100", `${patchbayPlugins()}/dhcp`, "daemon"];
    const started = await machine.run([...daemon, "-socketpath", "/run/s.sock", "-datadir", JOURNAL]);
    expect({ what, code: started.code, stderr: started.stderr })
      .toEqual({ what, code: 1, stderr: expect.stringContaining(`${path} is not trusted: `) });
    expect({ what, outside: await outside() }).toEqual({ what, outside: before });
    await machine.sh(`rm -rf ${JOURNAL} ${OUTSIDE}`);
  }
});

test("a record that is not trusted is passed over", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), record = `${JOURNAL}/net@ctr-c1@eth0.lease`;
  const ipam = { type: "dhcp", daemonSocketPath: "/run/none.sock", dataDir: JOURNAL };
  const net = network(machine, { type: "dhcp", ipam });
  for (const [what, script] of Object.entries(spoilings)) {
    await machine.sh(
      `mkdir -m 700 ${JOURNAL} ${OUTSIDE}; (umask 077; echo '{}' >'${record}'); P=${record} D=${OUTSIDE}; ${script}`,
    );
    expect({ what, code: (await net.call("DEL", container)).code }).toEqual({ what, code: 0 });
    expect({ what, code: (await net.call("STATUS", undefined)).code }).toEqual({ what, code: 1 });
    const listed = await machine.sh(`find ${JOURNAL} -mindepth 1 -printf '%f\\n' | sort`);
    expect(listed).toBe("lock\nnet@ctr-c1@eth0.lease\n");
    await machine.sh(`rm -rf ${JOURNAL} ${OUTSIDE}`);
  }
});
