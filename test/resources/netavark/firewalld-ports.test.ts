/** Published ports in firewalld's words: forwarded ports and rich rules, policy by policy. */
import { expect, test } from "bun:test";
import { DbusError } from "../../../src/interop/firewalld/bus.ts";
import type { FirewalldCall } from "../../../src/interop/firewalld/client.ts";
import { policyPorts } from "../../../src/resources/netavark/firewalld-ports.ts";
import type { PublishedPort } from "../../../src/resources/netavark/published-ports.ts";
import {
  changePolicy,
  ensureObjects,
  readPolicy,
  richRule,
} from "../../../src/resources/netavark/shared/firewalld-objects.ts";

const port: PublishedPort = { protocol: "tcp", hostPort: 8080, containerPort: 80, range: 1 };
const v4 = { address: "10.8.0.9", subnet: "10.8.0.0/24" }, v6 = { address: "fd08::9", subnet: "fd08::/64" };

function said(ports: Partial<PublishedPort>[], targets = [v4, v6]) {
  const owner = { network: "orchard", containerId: "c1", ifName: "eth0", networkId: "5ca1ab1e" };
  const { netavark_portfwd: all, netavark_host_fwd: local, ...others } = policyPorts({
    ...owner,
    targets,
    ports: ports.map((each) => ({ ...port, ...each })),
  });
  expect(others).toEqual({});
  expect(local!.forwards).toEqual([]);
  return { forwards: all!.forwards.map((each) => each.join(" ")), rich: all!.rich, local: local!.rich };
}
const rule = (
  family: string,
  host: string,
  hostPort: string,
  containerPort: string,
  address: string,
  protocol = "tcp",
) =>
  `rule family="${family}" destination address="${host}" forward-port port="${hostPort}" protocol="${protocol}" ` +
  `to-port="${containerPort}" to-addr="${address}"`;
const LOCAL = rule("ipv4", "127.0.0.1", "8080", "80", "10.8.0.9");

const cases: [ports: Partial<PublishedPort>[], said: ReturnType<typeof said>][] = [
  [[{}], { forwards: ["8080 tcp 80 10.8.0.9", "8080 tcp 80 fd08::9"], rich: [], local: [LOCAL] }],
  [[{ hostIp: "0.0.0.0" }], { forwards: ["8080 tcp 80 10.8.0.9"], rich: [], local: [LOCAL] }],
  [[{ hostIp: "::" }], { forwards: ["8080 tcp 80 fd08::9"], rich: [], local: [] }],
  [[{ hostIp: "127.0.0.1" }], { forwards: [], rich: [], local: [LOCAL] }],
  [[{ hostIp: "::1" }], { forwards: [], rich: [], local: [] }],
  [[{ hostIp: "192.0.2.1" }], {
    forwards: [],
    rich: [rule("ipv4", "192.0.2.1", "8080", "80", "10.8.0.9")],
    local: [],
  }],
  [[{ hostIp: "2001:db8::1", protocol: "udp" }], {
    forwards: [],
    rich: [rule("ipv6", "2001:db8::1", "8080", "80", "fd08::9", "udp")],
    local: [],
  }],
  // A range with other numbers in the container is one port at a time.
  [[{ containerPort: 8080, range: 3, hostIp: "::" }], {
    forwards: ["8080-8082 tcp 8080-8082 fd08::9"],
    rich: [],
    local: [],
  }],
  [[{ range: 2, hostIp: "::" }, { hostPort: 9000, hostIp: "::" }], {
    forwards: ["8080 tcp 80 fd08::9", "8081 tcp 81 fd08::9", "9000 tcp 80 fd08::9"],
    rich: [],
    local: [],
  }],
];
test.each(cases)("%j", (ports, wanted) => expect(said(ports)).toEqual(wanted));

test("a container of one family has ports of that family", () => {
  expect(said([{}], [v6])).toEqual({ forwards: ["8080 tcp 80 fd08::9"], rich: [], local: [] });
  expect(richRule({ hostIp: "::1", hostPort: "1", protocol: "sctp", containerPort: "2", address: "fd08::9" })).toBe(
    rule("ipv6", "::1", "1", "2", "fd08::9", "sctp"),
  );
});

type Call = Parameters<FirewalldCall>;

/** Answers by member, and writes down what else it is asked. */
function firewalld(answers: Record<string, unknown>) {
  const asked: Call[] = [];
  const call: FirewalldCall = (...words) => {
    const answer = answers[words[1]];
    if (answer instanceof Error) throw answer;
    if (answer === undefined) asked.push(words);
    return answer as ReturnType<FirewalldCall>;
  };
  return { call, asked };
}

