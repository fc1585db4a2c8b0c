/** Who else has a port of one address of the host, in both families. test/kernel/port-rivals.test.ts has connections. */
import { expect, test } from "bun:test";
import { openMachine } from "../../support/machine.ts";
import { drive, type Step } from "../../support/resources.ts";

type Backend = "iptables" | "nftables";

const kind = "port-mappings";
const specOf = (number: number, backend: Backend, hostIp?: string, hostPort = 8080) => ({
  network: "net",
  containerId: `ctr-${number}`,
  ifName: "eth0",
  backend,
  addresses: [`10.88.0.${number}/16`, `fd00:10:88::${number}/64`],
  mappings: [{ protocol: "tcp", hostPort, containerPort: 80, hostIp }],
  markBit: 13,
});
/** Ports that keep their number become an interval. */
const runOf = (hostIp: string) => {
  const mappings = Array.from(
    { length: 20 },
    (_, at) => ({ protocol: "tcp", hostPort: 9000 + at, containerPort: 9000 + at, hostIp }),
  );
  return { ...specOf(3, "nftables"), mappings };
};

/** For a claim of the address by the other backend: whether this container loses the port, or wins it. */
async function outcomes(
  held: unknown[],
  claims: [backend: Backend, hostIp?: string, port?: number][],
): Promise<string[]> {
  await using machine = await openMachine();
  const steps: Step[] = [
    ...held.map((spec): Step => ({ verb: "apply", kind, spec })),
    ...claims.map(([backend, hostIp, port]): Step => ({
      verb: "rivals",
      kind,
      spec: specOf(9, backend, hostIp, port),
    })),
  ];
  const [applied, told] = [held.length, await drive(machine, steps)];
  expect(told.slice(0, applied)).toEqual(held.map(() => "applied"));
  return (told.slice(applied) as { here: string[]; elsewhere: string[] }[]).map(({ here, elsewhere }) =>
    [...here.map(() => "loses"), ...elsewhere.map(() => "wins")].join(" and ")
  );
}

for (const [mine, other] of [["192.0.2.1", "192.0.2.2"], ["fd00::1", "fd00::2"]] as const) {
  test(`${mine}: in our table, the claim by iptables wins what it meets`, async () => {
    const held = [specOf(1, "nftables", mine), runOf(mine)];
    expect(
      await outcomes(held, [
        ["iptables", mine],
        ["iptables", other],
        ["iptables"],
        ["iptables", mine, 9019],
        ["iptables", mine, 9020],
        ["iptables", other, 9000],
      ]),
    ).toEqual(["wins", "", "wins", "wins", "", ""]);
  });

  test(`${mine}: in iptables' tables, the claim in ours loses it where all of it is covered`, async () => {
    const held = [specOf(1, "iptables", mine)];
    expect(await outcomes(held, [["nftables", mine], ["nftables", other], ["nftables"], ["nftables", mine, 8081]]))
      .toEqual(["loses", "", "", ""]);
  });

  test(`${mine}: in iptables' tables, a claim there loses it, and one of all addresses keeps the others`, async () => {
    const held = [specOf(1, "iptables", mine)];
    expect(await outcomes(held, [["iptables", mine], ["iptables", other], ["iptables"]])).toEqual(["loses", "", ""]);
  });
}

test("a port of all addresses is met by each, and a container is no rival of itself", async () => {
  expect(await outcomes([specOf(1, "iptables")], [["nftables", "192.0.2.1"], ["nftables", "fd00::1"], ["nftables"]]))
    .toEqual(["loses", "loses", "loses"]);
  expect(await outcomes([specOf(9, "iptables")], [["nftables"]])).toEqual([""]);
  // It keeps its other addresses when a claim wins one.
  expect(await outcomes([specOf(1, "nftables")], [["iptables", "192.0.2.1"], ["iptables"]])).toEqual(["", "wins"]);
});
