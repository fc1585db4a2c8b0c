/** What a configuration of ovs means, with the file beside it and the arguments of a call. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OvsConf } from "../../../../src/plugins/main/ovs/ovs.schema.ts";
import { validateOvsConf } from "../../../../src/plugins/main/ovs/ovs.validate.gen.ts";
import {
  argumentsOf,
  bridgeOf,
  patienceMs,
  serverOf,
  vlansInTunnel,
  vlansOf,
  withFile,
  withReadableFile,
} from "../../../../src/plugins/main/ovs/settings.ts";

const directory = mkdtempSync(join(tmpdir(), "patchbay-ovs-conf-"));
afterAll(() => rmSync(directory, { recursive: true }));

const conf = (more: object = {}): OvsConf => validateOvsConf({ name: "net", type: "ovs", ...more });
let files = 0;
const file = (text: string): string => {
  const path = join(directory, `${++files}.conf`);
  writeFileSync(path, text);
  return path;
};

describe("the file", () => {
  const text = '{"bridge":"br1","vlan":7,"mtu":1400,"socket_file":"unix:/run/x.sock","link_state_check_retries":2}';

  test("gives what the configuration leaves out, 0 and empty texts too", () => {
    const configuration_path = file(text);
    expect(withFile(conf({ configuration_path, mtu: 0, socket_file: "" }))).toMatchObject({
      bridge: "br1",
      vlan: 7,
      mtu: 1400,
      socket_file: "unix:/run/x.sock",
      link_state_check_retries: 2,
    });
  });

  test("takes nothing back that the configuration says, nor its name; VLAN 0 is one", () => {
    const configuration_path = file(`{"name":"other","type":"other",${text.slice(1)}`);
    expect(withFile(conf({ configuration_path, bridge: "br0", vlan: 0, mtu: 9000 }))).toMatchObject({
      name: "net",
      type: "ovs",
      bridge: "br0",
      vlan: 0,
      mtu: 9000,
    });
  });

  test.each(["", "{", "[]x", '{"vlan":"5"}', '{"vlan":5000}', "5", "[]"])(
    "%j is refused, and DEL goes on",
    (text) => {
      const written = conf({ configuration_path: file(text), bridge: "br0" });
      expect(() => withFile(written)).toThrow(written.configuration_path!);
      expect(withReadableFile(written).bridge).toBe("br0");
    },
  );

  test("one that is not there is none", () => {
    const written = conf({ configuration_path: join(directory, "none") });
    expect(withFile(written)).toEqual(written);
  });
});

test("arguments: CNI_ARGS before args.cni, whatever the case; what is no text counts for nothing", () => {
  const both = conf({ args: { cni: { MAC: "b", ovnport: "port", Mac: 5 } } });
  expect(argumentsOf(both, { cniArgs: "" })).toMatchObject({ mac: "b", ovnPort: "port" });
  const cniArgs = "IgnoreUnknown=1;mac=a;OVNPORT=other;K8S_POD_UID=u";
  expect(argumentsOf(both, { cniArgs })).toEqual({ mac: "a", ovnPort: "other", podUid: "u" });
  expect(argumentsOf(conf(), { cniArgs: "" })).toEqual({ mac: undefined, ovnPort: undefined, podUid: undefined });
});

test("the bridge: OVN's own for its logical ports, else it has to be named", () => {
  expect(bridgeOf(conf({ bridge: "br0" }), { ovnPort: "p" })).toBe("br0");
  expect(bridgeOf(conf(), { ovnPort: "p" })).toBe("br-int");
  expect(() => bridgeOf(conf(), {})).toThrow("failed to get bridge name");
});

test("the VLANs: one, several, all; in a tunnel its own", () => {
  expect(vlansOf(conf({ vlan: 0 }))).toEqual({ mode: "access", tag: 0 });
  expect(vlansOf(conf({ vlan: 5, trunk: [{ id: 7 }, { minID: 1, maxID: 3 }] }))).toEqual({
    mode: "trunk",
    trunks: [{ first: 1, last: 3 }, { first: 7, last: 7 }],
  });
  expect(vlansOf(conf({ trunk: [] }))).toEqual({ mode: "trunk" });
  expect(() => vlansOf(conf({ trunk: [{}] }))).toThrow("trunk parameter is misconfigured");
  expect(() => vlansOf(conf({ trunk: [{ minID: 5 }] }))).toThrow("maxID is missing");
  expect(vlansInTunnel(conf(), undefined)).toEqual({ mode: "trunk" });
  expect(vlansInTunnel(conf(), 10)).toEqual({ mode: "access", tag: 10 });
  expect(vlansInTunnel(conf({ vlan: 10 }), 10)).toEqual({ mode: "access", tag: 10 });
  expect(() => vlansInTunnel(conf({ vlan: 11, vxlanID: 42 }), 10)).toThrow('"vlan" says another one');
  expect(() => vlansInTunnel(conf({ trunk: [{ id: 10 }], vxlanID: 42 }), 10)).toThrow('"trunk" says another one');
});

test("the database: ovs-cni's forms but TLS", () => {
  expect(serverOf(conf())).toBe("unix:/var/run/openvswitch/db.sock");
  expect(serverOf(conf({ socket_file: "/run/x.sock" }))).toBe("unix:/run/x.sock");
  expect(serverOf(conf({ socket_file: "tcp:127.0.0.1:6640" }))).toBe("tcp:127.0.0.1:6640");
  for (const [text, why] of [["ssl:127.0.0.1:6640", "ssl: is not supported"], ["x", "no address"]] as const) {
    expect(() => serverOf(conf({ socket_file: text }))).toThrow(why);
  }
});

test.each([
  [{}, 3000],
  [{ link_state_check_retries: 10 }, 6000],
  [{ link_state_check_interval: 1000 }, 5000],
  // ovs-cni would look once, after IPAM.
  [{ link_state_check_retries: 1, link_state_check_interval: 1 }, 1000],
  [{ link_state_check_retries: -1 }, 1000],
  [{ link_state_check_retries: -5, link_state_check_interval: -600 }, 1000],
  [{ link_state_check_retries: 1_000_000 }, 600_000],
])("how long ADD waits: %j, %d ms", (more, wanted) => {
  expect(patienceMs(conf(more))).toBe(wanted);
});
