/** Whom the plugin asks: its own service, or podman's at another place. */
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import * as asking from "../../../../src/services/dhcp/ask.ts";
import { Failed, NoAnswer, NoService } from "../../../../src/services/dhcp/ask.ts";
import { Journal } from "../../../../src/services/dhcp/journal/journal.ts";
import type { ServiceRequest } from "../../../../src/services/dhcp/service-protocol.ts";
import type { DhcpConf } from "../../../../src/plugins/ipam/dhcp/dhcp.schema.ts";
import { askService, directoryOf } from "../../../../src/plugins/ipam/dhcp/service.ts";

const OURS = "/run/cni/dhcp.sock", PODMANS = "/run/podman/nv-proxy.sock";
const answer = { version: 1 }, owner = { network: "net", containerId: "c1", ifName: "eth0" };
const acquire = { do: "acquire" } as ServiceRequest,
  release: ServiceRequest = { do: "release", owner },
  check: ServiceRequest = { do: "check", owner };

let asked: unknown[][], there: Record<string, Error | typeof answer>, isHeld: boolean;
let spies: { mockRestore(): void }[];

beforeEach(() => {
  [asked, there, isHeld] = [[], {}, false];
  spies = [
    spyOn(asking, "ask").mockImplementation((path, ...more) => {
      asked.push([path, ...more]);
      const one = there[path] ?? new NoService(`nobody listens on ${path}`);
      if (one instanceof Error) throw one;
      return one;
    }),
    spyOn(Journal, "isHeld").mockImplementation((directory) => isHeld && directory === "/var/lib/cni/dhcp"),
  ];
});
afterEach(() => {
  for (const spy of spies) spy.mockRestore();
});

const conf = (ipam?: object) => ({ ipam }) as DhcpConf;
const ask = (request: ServiceRequest, ipam = {}) => askService(conf(ipam), request, 7, 5);
const paths = () => asked.map(([path]) => path);

test("the directory and the place are the configured ones, or the usual ones", () => {
  expect([conf(), conf({}), conf({ dataDir: "" }), conf({ dataDir: "/d" })].map(directoryOf)).toEqual([
    ...Array(3).fill("/var/lib/cni/dhcp"),
    "/d",
  ]);
  there = { [OURS]: answer, "/s": answer };
  for (const daemonSocketPath of ["", "/s"]) expect(ask(check, { daemonSocketPath })).toBe(answer);
  expect(asked).toEqual([[OURS, check, 7, 5], ["/s", check, 7, 5]]);
});

test.each<[string, ServiceRequest, isHeld: boolean, ours: Error, isAsked: boolean]>([
  ["for a lease, nobody at the usual place", acquire, false, new NoService("none"), true],
  ["for a release, nobody at the usual place", release, false, new NoService("none"), true],
  ["for a check, which starts nothing", check, false, new NoService("none"), false],
  ["for a check, when podman's has the leases", check, true, new NoService("none"), true],
  ["for a lease, when ours ends at once", acquire, false, new NoAnswer("ended"), false],
  ["for a lease, when ours ends at once because podman's has the leases", acquire, true, new NoAnswer("ended"), true],
  ["for a lease that ours refuses", acquire, true, new Failed("no"), false],
])("podman's service is asked %s: or not", (_what, request, held, ours, isAsked) => {
  isHeld = held;
  there = { [OURS]: ours, [PODMANS]: answer };
  if (isAsked) expect(ask(request)).toBe(answer);
  else expect(() => ask(request)).toThrow(ours);
  expect(paths()).toEqual(isAsked ? [OURS, PODMANS] : [OURS]);
  if (isAsked) expect(asked[1]).toEqual([PODMANS, request, 7, 5]);
});

test("who has a place or a directory of its own has no other service", () => {
  for (const ipam of [{ daemonSocketPath: "/s" }, { dataDir: "/d" }]) {
    expect(() => ask(acquire, ipam)).toThrow(NoService);
  }
  expect(paths()).toEqual(["/s", OURS]);
  there = { [PODMANS]: answer };
  expect(ask(acquire, { dataDir: "/var/lib/cni/dhcp" })).toBe(answer);
});

test("of podman's place counts what a service of ours says", () => {
  there = { [PODMANS]: new Failed("no") };
  expect(() => ask(acquire)).toThrow("no");
  for (const other of [new NoService("nobody"), new NoAnswer("netavark's own")]) {
    there = { [PODMANS]: other };
    expect(() => ask(acquire)).toThrow(`nobody listens on ${OURS}`);
  }
});
