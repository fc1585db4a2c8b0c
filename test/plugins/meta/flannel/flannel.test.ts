/** flannel's configuration for its delegate: what it says, where it is kept, and whose it is. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import flannel from "../../../../src/plugins/meta/flannel/flannel.ts";
import { tell } from "../../../support/story.ts";

let dataDir: string, subnetFile: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "flannel-"));
  subnetFile = join(dataDir, "env");
  writeFileSync(
    subnetFile,
    "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.3.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n",
  );
});
afterEach(() => rmSync(dataDir, { recursive: true }));

const kept = () => join(dataDir, "c1");
const made = (written: object = {}) => {
  const { list } = tell("flannel", "make", { subnetFile, dataDir, ...written });
  return list as [kind: string, spec: { type: string; stdin: string; keptIn: string }][];
};
const conf = (written: object = {}) =>
  flannel.validate({ cniVersion: "1.1.0", name: "net", type: "flannel", subnetFile, dataDir, ...written });

const at = () => ({ conf: conf(), containerId: "c1", network: "net" }) as never;

test("the delegate is a bridge with the node's subnet and the way to the cluster, its keys sorted", () => {
  const [[kind, { type, stdin, keptIn }], ...others] = made() as [ReturnType<typeof made>[0]];
  expect([kind, type, keptIn, others]).toEqual(["delegation", "bridge", kept(), []]);
  expect(stdin).toBe(
    '{"cniVersion":"1.1.0","ipMasq":false,"ipam":{"ranges":[[{"subnet":"10.244.3.0/24"}]],' +
      '"routes":[{"dst":"10.244.0.0/16"}],"type":"host-local"},"isGateway":true,"mtu":1450,"name":"net","type":"bridge"}',
  );
});

test("what is written overrules it, but for what is flannel's", () => {
  const delegate = { type: "ptp", mtu: 1400, cniVersion: "0.3.0", extra: [1, { b: 1, a: 2 }] };
  const ipam = { type: "other", dataDir: "/x", routes: [{ dst: "192.0.2.0/24" }], ranges: [] };
  const [[, { type, stdin }]] = made({ delegate, ipam, runtimeConfig: { mac: "x" } }) as [ReturnType<typeof made>[0]];
  expect(type).toBe("ptp");
  expect(JSON.parse(stdin)).toEqual({
    cniVersion: "1.1.0",
    name: "net",
    type: "ptp",
    mtu: 1400,
    ipMasq: false,
    extra: [1, { a: 2, b: 1 }],
    ipam: {
      type: "other",
      dataDir: "/x",
      ranges: [[{ subnet: "10.244.3.0/24" }]],
      routes: [{ dst: "192.0.2.0/24" }, { dst: "10.244.0.0/16" }],
    },
    runtimeConfig: { mac: "x" },
  });
  expect(stdin).toContain('"extra":[1,{"a":2,"b":1}]');
});

test("what was kept for the container is restated, if it is this network's", () => {
  const restated = () => tell("flannel", "undo", { subnetFile, dataDir });
  const stdin = '{"name":"net","type":"ptp"}';
  expect(restated().list).toEqual([]);
  for (const other of ["no JSON", "[]", '{"name":"other","type":"ptp"}', '{"name":"net"}', ""]) {
    writeFileSync(kept(), other, { mode: 0o600 });
    expect(restated()).toEqual({ list: [], result: { cniVersion: "1.1.0" } });
    expect(flannel.check!(at())).toEqual([
      `${kept()} does not say how net was attached`,
    ]);
  }
  writeFileSync(kept(), stdin, { mode: 0o600 });
  expect(restated()).toEqual({
    list: [["delegation", { type: "ptp", stdin, keptIn: kept() }]],
    result: { cniVersion: "1.1.0" },
  });
  expect(flannel.check!(at())).toEqual([]);
  const prevResult = { cniVersion: "1.1.0", ips: [{ address: "10.244.3.5/24" }] };
  expect(tell("flannel", "check", { subnetFile, dataDir, prevResult }).result).toEqual(prevResult);
  expect(tell("flannel", "undo", { subnetFile, dataDir: subnetFile }).list).toEqual([]);
});

test("GC removes what was kept for containers of the network that are gone", () => {
  const files = { c1: "net", c2: "net", c3: "other" };
  for (const [id, name] of Object.entries(files)) {
    writeFileSync(join(dataDir, id), JSON.stringify({ name, type: "ptp" }), { mode: 0o600 });
  }
  mkdirSync(join(dataDir, "c4"));
  flannel.gc!(conf(), ({ containerId }) => containerId === "c1", undefined as never);
  const left = ["c1", "c2", "c3", "c4"].filter((id) => existsSync(join(dataDir, id)));
  expect(left).toEqual(["c1", "c3", "c4"]);
});

test("GC and STATUS of the delegate get its configuration while flanneld's file is there", () => {
  expect(flannel.passedOn!(conf())).toMatchObject({ type: "bridge", conf: { name: "net", mtu: 1450 } });
  expect(flannel.status!(conf(), undefined as never, {})).toBeUndefined();
  rmSync(subnetFile);
  expect(flannel.passedOn!(conf())).toBeUndefined();
  expect(() => flannel.status!(conf(), undefined as never, {})).toThrow("failed to load flannel 'subnet.env' file");
});
