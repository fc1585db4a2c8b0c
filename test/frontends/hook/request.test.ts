/** The words in annotations and arguments: networks, ports, and what is refused of them. */
import { expect, test } from "bun:test";
import { hookSettingsOf } from "../../../src/frontends/hook/settings.ts";
import { type HookRequest, hookRequestOf } from "../../../src/frontends/hook/request.ts";
import { textThrown } from "../../support/outcome.ts";

function request(annotations: Record<string, string>): HookRequest {
  const entries = Object.entries(annotations).map(([name, text]) => [`dev.patchbay.${name}`, text]);
  return hookRequestOf(hookSettingsOf(Object.fromEntries(entries), {}));
}

const places = (networks: string) =>
  request({ networks }).networks.map(({ network, ifName }) => `${network} ${ifName}`);

test("interfaces are eth0, eth1 and so on, unless somebody names them", () => {
  expect(places("a")).toEqual(["a eth0"]);
  expect(places("a, b ,c")).toEqual(["a eth0", "b eth1", "c eth2"]);
  expect(places("a,b@eth0,c@net7,d")).toEqual(["a eth1", "b eth0", "c net7", "d eth2"]);
  expect(places("a,b@eth1,c@eth0,d@eth3,e")).toEqual(["a eth2", "b eth1", "c eth0", "d eth3", "e eth4"]);
});

test("addresses, MAC addresses and rates go to their network", () => {
  const { networks } = request({
    networks: "a ip=10.1.0.9 ip=fd00:0::9/64 mac=02-00-00-00-00-0A,b@eth7 ingress=100M egress=800k",
  });
  expect(networks.map(({ capabilityArgs }) => capabilityArgs)).toEqual([
    { ips: ["10.1.0.9", "fd00::9/64"], mac: "02:00:00:00:00:0a" },
    {
      bandwidth: { ingressRate: 100_000_000, ingressBurst: 10_000_000, egressRate: 800_000, egressBurst: 524_288 },
    },
  ]);
});

test("one address, or one rate; a rate without a unit is in bits", () => {
  const { networks } = request({ networks: "a ip=10.1.0.9,b egress=4000000000,c ingress=1,d" });
  const args = networks.map(({ capabilityArgs }) => capabilityArgs);
  expect(args).toEqual([
    { ips: ["10.1.0.9"] },
    { bandwidth: { egressRate: 4_000_000_000, egressBurst: 400_000_000 } },
    { bandwidth: { ingressRate: 1, ingressBurst: 524_288 } },
    {},
  ]);
});

test("64 networks, 64 addresses", () => {
  expect(request({ networks: Array(64).fill("a").join() }).networks).toHaveLength(64);
  const [one] = request({ networks: `a${" ip=10.1.0.9".repeat(64)}` }).networks;
  expect(one!.capabilityArgs["ips"]).toHaveLength(64);
});

test("whether somebody named the interface, and where", () => {
  expect(request({ networks: "a,b@eth7" }).networks.map(({ isNamed, source }) => [isNamed, source])).toEqual([
    [false, "annotation dev.patchbay.networks"],
    [true, "annotation dev.patchbay.networks"],
  ]);
});

test("what is wrong is shown up to its 200th character", () => {
  expect(() => request({ ports: "x".repeat(201) })).toThrow(`"${"x".repeat(200)}" is wrong`);
});

test("ports, with addresses and ranges", () => {
  expect(request({ ports: "8080:80" }).ports).toEqual([{ hostPort: 8080, containerPort: 80, protocol: "tcp" }]);
  expect(request({ ports: "127.0.0.1:53:5353/udp, [::1]:1-2:65534-65535/sctp" }).ports).toEqual([
    { hostPort: 53, containerPort: 5353, protocol: "udp", hostIP: "127.0.0.1" },
    { hostPort: 1, containerPort: 65534, protocol: "sctp", hostIP: "::1" },
    { hostPort: 2, containerPort: 65535, protocol: "sctp", hostIP: "::1" },
  ]);
  expect(request({ ports: "1-4096:1-4096" }).ports).toHaveLength(4096);
});

