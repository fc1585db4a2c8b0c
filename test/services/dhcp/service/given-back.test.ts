/** Leases that are given back when the link is gone: out of a link of the host, in the container's name. */
import { expect, test } from "bun:test";
import { dualStack, SimulatedAttachment } from "../../../support/dhcp/simulated-attachment.ts";
import { MAC, SERVER_MAC, SimulatedLink } from "../../../support/dhcp/simulated-link.ts";
import { value } from "../../../support/dhcp/offer.ts";
import { server6 } from "../../../support/dhcp/simulated-frames.ts";

const script = { address: "192.168.77.50", leaseSeconds: 1000 };

test.each([
  ["as at first", {}, SERVER_MAC],
  ["of another server", { server: "192.168.77.9" }, "ff:ff:ff:ff:ff:ff"],
  ["from elsewhere", { mac: "02:00:00:00:00:66" }, "ff:ff:ff:ff:ff:ff"],
])("where the link is gone, the release goes out of the host's link; the server is %s", (_what, change, goal) => {
  using link = new SimulatedLink(script);
  link.hostLinks.set("br0", 3);
  const it = new SimulatedAttachment(link, { hostLink: "br0" });
  it.bind();
  it.kept!.v4!.origin = { server: "192.168.77.1", mac: SERVER_MAC, ...change };
  it.resume();
  link.gone = "the container is gone";
  it.attachment.release();
  expect(link.news()).toEqual([
    "journal: to be released",
    `link 3: RELEASE in the name of ${MAC} to ${goal}`,
    "journal: removed",
  ]);
  expect(link.handles).toBe(0);
  // Ethernet's header, and the IPv4 address that the packet is for.
  const frame = link.packets.at(-1)!.bytes;
  expect(frame.subarray(12, 15).toHex()).toBe("080045");
  expect(frame.subarray(30, 34).toHex()).toBe(goal === SERVER_MAC ? value.addresses("192.168.77.1") : "ffffffff");
});

test("a namespace that goes while an answer is awaited is not used any more, though it is open", () => {
  using link = new SimulatedLink(script);
  link.hostLinks.set("br0", 3);
  const it = new SimulatedAttachment(link, { hostLink: "br0" });
  it.bind();
  link.script({ ...script, rules: { any: { silent: true } } });
  it.passToRenewal();
  link.gone = "the container is gone";
  it.attachment.release();
  expect(link.news()[1]).toBe(`link 3: RELEASE in the name of ${MAC} to ${SERVER_MAC}`);
  link.gone = undefined;
  link.script({ ...script, rules: { RENEW: { nak: "no" } } });
  const refused = new SimulatedAttachment(link);
  refused.bind();
  refused.now = refused.attachment.due;
  refused.attachment.wake(refused.now);
  link.news();
  link.gone = "the container is gone";
  expect(refused.pass(0)).toEqual(["journal: written", "journal: removed"]);
});

test("where nobody knows where the server's messages come from, it is not told", () => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link);
  it.bind();
  it.kept!.v4!.serverMac = "";
  it.resume();
  it.attachment.release();
  expect(link.news()).toEqual(["journal: to be released", "journal: removed"]);
});

test("an IPv6 lease is given back so to all servers, if the link's own address is known", () => {
  using link = new SimulatedLink();
  link.answer6 = server6();
  link.hostLinks.set("br0", 3);
  const it = new SimulatedAttachment(link, { ...dualStack, v4: false, required: ["ipv6"], hostLink: "br0" });
  it.bind(["fd00:77::50/64"], []);
  link.gone = "the container is gone";
  it.resume();
  it.attachment.release();
  expect(link.news()[1]).toBe(`link 3: RELEASE in the name of ${MAC} to 33:33:00:01:00:02`);
  expect(link.packets.at(-1)!.bytes.subarray(12, 15).toHex()).toBe("86dd60");
  it.kept!.v6!.linkLocal = "";
  it.resume();
  it.attachment.release();
  expect(link.news()).toEqual(["journal: to be released", "journal: removed"]);
});

test.each([
  [undefined, "its link is gone, and the configuration names no link of the host"],
  ["br1", "link br1 is not there"],
])("host's link %p: nobody is told, and the log says why", (hostLink, reason) => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link, { hostLink });
  it.bind();
  link.gone = "the container is gone";
  it.attachment.release();
  expect(link.news()).toEqual(["journal: to be released", "journal: removed"]);
  expect(link.log.at(-1)).toBe(`c1/net/eth0: the release cannot be sent to the server: ${reason}`);
});
