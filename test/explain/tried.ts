/** Networks of containers that real packets are tried on first, beside what `explain` says: the kernel is the judge. */
import { afterEach, expect } from "bun:test";
import type { ExplanationDocument } from "../../src/explain/explanation.schema.ts";
import { commandsOn, networkFiles } from "../support/commands.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { untilTrue } from "../support/until-true.ts";
import { UPLINK } from "../support/way-out.ts";

export const ipam = (subnet: string, more: object = {}) => ({
  type: "host-local",
  ranges: [[{ subnet, ...more }]],
  routes: [{ dst: "0.0.0.0/0" }],
});

/** A bridge that is a gateway; with a VLAN, of that. */
export const tagged = (vlan: number, subnet: string, more: object = {}) => [{
  type: "bridge",
  bridge: "vl0",
  isGateway: true,
  ipMasq: true,
  ...vlan > 0 && { vlan },
  ipam: ipam(subnet, more),
}];

export type Ask = readonly [from: string, to: string, address: string];

/** For the tests of a file, each of which opens its own host. */
export function triedByEchoes() {
  let machine: Machine;
  const { directory, configure } = networkFiles();
  const { patchbay, must } = commandsOn(() => machine, () => directory);
  afterEach(() => machine?.[Symbol.asyncDispose]());

  async function openHost(prepare = "true"): Promise<Container> {
    machine = await openMachine();
    const outside = await machine.container("outside");
    await machine.sh(`${UPLINK}; ${prepare}`);
    return outside;
  }

  /** The containers of each network, in the order of their addresses. */
  async function attach(networks: Record<string, { plugins: object[]; containers: string[] }>): Promise<void> {
    for (const [name, { plugins, containers }] of Object.entries(networks)) {
      configure(name, plugins);
      for (const container of containers) {
        await machine.container(container);
        await must("add", name, container);
      }
    }
  }

  /** `as`: the VRF of the sender. */
  async function reaches([from, , address]: Ask, as?: string): Promise<boolean> {
    const place = from === "host" ? [] : ["ip", "netns", "exec", from];
    const ping = ["ping", "-nc1", "-W1", ...as === undefined ? [] : ["-I", as], address];
    return (await machine.run([...place, ...ping])).code === 0;
  }

  async function explain(from: string, ...to: readonly string[]): Promise<ExplanationDocument> {
    // A stranger has another address than the one that is tried.
    const sender = from === "outside" ? "198.18.0.2" : from;
    const { stdout, stderr } = await patchbay(["explain", sender, ...to, "--json"]);
    if (stdout === "") throw new Error(stderr);
    return JSON.parse(stdout)[0];
  }

  async function passes(ask: Ask, verdict: "arrives" | "leaves"): Promise<void> {
    expect({ ask, isReached: await untilTrue(() => reaches(ask), Boolean) }).toEqual({ ask, isReached: true });
    expect(await explain(ask[0], ask[1])).toMatchObject({ verdict, ways: { stopped: 0 } });
  }

  /** Returns the lines that are printed to mend it. */
  async function stops(ask: Ask, code: string): Promise<string[]> {
    expect({ ask, isReached: await reaches(ask) }).toEqual({ ask, isReached: false });
    const said = await explain(ask[0], ask[1]);
    expect({ ask, ...said, steps: [] }).toMatchObject({ ask, verdict: "stops", cause: { code } });
    return said.cause!.mend.flatMap((remedy) => "run" in remedy ? remedy.run : []);
  }

  async function mends(ask: Ask, code: string, verdict: "arrives" | "leaves"): Promise<void> {
    const [line] = await stops(ask, code);
    expect({ ask, line: typeof line }).toEqual({ ask, line: "string" });
    await machine.sh(line!.replaceAll(/^patchbay /g, `${PATCHBAY} `));
    // Who has been probed in vain would be so a moment after real packets pass.
    await machine.sh("ip neighbour flush all; ip -all netns exec ip neighbour flush all");
    await passes(ask, verdict);
  }

  /** Another switch decides: nothing is claimed, whether packets get there or not. */
  async function isLeftOpen(ask: Ask, isReached: boolean, as?: string): Promise<void> {
    const found = isReached ? await untilTrue(() => reaches(ask, as), Boolean) : await reaches(ask, as);
    expect({ ask, isReached: found }).toEqual({ ask, isReached });
    expect({ ask, ...await explain(ask[0], ask[1]), steps: [] }).toMatchObject({
      ask,
      verdict: "unknown",
      cause: { code: "other-switch" },
    });
  }

  return { machine: () => machine, must, openHost, attach, reaches, explain, passes, stops, mends, isLeftOpen };
}
