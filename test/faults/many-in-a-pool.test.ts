/** Two networks take a thousand addresses out of one pool at once, which has exactly as many. */
import { expect, test } from "bun:test";
import { type Machine, openMachine } from "../support/machine.ts";
import { type Answer, answerOf, environmentOf, patchbayPlugins, stdinOf } from "../support/plugins.ts";
import { POOLS, serve } from "../support/served-pool.ts";

const ADDRESSES = 1000, AT_ONCE = 32;
/** Half of the blocks are of many addresses, half of one each. */
const pool = {
  ranges: [{ cidr: "10.52.0.0/16", gateway: "10.52.255.254", from: "10.52.0.1", blockSize: 10 }],
  blocks: Array.from({ length: ADDRESSES / 10 }, (_, index) => index * 7),
};

/** The engine's networks and containers; a container's number says which network it is of. */
async function callAll(machine: Machine, command: string, numbers: readonly number[]): Promise<Answer[]> {
  const queue = [...numbers], answers: Answer[] = [], bin = patchbayPlugins();
  const lane = async () => {
    for (let number = queue.shift(); number !== undefined; number = queue.shift()) {
      const conf = { cniVersion: "1.1.0", name: nameOf(number), ipam: { type: "patchbay-cluster", pool: "lan" } };
      const call = {
        plugin: "patchbay-cluster",
        command,
        containerId: `c${number}`,
        ifName: "eth0",
        conf,
        env: { CNI_NETNS: "/dev/null" },
      };
      const outcome = await machine.run([`${bin}/patchbay-cluster`], {
        stdin: stdinOf(call),
        env: environmentOf(bin, call),
      });
      answers.push(answerOf(outcome));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return answers;
}

function nameOf(number: number): string {
  return number % 2 === 0 ? "even" : "odd";
}

/** The network of each lease. */
async function owners(machine: Machine): Promise<string[]> {
  const lines = await machine.sh(`cd ${POOLS}/lan; find . -name '10.*' -exec grep -hxE 'even|odd' {} + || true`);
  return lines.split("\n").slice(0, -1);
}

test("each address is given once, and GC of one network leaves the other's", async () => {
  await using machine = await openMachine();
  await serve(machine, pool);
  const all = Array.from({ length: ADDRESSES }, (_, index) => index);
  for (let round = 0; round < 2; round++) {
    const added = await callAll(machine, "ADD", all);
    expect(added.filter(({ code }) => code !== 0).map(({ stdout }) => stdout)).toEqual([]);
    expect(new Set(added.map(({ json }) => json.ips[0].address)).size).toBe(ADDRESSES);
    const [late] = await callAll(machine, "ADD", [ADDRESSES]);
    expect(late!.json).toMatchObject({
      code: 11,
      msg: expect.stringContaining("1000 of 1000 addresses in the 100 blocks"),
    });
    if (round === 0) {
      const deleted = await callAll(machine, "DEL", all);
      expect(deleted.filter(({ code }) => code !== 0)).toEqual([]);
      expect(await owners(machine)).toEqual([]);
    }
  }
  const conf = { cniVersion: "1.1.0", name: "even", ipam: { type: "patchbay-cluster", pool: "lan" } };
  const call = {
    plugin: "patchbay-cluster",
    command: "GC",
    conf: { ...conf, "cni.dev/valid-attachments": [{ containerID: "c0", ifname: "eth0" }] },
  };
  const bin = patchbayPlugins();
  const { code } = await machine.run([`${bin}/patchbay-cluster`], {
    stdin: stdinOf(call),
    env: environmentOf(bin, call),
  });
  expect(code).toBe(0);
  const left = await owners(machine);
  expect([left.filter((name) => name === "even").length, left.length]).toEqual([1, 1 + ADDRESSES / 2]);
});
