/**
 * An IPAM plugin that is called by itself, as dranet's webhook does for devices of DRA: the namespace is /dev/null, the
 * interface a device's address on its bus, the container a claim's UUID, and the configuration has no `type`.
 */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { cni, GO_PLUGINS, patchbayPlugins } from "../support/plugins.ts";

const CLAIM = "9f1c2b1e-5d0e-4c52-9b61-0f4f3a1a7c55", DEVICES = ["0000-27-00-2", "0000-27-00-3"];
const conf = {
  cniVersion: "1.0.0",
  name: "dranet",
  ipam: {
    type: "host-local",
    ranges: [[{ subnet: "10.7.0.0/24" }], [{ subnet: "fd07::/64" }]],
    routes: [{ dst: "10.0.0.0/8" }],
  },
};
const LEASES = "/var/lib/cni/networks/dranet";

/** What each of the calls answers, and the leases after each. */
async function answersOf(bin: string) {
  await using machine = await openMachine();
  const call = async (command: string, device: string, change: object = {}) => {
    const env = { CNI_NETNS: "/dev/null" }, whole = { ...conf, ...change };
    const answer = await cni(machine, bin, {
      plugin: "host-local",
      command,
      containerId: CLAIM,
      ifName: device,
      conf: whole,
      env,
    });
    const leases = await machine.sh(`cd ${LEASES}; for file in [0-9f]*; do [ ! -e $file ] || grep -H '' $file; done`);
    const { ips, routes, msg } = answer.json ?? {};
    return { command, device, code: answer.code, ips, routes, msg, leases };
  };
  const answers = [];
  for (const device of DEVICES) answers.push(await call("ADD", device));
  const { ips, routes } = answers[0]!, prevResult = { cniVersion: conf.cniVersion, ips, routes };
  answers.push(await call("CHECK", DEVICES[0]!, { prevResult }));
  for (const device of [...DEVICES, ...DEVICES]) answers.push(await call("DEL", device));
  answers.push(await call("CHECK", DEVICES[0]!, { prevResult }));
  const moment = await quietMoment(machine);
  await call("ADD", DEVICES[0]!);
  await call("DEL", DEVICES[0]!, { prevResult });
  return { answers, left: await leftSince(moment, machine) };
}

test("host-local gives addresses to devices, and takes them back, as the reference plugin does", async () => {
  const { answers, left } = await answersOf(patchbayPlugins());
  expect(answers.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0, 0, 0, 1]);
  expect(answers[0]).toMatchObject({
    ips: [{ address: "10.7.0.2/24" }, { address: "fd07::2/64" }],
    leases: `10.7.0.2:${CLAIM}\r\n10.7.0.2:${DEVICES[0]}\nfd07::2:${CLAIM}\r\nfd07::2:${DEVICES[0]}\n`,
  });
  expect(answers[4]!.leases).toBe("");
  expect(left).toEqual([]);
  expect(answers).toEqual((await answersOf(GO_PLUGINS)).answers);
});
