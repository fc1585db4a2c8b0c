/** The file that flanneld writes: what it has to say, and what is no such file. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CniError } from "../../../../src/cni/error.ts";
import { readSubnetEnv } from "../../../../src/plugins/meta/flannel/subnet-env.ts";

const directory = mkdtempSync(join(tmpdir(), "flannel-")), path = join(directory, "subnet.env");
afterAll(() => rmSync(directory, { recursive: true }));

function read(...lines: string[]) {
  writeFileSync(path, lines.map((line) => `${line}\n`).join(""));
  return readSubnetEnv(path);
}

const v4 = ["FLANNEL_NETWORK=10.244.0.0/16", "FLANNEL_SUBNET=10.244.3.1/24"];
const v6 = ["FLANNEL_IPV6_NETWORK=fd00:1::/48", "FLANNEL_IPV6_SUBNET=fd00:1:0:5::1/64"];
const rest = ["FLANNEL_MTU=1450", "FLANNEL_IPMASQ=true"];

test("networks and subnets of both families, without host bits, each once", () => {
  expect(read(...v6, ...v4, ...rest)).toEqual({
    networks: ["10.244.0.0/16", "fd00:1::/48"],
    subnets: ["10.244.3.0/24", "fd00:1:0:5::/64"],
    mtu: 1450,
    ipMasq: true,
  });
  expect(read("# a comment", "", ...v4, "OTHER", "FLANNEL_MTU= 0 ", "FLANNEL_IPMASQ=false")).toEqual({
    networks: ["10.244.0.0/16"],
    subnets: ["10.244.3.0/24"],
    mtu: 0,
    ipMasq: false,
  });
  const several = "FLANNEL_NETWORK=10.1.0.0/16,,10.2.0.0/16,10.1.0.0/16";
  expect(read(several, v4[1]!, ...rest).networks).toEqual(["10.1.0.0/16", "10.2.0.0/16"]);
});

test("what is missing is named, with what to look at", () => {
  const failure = (...lines: string[]) => {
    try {
      return read(...lines);
    } catch (error) {
      const { code, message } = error as CniError;
      return [code, message.replace("failed to load flannel 'subnet.env' file: ", "").replace(path, "FILE")];
    }
  };
  const log = ". Check the flannel pod log for this node.";
  expect(failure()).toEqual([
    6,
    `FILE is missing FLANNEL_NETWORK, FLANNEL_IPV6_NETWORK, FLANNEL_SUBNET, ` +
    `FLANNEL_IPV6_SUBNET, FLANNEL_MTU, FLANNEL_IPMASQ${log}`,
  ]);
  expect(failure(v4[0]!, v6[1]!, rest[0]!)).toEqual([6, `FILE is missing FLANNEL_IPMASQ${log}`]);
  expect(failure(...v4, "FLANNEL_MTU", rest[1]!)).toEqual([6, `FILE: "FLANNEL_MTU" has no value${log}`]);
  for (const mtu of ["", "-1", "1.5", "x"]) {
    expect(failure(...v4, `FLANNEL_MTU=${mtu}`, rest[1]!)).toEqual([
      6,
      `FILE: FLANNEL_MTU "${mtu}" is not an MTU${log}`,
    ]);
  }
  expect(failure("FLANNEL_NETWORK=x", ...rest)).toEqual([6, `FILE: FLANNEL_NETWORK: invalid CIDR address: x${log}`]);
  rmSync(path);
  expect(() => readSubnetEnv(path)).toThrow(`open ${path}: no such file or directory${log}`);
});