test("a name, and other capabilities", () => {
  expect(request({ name: "web 1" }).cniArgs).toEqual([["IgnoreUnknown", "1"], ["K8S_POD_NAME", "web 1"]]);
  expect(request({ capabilities: '{"dns":{"servers":["10.0.0.1"]}}' }).capabilityArgs).toEqual({
    dns: { servers: ["10.0.0.1"] },
  });
});

test.each(["aliases", "bandwidth", "dns", "ips", "mac"])(
  "an annotation may carry the capability %s",
  (capability) => {
    for (const value of [[], {}, null, "x".repeat(65), { long: "x".repeat(65), none: null }]) {
      const args = { [capability]: value };
      expect(request({ capabilities: JSON.stringify(args) }).capabilityArgs).toEqual(args);
    }
  },
);

test.each(["deviceID", "infinibandGUID", "ipRanges", "cgroupPath", "IPS", "__proto__"])(
  "an annotation may carry the capability %s only where the hook permits it",
  (capability) => {
    const text = `{"${capability}":[1]}`, key = "dev.patchbay.capabilities";
    expect(() => request({ capabilities: text })).toThrow(`annotation ${key}: "${capability}" is wrong`);
    expect(hookRequestOf(hookSettingsOf({ [key]: text }, {}), ["other", capability]).capabilityArgs).toEqual(
      JSON.parse(text),
    );
    const capabilities = { text, source: "--capabilities" };
    expect(hookRequestOf(hookSettingsOf({}, { capabilities })).capabilityArgs).toEqual(JSON.parse(text));
  },
);

const lists: [key: string, capabilities: (entries: string[]) => object][] = [
  ["ips", (ips) => ({ ips })],
  ["dns.servers", (servers) => ({ dns: { servers } })],
  ["dns.searches", (searches) => ({ dns: { searches } })],
  ["dns.options", (options) => ({ dns: { options } })],
  ["aliases", (aliases) => ({ aliases })],
  ["aliases", (names) => ({ aliases: Object.fromEntries(names.map((name) => [name, ["a"]])) })],
  ["aliases.net", (aliases) => ({ aliases: { net: aliases } })],
  ["ipRanges", (ranges) => ({ ipRanges: ranges })],
  ["ipRanges.1", (range) => ({ ipRanges: [[], range] })],
];

test.each(lists)(
  "an annotation's list %s has 64 entries at most; the hook's own argument may have more",
  (key, of) => {
    const capabilities = (count: number) => of(Array.from({ length: count }, (_, index) => `e${index}`));
    const annotated = (count: number) =>
      hookRequestOf(hookSettingsOf({ "dev.patchbay.capabilities": JSON.stringify(capabilities(count)) }, {}), [
        "ipRanges",
      ]);
    expect(annotated(64).capabilityArgs).toEqual(capabilities(64) as Record<string, unknown>);
    expect(() => annotated(65)).toThrow(expect.objectContaining({
      message: `annotation dev.patchbay.capabilities: "${key}" is wrong`,
      details: "it has 65 entries, more than 64",
    }));
    const text = JSON.stringify(capabilities(65));
    expect(hookRequestOf(hookSettingsOf({}, { capabilities: { text, source: "--capabilities" } })).capabilityArgs)
      .toEqual(JSON.parse(text));
  },
);

test("ports have one annotation, where they are counted; the hook's own argument may have them", () => {
  const text = JSON.stringify({ portMappings: [{ hostPort: 1, containerPort: 1 }] }),
    key = "dev.patchbay.capabilities";
  const annotated = hookSettingsOf({ [key]: text }, {});
  expect(() => hookRequestOf(annotated, ["portMappings"])).toThrow('"portMappings" is wrong');
  expect(hookRequestOf(hookSettingsOf({}, { capabilities: { text, source: "--capabilities" } })).capabilityArgs)
    .toEqual(JSON.parse(text));
});

