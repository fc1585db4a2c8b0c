/** What the plugin dhcp says to servers, as its configuration has it, and what of an answer is in the result. */
import { expect, test } from "bun:test";
import type { Container } from "../../../support/machine.ts";
import { value } from "../../../support/dhcp/offer.ts";
import { openScene, routesIn, type Scene } from "../../../support/dhcp/scene.ts";
import { type Received, SILENT } from "../../../support/dhcp/scripted-server.ts";
import { cni, patchbayPlugins } from "../../../support/plugins.ts";
import { linkIn } from "../../../support/wire.ts";

const ADDRESS = "192.168.77.50",
  SERVER = "192.168.77.1",
  ARGS = "IgnoreUnknown=1;K8S_POD_NAMESPACE=prod;K8S_POD_NAME=web";
const { addresses, names, routes, text, u16, u32 } = value;
const USUAL = "01790321060f771a1c2a33363a3b";

/** ADD and DEL; answers what the server has heard meanwhile. */
async function heard(
  { server, service }: Scene,
  container: Container,
  ipam: Record<string, unknown>,
): Promise<Received[]> {
  const net = service.network({}, ipam), from = server.received().length;
  await net.add(container, { args: ARGS });
  await net.del(container, { args: ARGS });
  return (await server.until((all) => all.slice(from).some(({ kind }) => kind === "RELEASE"))).slice(from);
}

test("the client id, the same in every message", async () => {
  await using scene = await openScene({ address: ADDRESS });
  const container = await scene.machine.container("c1");
  const duid = /^ff[0-9a-f]{8}0004[0-9a-f]{32}$/;
  const wanted: [clientId: string | undefined, option: string | RegExp | undefined][] = [
    [undefined, "00" + text("ctr-c1/net/eth0")],
    ["container", "00" + text("ctr-c1/net/eth0")],
    ["mac", /^01/],
    ["name", "00" + text("prod/web/eth0")],
    ["duid", duid],
    ["duid", duid],
    ["none", undefined],
    ["text:web-1", text("web-1")],
    ["hex:01Ff", "01ff"],
  ];
  const found: (string | undefined)[] = [];
  for (const [clientId, option] of wanted) {
    const received = await heard(scene, container, clientId === undefined ? {} : { clientId });
    expect(new Set(received.map(({ kind }) => kind))).toEqual(new Set(["DISCOVER", "REQUEST", "RELEASE"]));
    const ids = [...new Set(received.map(({ options }) => options[61]))];
    expect({ clientId, count: ids.length }).toEqual({ clientId, count: 1 });
    if (option instanceof RegExp) expect(ids[0]).toMatch(option);
    else expect(ids[0]).toBe(option);
    if (clientId === "mac") expect(ids[0]).toBe("01" + received[0]!.mac.replaceAll(":", ""));
    found.push(ids[0]);
  }
  expect(found[4]).toBe(found[5]);
  // The reference plugin sends a provided one word for word.
  const provided = { provide: [{ option: "dhcp-client-identifier", value: "mine" }] };
  for (const { options } of await heard(scene, container, provided)) expect(options[61]).toBe(text("mine"));
});

test("what is asked for, and what is said", async () => {
  await using scene = await openScene({ address: ADDRESS });
  const container = await scene.machine.container("c1");
  const wanted = async (request: unknown) => {
    const [discover, ...others] = await heard(scene, container, { request });
    const requested = others.find(({ kind }) => kind === "REQUEST")!, released = others.at(-1)!;
    expect([requested.options[55], released.options[55]]).toEqual([discover!.options[55], undefined]);
    return discover!.options[55];
  };
  expect(await wanted([])).toBe(USUAL);
  expect(await wanted([{ option: "12" }, { option: "routers" }])).toBe("0c03" + USUAL.replace("03", ""));
  expect(await wanted([{ option: "12", skipDefault: true }, { option: "43" }])).toBe("0c2b");
  expect(await wanted([{ skipDefault: true }])).toBe(USUAL);

  const received = await heard(scene, container, {
    hostname: "web-1",
    provide: [
      { option: "vendor-class-identifier", value: "a" },
      { option: "60", value: "patchbay" },
      { option: "user-class", hex: "0161" },
      { option: "43", fromArg: "K8S_POD_NAME", value: "unused" },
      { option: "93", fromArg: "ABSENT", value: "used" },
      { option: "94", fromArg: "ABSENT" },
    ],
  });
  const said = { 12: text("web-1"), 60: text("patchbay"), 77: "0161", 43: text("web"), 93: text("used"), 57: "05dc" };
  for (const { kind, options } of received) {
    if (kind !== "RELEASE") expect(options).toMatchObject(said);
    expect(options[94]).toBeUndefined();
  }
});

