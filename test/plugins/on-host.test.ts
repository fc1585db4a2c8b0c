/** Plugins that look at the host and the container: what follows from the links, addresses and rules that are there. */
import { describe, expect, test } from "bun:test";
import { fakeHost, type FakeLink, type FakeRule } from "../support/fake-host.ts";
import { tell } from "../support/story.ts";

const NETNS = "/run/netns/c1";
const veth1 = { name: "veth1", mac: "02:00:00:00:00:02" };
const eth0 = { name: "eth0", mac: "02:00:00:00:00:03", sandbox: NETNS };
const prevResult = {
  cniVersion: "1.1.0",
  interfaces: [veth1, eth0],
  ips: [{ address: "10.1.0.2/24", interface: 1 }],
};

const outside: FakeLink = { index: 7, name: "veth1", kind: "veth", link: 2, mac: veth1.mac, mtu: 1400 };
const inside: FakeLink = { index: 2, name: "eth0", kind: "veth", link: 7 };

function failure(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return (error as Error).message;
  }
}

describe("bandwidth", () => {
  const limits = { ingressRate: 8000, ingressBurst: 80_000, egressRate: 16_000, egressBurst: 80_000 };
  const check = (host = fakeHost([outside], [inside]), more: object = {}) =>
    failure(() => tell("bandwidth", "check", { prevResult, ...limits, ...more }, "", host));

  test("limits the host's end of the pair, and the ifb that it is redirected to", () => {
    const { list, result } = check() as ReturnType<typeof tell>;
    const name = "bwp623e1c388032", from = { name: "veth1", mac: veth1.mac };
    expect(list.map(([kind]) => kind)).toEqual(["traffic-limit", "ifb", "traffic-limit", "redirect"]);
    expect(list[0]![1]).toMatchObject({ link: from, limit: { rate: 1000, burst: 10_000 } });
    expect(list[1]![1]).toMatchObject({
      name,
      mtu: 1400,
      from: "veth1",
      network: "net",
      containerId: "c1",
      ifName: "eth0",
    });
    expect(list[2]![1]).toMatchObject({ link: { name }, limit: { rate: 2000, burst: 10_000 }, goesWithLink: true });
    expect(list[3]![1]).toEqual({ from, to: name });
    expect(result.interfaces!.map((one) => one.name)).toEqual(["veth1", "eth0", name]);
    const subnets = { shapedSubnets: ["10.0.0.0/8"] };
    const sides = (check(undefined, subnets) as ReturnType<typeof tell>).list.map(([, spec]) =>
      (spec as { subnets?: { side: string } }).subnets?.side
    );
    expect(sides).toEqual(["source", undefined, "destination", undefined]);
  });

  test("refuses what is no pair with its end on the host, in the reference plugin's words", () => {
    const alone = "container interface eth0 has no veth peer: ";
    expect(check(fakeHost([outside]))).toBe(`${alone}could not look up "eth0": Link not found`);
    expect(check(fakeHost([outside], []))).toBe(`${alone}could not look up "eth0": Link not found`);
    for (
      const other of [{ ...inside, kind: "macvlan" }, { ...inside, link: undefined }, { ...inside, kind: undefined }]
    ) {
      expect(check(fakeHost([outside], [other]))).toBe(`${alone}interface "eth0" was not a veth interface`);
    }
    for (const other of [{ ...outside, index: 8 }, { ...outside, kind: "dummy" }, { ...outside, link: 3 }]) {
      expect(check(fakeHost([other], [inside]))).toBe("veth peer with index 7 is not in host ns");
    }
    const notNamed = "no veth peer of container interface found in host ns";
    for (const interfaces of [[eth0], [{ ...veth1, sandbox: NETNS }], [{ ...veth1, name: "other" }]]) {
      expect(check(undefined, { prevResult: { ...prevResult, interfaces } })).toBe(notNamed);
    }
    expect(check(undefined, { prevResult: { ...prevResult, interfaces: [] } })).toBe("no interfaces provided");
  });

  test("takes back what may be gone", () => {
    const undo = (host: ReturnType<typeof fakeHost>, result: object = prevResult) =>
      tell("bandwidth", "undo", { prevResult: result }, "", host).list.map((
        [kind, spec],
      ) => [kind, (spec as { link?: { name: string } }).link?.name]);
    const two = ["bwp623e1c388032", "bwp7ad0b46a05cb"];
    const all = undo(fakeHost([outside], [inside]));
    expect(all[0]).toEqual(["traffic-limit", "veth1"]);
    expect(all.filter(([kind]) => kind === "traffic-limit").slice(1).map(([, name]) => name)).toHaveLength(
      two.length,
    );
    expect(undo(fakeHost([outside], [inside]), { ...prevResult, interfaces: [] })[0]).toEqual([
      "traffic-limit",
      "veth1",
    ]);
    expect(undo(fakeHost([], []))[0]).toEqual(["traffic-limit", ""]);
  });

  test("foresees the last interface that the plugins before would make on the host", () => {
    const plan = (interfaces: object[]) =>
      failure(() =>
        tell("bandwidth", "plan", { prevResult: { ...prevResult, interfaces }, ingressRate: 8, ingressBurst: 8 }).list
          .map(([, spec]) => (spec as { link: object }).link)
      );
    expect(plan([{ name: "cni0" }, veth1, eth0])).toEqual([veth1]);
    expect(plan([{ name: "cni0" }, eth0])).toEqual([{ name: "cni0", mac: "" }]);
    expect(plan([eth0])).toBe("no interfaces provided");
  });
});

