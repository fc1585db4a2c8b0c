/** The kernel is asked which matches and targets of iptables it has, without writing a rule. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { openMachine } from "../../support/machine.ts";

const src = resolve(import.meta.dir, "../../../src");
const ask = `
  import { missingExtensions } from "${src}/interop/iptables/extensions.ts";
  import { hasExtension } from "${src}/ffi/netlink/nftables/extension.ts";
  import { NETLINK_NETFILTER, openNetlink } from "${src}/ffi/netlink/socket.ts";
  const socket = openNetlink(NETLINK_NETFILTER);
  const has = (kind, name, revision) => hasExtension(socket, { kind, name, revision });
  console.log(JSON.stringify({
    has: [has("match", "comment", 0), has("target", "DNAT", 2)],
    hasNot: [has("match", "comment", 77), has("match", "nonesuch", 0), has("target", "comment", 0)],
    missing: missingExtensions(socket, [{ comment: "x", toLocal: true, target: "MASQUERADE" }]),
  }));`;

test("the kernel is asked for the matches and targets of rules, by name, kind and revision", async () => {
  await using machine = await openMachine();
  const { stdout, stderr } = await machine.run([process.execPath, "-e", ask]);
  expect(stderr).toBe("");
  expect(JSON.parse(stdout)).toEqual({ has: [true, true], hasNot: [false, false, false], missing: [] });
  expect(await machine.sh("nft list ruleset")).toBe("");
});
