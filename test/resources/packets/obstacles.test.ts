/** Why a backend cannot be used, for STATUS, where the kernel has no netfilter. test/kernel/status.test.ts asks real kernels. */
import { expect, test } from "bun:test";
import type { Host } from "../../../src/contract/host.ts";
import { EPERM, EPROTONOSUPPORT, SyscallError } from "../../../src/ffi/errno.ts";
import { obstacleToFirewall as obstacleToFirewall } from "../../../src/resources/packets/firewall/firewall.ts";
import { obstacleToPortMappings as obstacleToPorts } from "../../../src/resources/packets/port-mappings/port-mappings.ts";

function without(errno: number): Host {
  return {
    get netfilter(): never {
      throw new SyscallError("socket", errno);
    },
  } as unknown as Host;
}

const none = without(EPROTONOSUPPORT), NO_NF_TABLES = "this kernel does not have nf_tables";
const ports = { markBit: 13 };

/** Where no iptables is in PATH, its tables are in nf_tables. */
function withoutPrograms(work: () => void): void {
  const before = process.env.PATH;
  process.env.PATH = "";
  try {
    work();
  } finally {
    process.env.PATH = before;
  }
}

test("neither of our tables nor of iptables' can be made", () => {
  withoutPrograms(() => {
    for (const backend of ["nftables", "iptables"] as const) {
      for (const policy of ["", "open", "same-bridge", "isolated"]) {
        expect([backend, policy, obstacleToFirewall(backend, policy, none)]).toEqual([backend, policy, NO_NF_TABLES]);
      }
      expect([backend, obstacleToPorts({ ...ports, backend }, none)]).toEqual([backend, NO_NF_TABLES]);
      const own = { ...ports, backend, masquerade: "all", setMarkChain: "THEIRS" } as const;
      expect([backend, obstacleToPorts(own, none)]).toEqual([backend, NO_NF_TABLES]);
    }
  });
});

test("what the kernel says of itself is not taken for a lack of it", () => {
  withoutPrograms(() => {
    for (const backend of ["nftables", "iptables"] as const) {
      expect(() => obstacleToFirewall(backend, "", without(EPERM))).toThrow("operation not permitted");
      expect(() => obstacleToPorts({ ...ports, backend }, without(EPERM))).toThrow("operation not permitted");
    }
  });
});
