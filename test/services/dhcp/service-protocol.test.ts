/** What the service says is judged before it counts: it comes from another process. */
import { expect, test } from "bun:test";
import { leaseTextOf6 } from "../../../src/services/dhcp/journal/lease-text6.ts";
import { leaseTextOf } from "../../../src/services/dhcp/journal/lease-text.ts";
import { type Answer, readAnswer } from "../../../src/services/dhcp/service-protocol.ts";
import { parseAddress, parsePrefix } from "../../../src/net/address.ts";

const version = 1;
const lease = leaseTextOf({
  address: parsePrefix("10.1.0.9/24")!,
  server: parseAddress("10.1.0.1")!,
  routers: [parseAddress("10.1.0.1")!],
  routes: [{ destination: parsePrefix("10.2.0.0/16")!, gateway: undefined }],
  isClassless: true,
  nameServers: [],
  domain: "example",
  search: ["example"],
  timeServers: [],
  mtu: 1400,
  broadcast: undefined,
  times: { lease: Infinity, renew: 5, rebind: 6 },
  ignored: [],
});
const lease6 = leaseTextOf6({
  server: Uint8Array.of(1),
  preference: 0,
  status: { code: 0, text: "" },
  binding: { address: parseAddress("fd00::9")!, preferred: 1, valid: Infinity, renew: 1, rebind: 1 },
  withdrawn: [],
  nameServers: [],
  search: [],
  timeServers: [],
  ignored: [],
});
const owner = { network: "net", containerId: "c1", ifName: "eth0" };

test.each<Answer>([
  { version },
  { version, lease },
  { version, lease, lease6 },
  { version, owners: [] },
  { version, owners: [owner] },
  { version, report: { unanswered: 0 } },
  { version, report: { unanswered: 2, obstacle: "silence", forgottenInS: 3 } },
  { version, failure: "no" },
  { version, failure: "no", hint: "do" },
])("an answer: %j", (answer) => {
  const text = JSON.stringify(answer);
  expect(readAnswer(text)).toEqual(JSON.parse(text));
});

const without = <Whole extends object>(whole: Whole, key: keyof Whole) => ({ ...whole, [key]: undefined });

const wrong: unknown[] = [
  null,
  [],
  "text",
  {},
  { version: "1" },
  { version, failure: 5 },
  { version, failure: "no", hint: {} },
  { version, lease: null },
  { version, lease: [] },
  ...Object.keys(lease).map((key) => ({ version, lease: { ...lease, [key]: {} } })),
  ...(["address", "server", "routers", "nameServers", "search", "lease", "renew"] as const)
    .map((key) => ({ version, lease: without(lease, key) })),
  { version, lease: { ...lease, search: [1] } },
  { version, lease: { ...lease, routes: [{ destination: "10.2.0.0/33" }] } },
  ...Object.keys(lease6).map((key) => ({ version, lease6: { ...lease6, [key]: {} } })),
  ...Object.keys(lease6).map((key) => ({ version, lease6: without(lease6, key as keyof typeof lease6) })),
  { version, lease6: { ...lease6, nameServers: ["nowhere"] } },
  { version, report: 5 },
  { version, report: {} },
  { version, report: { unanswered: "many" } },
  { version, report: { unanswered: 0, obstacle: 5, forgottenInS: 1 } },
  { version, report: { unanswered: 0, obstacle: "silence" } },
  { version, owners: {} },
  { version, owners: [null] },
  { version, owners: [{ ...owner, containerId: "../c1" }] },
  { version, owners: [without(owner, "ifName")] },
];
test.each(wrong.map((value) => [JSON.stringify(value)]))("no answer: %s", (text) => {
  expect(() => readAnswer(text)).toThrow();
});

test.each(["", "text", "{", '{"version":1'])("no document: %j", (text) => {
  expect(() => readAnswer(text)).toThrow();
});
