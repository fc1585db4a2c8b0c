/** What `explain` says of a packet, beside what becomes of real ones: the kernel is the judge. */
import { expect } from "bun:test";
import { type ExplanationDocument, explanations } from "../../src/explain/explanation.schema.ts";
import type { Container, Machine, Outcome } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";
import type { Network } from "../support/network.ts";
import { serve, type Server } from "../support/traffic.ts";
import { untilTrue } from "../support/until-true.ts";
import type { SetUp } from "./set-ups.ts";

export interface Judged {
  machine: Machine;
  explain(ask: readonly string[]): Promise<{ code: number; said: ExplanationDocument }>;
  /** Whether real packets get there and back. */
  isAnswered(ask: readonly string[]): Promise<boolean>;
}

export function explaining(patchbay: (args: readonly string[]) => Promise<Outcome>): Judged["explain"] {
  return async (ask) => {
    const { code, stdout, stderr } = await patchbay(["explain", ...ask, "--json"]);
    if (stdout === "") throw new Error(`explain ${ask.join(" ")}: ${stderr}`);
    return { code, said: explanations.parse(JSON.parse(stdout))[0]! };
  };
}

interface Places {
  containers: Readonly<Record<string, Container>>;
  addresses: Readonly<Record<string, string>>;
  /** One for each protocol, whatever its port. */
  askers: Readonly<Record<string, Server>>;
}

/** Asks by an echo, or as servers of traffic.ts are asked. */
export function asking(machine: Machine, { containers, addresses, askers }: Places): Judged["isAnswered"] {
  return async ([from, to, protocol = "icmp"]) => {
    const place = containers[from!], [, name = to!, ownPort] = /^([^:]+):([0-9]+)$/.exec(to!) ?? [];
    const address = addresses[name] ?? name, [kind, port = ownPort] = protocol.split("/") as [string, string?];
    if (kind === "icmp") return (await machine.run(["ping", "-nc1", "-W1", address], { in: place })).code === 0;
    return await askers[kind]!.ask(place, address, Number(port)) !== undefined;
  };
}

export async function expectPasses(at: Judged, ask: readonly string[], verdict: "arrives" | "leaves") {
  expect(await untilTrue(() => at.isAnswered(ask), Boolean)).toBe(true);
  const { said, code } = await at.explain(ask);
  expect({ ...said, steps: [] }).toMatchObject({ verdict, ways: { stopped: 0 } });
  expect(code).toBe(0);
  return said;
}

/** What is broken is stopped for real; what is printed mends it. */
export async function expectStopped(at: Judged, setUp: SetUp, mended = /arrives|leaves/): Promise<void> {
  const { break: script, ask, code, verdict = "stops", mend, owner, sometimes } = setUp;
  await at.machine.sh(script);
  if (sometimes) expect(new Set([await at.isAnswered(ask), await at.isAnswered(ask)]).size).toBe(2);
  else expect(await at.isAnswered(ask)).toBe(false);
  const { said, code: status } = await at.explain(ask);
  expect({ ...said, steps: [] }).toMatchObject({ verdict, cause: { code, ...owner && { owner } } });
  expect(status).toBe(verdict === "stops" ? 1 : 2);
  const printed = said.cause!.mend.flatMap((remedy) => "run" in remedy ? remedy.run : []).slice(0, 1);
  if (mend === "printed") expect(printed).toHaveLength(1);
  if (mend === "none") expect(printed).toEqual([]);
  const lines = mend === "printed" ? printed[0]! : mend === "none" ? "" : mend.script;
  if (lines === "") return;
  await at.machine.sh(lines.replaceAll(/^patchbay /g, `${PATCHBAY} `));
  expect(await untilTrue(() => at.isAnswered(ask), Boolean)).toBe(true);
  // On a busy machine, the kernel may be asking a neighbour anew in just this moment, and the verdict is "unknown".
  await untilTrue(() => at.explain(ask), ({ said }) => mended.test(said.verdict));
}

/**
 * `web` and `jug`, which a network attaches, and whom else they ask. They serve port 80, and `other` port 7000. In a set-up,
 * `$port` is web's end on the host.
 */
export async function judgedOn(
  machine: Machine,
  net: Network,
  other: Container,
  addresses: Record<string, string> = {},
) {
  const containers: Record<string, Container> = { outside: other }, ports: string[] = [], servers: Server[] = [];
  for (const name of ["web", "jug"]) {
    const container = containers[name] = await machine.container(name);
    const { ips: [{ address }], interfaces } = await net.add(container);
    addresses[name] = address.split("/")[0];
    ports.push(interfaces.find(({ name }: { name: string }) => name.startsWith("veth"))?.name ?? "");
    servers.push(await serve(machine, container, "tcp", 80));
  }
  servers.push(await serve(machine, other, "tcp", 7000));
  const sh: Machine["sh"] = (script, options) => machine.sh(`port=${ports[0]}; ${script}`, options);
  const judged: Judged = {
    machine: { ...machine, sh },
    explain: explaining((args) => machine.run([PATCHBAY, ...args])),
    isAnswered: asking(machine, { containers, addresses, askers: { tcp: servers[0]! } }),
  };
  const end = async () => {
    for (const server of servers) await server[Symbol.asyncDispose]();
  };
  return { ...judged, [Symbol.asyncDispose]: end };
}

/** Also what somebody has told `web` of its neighbours. */
export async function mendAll({ machine }: Judged, undo = "true"): Promise<void> {
  await machine.sh(`${undo}; nft flush ruleset; ip -n web neighbour flush all nud permanent`);
  await machine.run([PATCHBAY, "repair"]);
}

/** What is printed mends it, unless `more` says otherwise. */
export const setUpOf = (
  what: string,
  script: string,
  ask: readonly string[],
  code: string,
  more: Partial<SetUp> = {},
): SetUp => ({
  what,
  break: script,
  ask,
  code,
  mend: "printed",
  ...more,
});
