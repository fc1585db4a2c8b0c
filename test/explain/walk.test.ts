/** The walk over facts that are plain data, for what a test host can hardly be. */
import { describe, expect, test } from "bun:test";
import type { NetnsFacts, World } from "../../src/explain/facts.ts";
import { AttachmentIndex } from "../../src/explain/attachment-index.ts";
import { hostFindings } from "../../src/explain/host-findings.ts";
import { explain } from "../../src/explain/walk/walk.ts";
import type { LinkAddress } from "../../src/ffi/netlink/route/address.ts";
import type { Link } from "../../src/ffi/netlink/route/link.ts";
import type { RouteAnswer } from "../../src/ffi/netlink/route/route-question.ts";
import type { HookName, Rule, RuleChain } from "../../src/net/netfilter/ruleset.ts";
import { newBudget } from "../../src/net/netfilter/traversal.ts";
import { parseAddress, parsePrefix } from "../../src/net/address.ts";

const ENETUNREACH = 101, EHOSTUNREACH = 113, RTN_LOCAL = 2;
const dst = { bytes: new Uint8Array(4), bits: 0 };
const address = (text: string) => parseAddress(text)!;

function link(index: number, name: string, more: Partial<Link> = {}): Link {
  return {
    index,
    name,
    flags: 1,
    up: true,
    hasCarrier: true,
    mac: `02:00:00:00:00:0${index}`,
    mtu: 1500,
    ...more,
  } as Link;
}

function own(linkIndex: number, text: string): LinkAddress {
  return { ...parsePrefix(text)!, linkIndex, scope: 0 } as LinkAddress;
}

/** A host with two uplinks that the default route has at once, and whose only address is 198.18.0.1. */
function hostWith(facts: Partial<NetnsFacts> = {}): NetnsFacts {
  const links = [link(1, "lo"), link(2, "up0"), link(3, "up1")];
  const hops = [{ oif: 2, gateway: address("198.18.0.2") }, { oif: 3, gateway: address("198.18.1.2") }];
  const routes = (destination: Uint8Array): RouteAnswer => {
    if (destination.join(".") === "198.18.0.1") {
      return { dst: { bytes: destination, bits: 32 }, oif: 1, type: RTN_LOCAL };
    }
    return {
      dst,
      oif: 0,
      type: 1,
      table: 254,
      hops: hops.map((hop) => ({ ...hop, flags: 0, attributes: new Uint8Array() })),
    };
  };
  return {
    label: "this host",
    links: () => links,
    addresses: () => [own(2, "198.18.0.1/24")],
    route: ({ destination }) => routes(destination),
    routingRules: () => undefined,
    netnsId: () => undefined,
    sourceFor: () => undefined,
    neighbours: () => 0,
    neighbour: () => undefined,
    portBehind: () => undefined,
    filtered: () => new Set(),
    vlansOf: () => [],
    rules: () => ({ chains: [], setOf: () => undefined }),
    sysctl: () => "0",
    listening: () => [],
    ...facts,
  };
}

function worldOf(host: NetnsFacts): World {
  return {
    host,
    acrossFrom: () => undefined,
    publisherOf: () => undefined,
    endOf: () => undefined,
    isSwitched: () => false,
    holderOf: () => undefined,
  };
}

const flow = {
  family: 4,
  protocol: 6,
  source: address("198.18.0.1"),
  destination: address("192.0.2.9"),
  destinationPort: 80,
} as const;
const ask = (host: NetnsFacts) => explain(worldOf(host), { netns: host }, flow);

describe("two next hops", () => {
  test("both are walked, and both leave", () => {
    expect(ask(hostWith())).toMatchObject({ verdict: "leaves", ways: { all: 2, stopped: 0 } });
  });

  test("one of two stops where its link is down", () => {
    const links = [link(1, "lo"), link(2, "up0"), link(3, "up1", { up: false })];
    expect(ask(hostWith({ links: () => links }))).toMatchObject({
      verdict: "stops",
      ways: { all: 2, stopped: 1 },
      end: { cause: { code: "link-down", what: "up1" } },
    });
  });
});

test("without a route the host's own packet stops", () => {
  expect(ask(hostWith({ route: () => ({ errno: ENETUNREACH }) }))).toMatchObject({
    verdict: "stops",
    end: { cause: { code: "no-route" } },
  });
});

test("what mends a container's forwarding is run in the container", () => {
  const inside = hostWith({
    container: { netnsPath: "/run/netns/web", operand: "web", attached: [] },
    route: ({ inputLink }) => inputLink === undefined ? { dst, oif: 3, type: 1 } : { errno: EHOSTUNREACH },
  });
  const [, input] = inside.links();
  expect(explain(worldOf(hostWith()), { netns: inside, input }, { ...flow, source: address("203.0.113.9") }))
    .toMatchObject({
      end: {
        cause: {
          code: "forwarding-off",
          mend: [{ run: "nsenter --net=/run/netns/web sysctl -w net.ipv4.ip_forward=1" }],
        },
      },
    });
});

test("a bridge within a container takes what is for the container", () => {
  const links = [link(1, "lo"), link(2, "eth0", { master: 3, kind: "veth" }), link(3, "br0", { kind: "bridge" })];
  const inside = hostWith({ links: () => links, addresses: () => [own(3, "198.18.0.1/24")] });
  const asked = { ...flow, source: address("192.0.2.9"), destination: address("198.18.0.1") };
  const { steps } = explain(worldOf(hostWith({ addresses: () => [] })), { netns: inside, input: links[1] }, asked);
  expect(steps.map(({ text }) => text)).toContain("br0 has 198.18.0.1, and takes it from eth0");
});