test("secs grow while nobody answers; each exchange has a number of its own", async () => {
  const rules = { DISCOVER: [SILENT, SILENT, {}] }, options = { 58: u32(2) };
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 20, options, rules });
  const { machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  const count = (all: Received[], asked: string) => all.filter((one) => one.asked === asked).length;
  await server.until((all) => count(all, "RENEW") >= 2);
  await net.del(container);
  const all = await server.until((some) => some.at(-1)!.kind === "RELEASE");
  const begun = all.filter(({ asked }) => asked === "DISCOVER" || asked === "REQUEST"),
    secs = begun.map((one) => one.secs);
  expect(secs).toEqual([...secs].sort((one, other) => one - other));
  expect([secs[0], secs.at(-1)! >= 1]).toEqual([0, true]);
  expect(new Set(begun.map(({ xid }) => xid)).size).toBe(1);
  const others = all.filter(({ asked }) => asked === "RENEW" || asked === "RELEASE");
  // A renewal may be repeated on a busy machine, with the number that it had.
  const firsts = others.filter(({ secs, kind }) => secs === 0 || kind === "RELEASE");
  expect(new Set([begun[0]!, ...firsts].map(({ xid }) => xid)).size).toBe(1 + firsts.length);
  for (const { ciaddr, source, sourcePort, options: sent } of others) {
    expect({ ciaddr, source, sourcePort, 50: sent[50] }).toEqual({
      ciaddr: ADDRESS,
      source: ADDRESS,
      sourcePort: 68,
      50: undefined,
    });
  }
});

test("the broadcast flag: as wanted by configuration or service, and not where a unicast comes", async () => {
  for (
    const [flags, ipam, isSet] of [[[], {}, false], [[], { broadcast: true }, true], [
      ["-broadcast"],
      {},
      true,
    ]] as const
  ) {
    await using scene = await openScene({ address: ADDRESS }, { flags });
    const received = await heard(scene, await scene.machine.container("c1"), ipam);
    const said = received.filter(({ kind }) => kind !== "RELEASE").map(({ broadcast }) => broadcast);
    expect({ flags, ipam, said: [...new Set(said)] }).toEqual({ flags, ipam, said: [isSet] });
    expect(received.at(-1)!.broadcast).toBe(false);
  }
});

test("for ipvlan, whose links share a MAC address, everybody is answered", async () => {
  await using scene = await openScene({ address: ADDRESS });
  const { segment, machine, server, service } = scene, container = await segment.plug("c1");
  const conf = { cniVersion: "1.1.0", name: "net", type: "ipvlan", ipam: service.ipam() };
  const call = { plugin: "dhcp", container, conf }, bin = patchbayPlugins();
  expect((await cni(machine, bin, { ...call, command: "ADD" })).code).toBe(0);
  expect(new Set(server.received().map(({ broadcast }) => broadcast))).toEqual(new Set([true]));
  expect((await cni(machine, bin, { ...call, command: "DEL" })).code).toBe(0);
  const released = await server.until((all) => all.some(({ kind }) => kind === "RELEASE"));
  expect(released.at(-1)!.broadcast).toBe(false);
});

test("the result: name servers and domains, routes with a metric, and not what is ignored", async () => {
  const options = {
    6: addresses(SERVER, "0.0.0.0", "9.9.9.9"),
    15: text("example.test"),
    26: u16(1400),
    119: names("a.test", "b.a.test"),
    121: routes(["0.0.0.0/0", SERVER], ["10.5.0.0/16", "192.168.77.7"]),
  };
  await using scene = await openScene({ address: ADDRESS, options });
  const { machine, server, service } = scene, container = await machine.container("c1");
  const result = async (ipam: Record<string, unknown>) => {
    const net = service.network({}, ipam), { ips, dns = {} } = await net.add(container);
    const found = {
      gateway: ips[0].gateway,
      dns,
      routes: await routesIn(scene, container),
      mtu: (await linkIn(machine, container)).mtu,
    };
    await net.check(container);
    await net.del(container);
    return found;
  };
  const dns = { nameservers: [SERVER, "9.9.9.9"], domain: "example.test", search: ["a.test", "b.a.test"] };
  const all = { gateway: SERVER, dns, routes: ["10.5.0.0/16 via 192.168.77.7", `default via ${SERVER}`], mtu: 1400 };
  expect(await result({})).toEqual(all);
  const priced = all.routes.map((route) => `${route} metric 77`);
  expect(await result({ priority: 77 })).toEqual({ ...all, routes: priced });
  expect(await result({ ignore: ["dns"] })).toEqual({ ...all, dns: {} });
  expect(await result({ ignore: ["mtu"] })).toEqual({ ...all, mtu: 1500 });
  expect(await result({ ignore: ["routes"] })).toMatchObject({ routes: [] });
  server.change({ options: { ...options, 121: null, 119: null, 15: text("one.test two.test") } });
  expect(await result({ ignore: ["routers"] })).toMatchObject({
    gateway: undefined,
    routes: [],
    dns: { domain: "one.test", search: ["one.test", "two.test"] },
  });
});
