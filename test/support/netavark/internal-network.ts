/** An internal network of podman's, and whether its bridge is closed. */
import { expect } from "bun:test";
import type { PodmanNetwork } from "../../../src/interop/podman-documents/netavark.schema.ts";
import type { Container, Machine } from "../machine.ts";
import { attach, bridgeNetwork, containerIn } from "./attached.ts";

/** The host's forwarding in both families. */
export const off = "sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0";
export const on = "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1";

export function inputOf(more: Partial<PodmanNetwork>, number = 1) {
  return containerIn([{ network: bridgeNetwork(8, { internal: true, ...more }) }], number);
}

export async function setUp(machine: Machine, container: Container, input: object, env = {}): Promise<void> {
  expect(await attach(machine, "setup", container, input, env)).toMatchObject({ code: 0, stderr: "" });
}

export async function tearDown(machine: Machine, container: Container, input: object): Promise<void> {
  expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
}

export async function isClosed(machine: Machine): Promise<boolean> {
  return (await machine.run(["nft", "list", "table", "inet", "patchbay_internal"])).code === 0;
}