test("arguments win over annotations, one by one", () => {
  const annotations = { "dev.patchbay.networks": "a", "dev.patchbay.ports": "1:1", "com.example.networks": "x" };
  const settings = hookSettingsOf(annotations, { networks: { text: "b", source: "NETWORK" } });
  expect(settings).toEqual({
    networks: { text: "b", source: "NETWORK" },
    ports: { text: "1:1", source: "annotation dev.patchbay.ports", isAnnotation: true },
  });
});

const wrong: [name: string, text: string, says: string][] = [
  ["networks", "", '"" is wrong; it must begin with the name of a network'],
  ["networks", "a,,b", '"" is wrong; it must begin'],
  ["networks", "a,", '"" is wrong; it must begin'],
  ["networks", "@eth0", '"@eth0" is wrong; it must begin'],
  ["networks", "../a", '"../a" is wrong; invalid characters found in network name'],
  ["networks", "a@eth0@eth1", "the form NETWORK or NETWORK@IFNAME"],
  ["networks", "a@", "interface name is empty"],
  ["networks", "a@thisnameistoolong", "interface name is too long"],
  ["networks", "a@e/0", "interface name contains /"],
  ["networks", "a@eth0,b@eth0", '"b@eth0" is wrong; another network has the interface eth0'],
  ["networks", Array(65).fill("a").join(), "there are more than 64 networks"],
  ["networks", "a eth0", "after the network there may be ip=ADDRESS"],
  ["networks", "a ip=10.1.0", '"ip=10.1.0" is wrong; it is not an IP address, with or without a prefix length'],
  ["networks", "a ip", "it is not an IP address, with or without a prefix length"],
  ["networks", "a ip=1.1.1.1=2", "after the network there may be"],
  ["networks", "a mac=02:00", "it is no MAC address"],
  ["networks", "a ingress=fast", "a rate is bits per second"],
  ["networks", "a ingress=0", "a rate is bits per second"],
  ["ports", "", '"" is wrong; ports have the form'],
  ["ports", "80", '"80" is wrong; ports have the form'],
  ["ports", "80:80:80", "HOSTIP is an IPv4 address"],
  ["ports", "::1:80:80", "ports have the form"],
  ["ports", "[127.0.0.1]:80:80", "HOSTIP is an IPv4 address, or an IPv6 address in brackets"],
  ["ports", "0:80", "ports are numbers from 1 to 65535"],
  ["ports", "80:65536", "ports are numbers from 1 to 65535"],
  ["ports", "9-8:9-8", "a range ends at a higher one"],
  ["ports", "8-9:8", "both ranges must have as many ports"],
  ["ports", "8:8-9", "both ranges must have as many ports"],
  ["ports", "80:80/icmp", "protocols are tcp, udp, sctp"],
  ["ports", "1-4097:1-4097", "there are more than 4096 ports"],
  ["ports", "1-4000:1-4000,5000-6000:5000-6000", "there are more than 4096 ports"],
  ["name", "a;b=c", 'a name is not empty, and has no ";" and no "="'],
  ["name", "", 'a name is not empty, and has no ";" and no "="'],
  ["capabilities", "[]", "it must be a JSON object"],
  ["capabilities", "{", "annotation dev.patchbay.capabilities: "],
  ["networks", `a${" ip=10.1.0.9".repeat(65)}`, "there are more than 64 addresses"],
  ["netwroks", "a", "unknown annotation dev.patchbay.netwroks; did you mean dev.patchbay.networks?"],
  ["x", "a", "unknown annotation dev.patchbay.x; there are dev.patchbay.networks, dev.patchbay.ports"],
];

test.each(wrong)("refused: %s %p", (name, text, says) => {
  const error = textThrown(() => request({ [name]: text }));
  expect(error).toContain(says);
  expect(error).toContain(`dev.patchbay.${name}`);
});