describe("sbr", () => {
  const first = (family: 2 | 10): FakeRule => ({ family, table: 255, priority: 0 });
  const last = (family: 2 | 10): FakeRule => ({ family, table: 254, priority: 32766 });
  const ips = [
    { address: "10.1.0.2/24", interface: 1 },
    { address: "fd00::2/64", interface: 1 },
    { address: "10.9.0.2/24", interface: 0 }, // another's
    { address: "10.3.0.2/24", interface: 1 },
  ];
  const make = (...rules: FakeRule[]) =>
    tell("sbr", "make", { prevResult: { ...prevResult, ips }, table: 5 }, "", fakeHost([], [inside], rules)).list;

  test("with a table of the configuration, each address of the link has a rule before the second that is there", () => {
    const rule = (source: string, priority: number) => ["source-rule", { source, table: 5, priority }];
    const own: FakeRule = { family: 10, table: 1000, priority: 500 };
    expect(make(first(2), last(2), first(10), own, last(10)) as unknown[]).toEqual([
      rule("10.1.0.2", 32765),
      rule("fd00::2", 499),
      rule("10.3.0.2", 32764),
    ]);
    const priorities = (...rules: FakeRule[]) =>
      make(...rules).map(([, spec]) => (spec as { priority: number }).priority);
    expect(priorities(first(2))).toEqual([0x7ffd, 0x7ffd, 0x7ffc]);
    expect(priorities(first(2), { ...own, family: 2, priority: 1 })).toEqual([0, 0x7ffd, 0]);
  });
});

describe("vrf", () => {
  const red = { index: 9, name: "red", kind: "vrf", table: 7 };
  const make = (links: FakeLink[], table = 0) =>
    failure(() =>
      tell("vrf", "make", { prevResult, vrfname: "red", table }, "", fakeHost([], links)).list.map((
        [kind, spec],
      ) => [kind, (spec as { table: number }).table])
    );
  const of = (table: number) => [["vrf", table], ["vrf-member", table]];

  test("joins the one that is there, or makes one with the table of the configuration or a free one", () => {
    expect(make([inside, red])).toEqual(of(7));
    expect(make([inside, red], 7)).toEqual(of(7));
    expect(make([inside], 5)).toEqual(of(5));
    expect(make([inside])).toEqual(of(1));
    expect(make([inside, { ...red, name: "blue", table: 1 }])).toEqual(of(2));
  });

  test("refuses what cannot be joined", () => {
    const failed = "cmdAdd failed: ";
    expect(make([red])).toBe(`${failed}could not get link by name eth0`);
    expect(make([{ ...inside, master: 9 }, red])).toBe(`${failed}interface eth0 has already a master set: red`);
    expect(make([{ ...inside, master: 8 }])).toBe(`${failed}interface eth0 has already a master set: 8`);
    expect(make([inside, { ...red, kind: "dummy" }])).toBe(`${failed}Netlink red is not a VRF`);
    expect(make([inside, red], 8)).toBe(`${failed}VRF red already exist with different routing table 7`);
  });
});