test("rules that cannot be read leave it open", () => {
  expect(ask(hostWith({ rules: () => undefined }))).toMatchObject({
    verdict: "unknown",
    end: { cause: { code: "rules-unread" } },
  });
});

test("an XDP program, and filters of tc, leave it open", () => {
  const links = [link(1, "lo"), link(2, "up0", { hasXdp: true }), link(3, "up1")];
  expect(ask(hostWith({ links: () => links }))).toMatchObject({ verdict: "unknown" });
  expect(ask(hostWith({ filtered: () => new Set([2, 3]) }))).toMatchObject({
    verdict: "unknown",
    end: { cause: { code: "kernel-program" } },
  });
});

test("rules that jump without an end are not all looked at, on no way", () => {
  let looked = 0;
  const jumps = (chain: string) =>
    Array.from({ length: 3 }, (_, at): Rule => ({
      handle: BigInt(at + 1),
      get operations(): Rule["operations"] {
        looked++;
        return [{ does: "verdict", verdict: { kind: "jump", chain } }];
      },
    }));
  const own = { family: "inet", table: "own" } as const;
  const base = (hook: HookName) => ({ hook, priority: 0, type: "filter", policy: "accept" }) as const;
  const chains: RuleChain[] = [
    { ...own, name: "d0", rules: [] },
    ...Array.from({ length: 14 }, (_, at) => ({ ...own, name: `d${at + 1}`, rules: jumps(`d${at}`) })),
    ...(["output", "postrouting"] as const).map((hook) => ({
      ...own,
      name: hook,
      base: base(hook),
      rules: jumps("d14"),
    })),
  ];
  expect(ask(hostWith({ rules: () => ({ chains, setOf: () => undefined }) }))).toMatchObject({ verdict: "unknown" });
  const looksAtOneRule = 2;
  expect(looked).toBeLessThan(newBudget().left * looksAtOneRule * 1.5);
});

test("which of two tables is called first is not known, and no chance: what that decides is left open", () => {
  const at = (table: string, operations: Rule["operations"]): RuleChain => ({
    ...{ family: "inet", table, name: "out", rules: [{ handle: 1n, operations }] },
    base: { hook: "output", priority: 0, type: "filter", policy: "accept" },
  });
  const value = Uint8Array.of(1, 0, 0, 0);
  const chains = [
    at("marks", [{ does: "put", into: 0, value }, { does: "set meta", key: "mark", from: 0 }]),
    at("drops", [
      { does: "meta", key: "mark", into: 0 },
      { does: "compare", register: 0, how: "==", value },
      { does: "verdict", verdict: { kind: "drop" } },
    ]),
  ];
  expect(ask(hostWith({ rules: () => ({ chains, setOf: () => undefined }) }))).toMatchObject({
    verdict: "unknown",
    end: { cause: { code: "undecided", text: expect.stringContaining("which table is called first") } },
  });
});

test("routes that lead round in circles end", () => {
  const links = [link(1, "lo"), link(2, "up0", { kind: "bridge" }), link(3, "port", { master: 2, kind: "veth" })];
  const host = hostWith({
    links: () => links,
    route: ({ destination }) => ({ dst: { bytes: destination, bits: 32 }, oif: 2, type: 1 }),
  });
  const explanation = ask(host);
  expect(explanation.verdict).toBe("unknown");
  expect(explanation.steps.length).toBeLessThan(50);
});

describe("what concerns the host", () => {
  const codesOf = (facts: Partial<NetnsFacts>) =>
    hostFindings(hostWith(facts), new AttachmentIndex([]), () => "").map(({ code }) => code);
  const sysctls = (values: Record<string, string>) => (key: string) => values[key];

  test("tables that are nearly full, and those that are not", () => {
    const thresholds = { "net/ipv4/neigh/default/gc_thresh3": "1000", "net/ipv6/neigh/default/gc_thresh3": "1000" };
    const at = (count: number) => codesOf({ neighbours: () => count, sysctl: sysctls(thresholds) });
    expect(at(950)).toEqual(["neighbours-full", "neighbours-full"]);
    expect(at(100)).toEqual([]);
    const connections = (count: string) =>
      codesOf({
        sysctl: sysctls({ "net/netfilter/nf_conntrack_count": count, "net/netfilter/nf_conntrack_max": "100" }),
      });
    expect(connections("95")).toEqual(["connections-full"]);
    expect(connections("5")).toEqual([]);
  });

  test("a bridge with nearly all of its ports", () => {
    const links = [
      link(1, "br0", { kind: "bridge" }),
      ...Array.from({ length: 1000 }, () => link(2, "port", { master: 1 })),
    ];
    expect(codesOf({ links: () => links, sysctl: () => undefined })).toEqual(["bridge-full"]);
  });

  test("rules in both kinds of tables", () => {
    const chain = (isLegacy?: true): RuleChain => ({
      ...{ family: "ip", table: "filter", name: "FORWARD", rules: [], isLegacy },
      base: { hook: "forward", priority: 0, type: "filter", policy: "drop" },
    });
    const rules = (chains: RuleChain[]) => () => ({ chains, setOf: () => undefined });
    expect(codesOf({ rules: rules([chain(), chain(true)]), sysctl: () => undefined })).toEqual(["two-backends"]);
    expect(codesOf({ rules: rules([chain(true)]), sysctl: () => undefined })).toEqual([]);
  });
});