const settings = [["forward_ports", [["1", "tcp", "2", "10.8.0.9"]]], ["rich_rules", ["a rule"]]];

test("only the list of a policy that changes is written", () => {
  const now = readPolicy(firewalld({ getPolicySettings: settings }).call, "p");
  expect(now).toEqual({ forwards: [["1", "tcp", "2", "10.8.0.9"]], rich: ["a rule"] });
  expect(readPolicy(firewalld({ getPolicySettings: [] }).call, "p")).toEqual({ forwards: [], rich: [] });
  const written = (change: Parameters<typeof changePolicy>[2]) => {
    const { call, asked } = firewalld({ getPolicySettings: settings });
    changePolicy(call, "p", change);
    return asked;
  };
  expect(written((present) => ({ ...present }))).toEqual([]);
  const forwards = ["forward_ports", { signature: "a(ssss)", value: [] }];
  const rich = ["rich_rules", { signature: "as", value: ["a rule", "another"] }];
  const set = (...all: unknown[]) => [["policy", "setPolicySettings", ["p", all], "sa{sv}"]] as Call[];
  expect(written((present) => ({ ...present, forwards: [] }))).toEqual(set(forwards));
  expect(written((present) => ({ ...present, rich: ["a rule", "another"] }))).toEqual(set(rich));
  expect(written(() => ({ forwards: [], rich: ["a rule", "another"] }))).toEqual(set(forwards, rich));
});

test("where a policy to the host cannot forward, it becomes one to anywhere", () => {
  const asked: unknown[] = [];
  const call = ((_where: string, member: string, args: unknown[]) => {
    if (member === "getPolicySettings") return settings;
    asked.push(args[1]);
    if (asked.length > 1) return undefined;
    throw new DbusError("E", "INVALID_PORT: 'to-addr' is invalid for egress zone 'HOST'");
  }) as unknown as FirewalldCall;
  changePolicy(call, "p", (present) => ({ ...present, rich: [] }));
  const rich = ["rich_rules", { signature: "as", value: [] }];
  expect(asked).toEqual([[rich], [rich, ["egress_zones", { signature: "as", value: ["ANY"] }]]]);
});

test("a refusal names the policy", () => {
  const refusing = firewalld({ getPolicySettings: settings, setPolicySettings: new DbusError("E", "no") });
  expect(() => changePolicy(refusing.call, "p", () => ({ forwards: [], rich: [] }))).toThrow(
    /^Failed to update firewalld policy p port forwarding rules: DBus error: .*no/,
  );
});

const zones = ["public", "netavark_zone"];
const policies = ["netavark_policy", "netavark_portfwd", "netavark_host_fwd", "netavark_zone_acc"];

test("objects that run are left alone, and the missing ones are made before a reload", () => {
  const running = firewalld({ getZones: zones, getPolicies: policies });
  ensureObjects(running.call);
  expect(running.asked).toEqual([]);
  for (const missing of policies) {
    const others = policies.filter((name) => name !== missing);
    const lacking = firewalld({ getZones: zones, getPolicies: others, getZoneNames: zones, getPolicyNames: others });
    ensureObjects(lacking.call);
    expect(lacking.asked.map(([where, member, args]) => [where, member, args?.[0]])).toEqual([
      ["config", "addPolicy", missing],
      ["", "reload", undefined],
    ]);
  }
  const all = firewalld({ getZones: ["public"], getPolicies: [], getZoneNames: ["public"], getPolicyNames: [] });
  ensureObjects(all.call);
  const text = (signature: string, value: unknown) => ({ signature, value });
  const policy = (name: string, from: string, to: string, target: string, masquerades: boolean) => [
    "config",
    "addPolicy",
    [name, [
      ["egress_zones", text("as", [to])],
      ["ingress_zones", text("as", [from])],
      ["target", text("s", target)],
      ...masquerades ? [["masquerade", text("b", true)]] : [],
    ]],
    "sa{sv}",
  ];
  expect(all.asked as unknown[]).toEqual([
    ["config", "addZone2", ["netavark_zone", []], "sa{sv}"],
    policy("netavark_policy", "netavark_zone", "ANY", "ACCEPT", true),
    policy("netavark_portfwd", "ANY", "HOST", "CONTINUE", false),
    policy("netavark_host_fwd", "HOST", "ANY", "CONTINUE", false),
    policy("netavark_zone_acc", "ANY", "netavark_zone", "CONTINUE", true),
    ["", "reload"],
  ]);
});
