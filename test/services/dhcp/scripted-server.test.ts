/** The scripted server does what a test says, and tells what it was asked and by whom. */
import { expect, test } from "bun:test";
import { BROADCAST, captureIn } from "../../support/dhcp/capture.ts";
import { udhcpc } from "../../support/dhcp/clients.ts";
import { serverBehindBridge, serverBehindMaster } from "../../support/dhcp/link.ts";
import { kindOf } from "../../support/dhcp/message-name.ts";
import { value } from "../../support/dhcp/offer.ts";
import { type Received, serveScript, SILENT } from "../../support/dhcp/scripted-server.ts";
import { untilTrue } from "../../support/until-true.ts";

const address = "192.168.77.50";
const asked = (received: Received[]) => received.map((one) => one.asked);

test("answers and tells who asked; a release arrives from the address", async () => {
  await using segment = await serverBehindBridge();
  const server = await serveScript(segment.site, { address });
  const client = await udhcpc(segment, await segment.plug("c1"), ["-x", "hostname:web"]);
  expect(client.address).toBe(address);
  await client.release();
  const received = await server.until((all) => all.some(({ kind }) => kind === "RELEASE"));
  expect(asked(received)).toEqual(["DISCOVER", "REQUEST", "RELEASE"]);
  const [discover, request, release] = received as [Received, Received, Received];
  expect(discover).toMatchObject({ source: "0.0.0.0", sourcePort: 68, ciaddr: "0.0.0.0", broadcast: false });
  expect(discover.options[12]).toBe(value.text("web"));
  expect(request.options).toMatchObject({ 50: value.addresses(address), 54: value.addresses("192.168.77.1") });
  expect(release).toMatchObject({ source: address, ciaddr: address });
  expect(server.log()).toBe("serves\n");
  expect((await udhcpc(segment, await segment.plug("c2"))).address).toBe("192.168.77.51");
});

test("is silent, late, wrong, and follows a script that changes", async () => {
  await using segment = await serverBehindMaster();
  const wrong = [{ addToXid: 1 }, { mac: "02:00:00:00:00:99" }, { options: { 53: null } }, { bytes: "00" }];
  const server = await serveScript(segment.site, {
    address,
    leaseSeconds: 1000,
    rules: { DISCOVER: [SILENT, ...wrong, { delayMs: 20, copies: 2 }], REQUEST: [{ nak: "no" }, {}] },
  });
  const client = await udhcpc(segment, await segment.plug("c1"));
  client.renew();
  const received = await server.until((all) => all.some((one) => one.asked === "RENEW"));
  // The NAK makes it ask anew. It renews from its address.
  expect(asked(received.slice(0, 9))).toEqual([...Array(6).fill("DISCOVER"), "REQUEST", "DISCOVER", "REQUEST"]);
  expect(received.at(-1)).toMatchObject({ source: address, ciaddr: address });
  server.change({ rules: { any: { nak: "gone" } } });
  client.renew();
  await server.until((all) => all.at(-1)!.asked === "DISCOVER");
  expect(server.log()).toBe("serves\n");
});

test("two servers on a link; a capture shows whom answers are for", async () => {
  await using segment = await serverBehindBridge();
  const other = await segment.anotherSite("rogue", 2);
  await using capture = await captureIn(segment, undefined, { link: "br0", filter: "udp port 67 or udp port 68" });
  const slow = await serveScript(segment.site, { address, rules: { any: SILENT } });
  const quick = await serveScript(other, { address: "192.168.77.60", rules: { DISCOVER: { to: "unicast" } } });
  const container = await segment.plug("c1");
  expect((await udhcpc(segment, container)).address).toBe("192.168.77.60");
  // Both hear the request, which names one of them.
  for (const server of [slow, quick]) {
    const received = await server.until((all) => all.some(({ kind }) => kind === "REQUEST"));
    expect(received.at(-1)!.options[54]).toBe(value.addresses("192.168.77.2"));
  }
  const isAck = (one: { dhcp?: Parameters<typeof kindOf>[0] }) => kindOf(one.dhcp) === "ACK";
  const frames = await untilTrue(() => capture.frames(), (all) => all.some(isAck));
  const offer = frames.find(({ dhcp }) => kindOf(dhcp) === "OFFER")!, ack = frames.find(isAck)!;
  expect(offer).toMatchObject({ source: "192.168.77.2", destination: "192.168.77.60", sourcePort: 67 });
  expect(offer.to).toBe(frames[0]!.from);
  expect(ack).toMatchObject({ destination: "255.255.255.255", to: BROADCAST });
});

test("any bytes: options twice, overloaded fields, none of the usual", async () => {
  await using segment = await serverBehindBridge();
  await using capture = await captureIn(segment, segment.site.namespace, { filter: "udp src port 67" });
  await serveScript(segment.site, {
    address,
    options: { 1: null, 26: value.u16(1400) },
    rules: {
      REQUEST: {
        extra: "0f03666f6f" + "0f03626172",
        options: { 52: "03" },
        sname: "0c0178ff",
        file: "060408080808ff",
      },
    },
  });
  await udhcpc(segment, await segment.plug("c1"));
  const isAck = (one: { dhcp?: Parameters<typeof kindOf>[0] }) => kindOf(one.dhcp) === "ACK";
  const { dhcp } = (await untilTrue(() => capture.frames(), (all) => all.some(isAck))).find(isAck)!;
  const options = Object.fromEntries([...dhcp!.options].map(([code, bytes]) => [code, bytes.toHex()]));
  expect(options).toMatchObject({ 15: "666f6f626172", 6: "08080808", 12: "78", 26: value.u16(1400) });
  expect(options[1]).toBeUndefined();
});
