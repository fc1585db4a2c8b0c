/**
 * ipMasq when programs change: the reference plugin's DEL removes the rules of our ADD, and our DEL those of its ADD,
 * with and without prevResult.
 */
import { expect, test } from "bun:test";
import { type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { GO_PLUGINS } from "../support/plugins.ts";

const dual = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
const conf = { type: "bridge", bridge: "br0", isDefaultGateway: true, ipMasq: true, ipam: dual, cniVersion: "1.0.0" };

/** What iptables and nft show besides the empty tables that both leave. */
async function rules(machine: Machine): Promise<string> {
  const text = await machine.sh("iptables-save -t nat; ip6tables-save -t nat; nft list tables");
  return text.split("\n").filter((line) => /^-A|CNI-|patchbay/.test(line)).join("\n");
}

test("the reference plugin removes what we made with the iptables backend", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const net = { ...conf, ipMasqBackend: "iptables" };
  const prevResult = await network(machine, net).add(container);
  expect(await rules(machine)).toMatch(/-A POSTROUTING -s 10\.20\.0\.2\/32 .*-A POSTROUTING -s fd20::2\/128 /s);
  await network(machine, net, GO_PLUGINS).del(container, { conf: { prevResult } });
  expect(await rules(machine)).toBe("");
});

for (const namespace of ["there", "gone"]) {
  for (const prevResult of ["with", "without"]) {
    test(`we remove what the reference plugin made, namespace ${namespace}, ${prevResult} prevResult`, async () => {
      await using machine = await openMachine();
      const [container, neighbour] = [await machine.container(), await machine.container()];
      const theirs = network(machine, conf, GO_PLUGINS);
      const made = await theirs.add(container);
      await theirs.add(neighbour);
      const change = prevResult === "with" ? { conf: { prevResult: made } } : {};
      const ours = network(machine, conf);
      await ours.del(container, namespace === "gone" ? { ...change, env: { CNI_NETNS: "" } } : change);
      expect(await rules(machine)).not.toMatch(/10\.20\.0\.2\b|fd20::2\b/);
      expect(await rules(machine)).toMatch(/-s 10\.20\.0\.3\/32 .*-s fd20::3\/128 /s);
      await ours.del(neighbour);
      expect(await rules(machine)).toBe("");
    });
  }
}

for (const ipMasqBackend of ["iptables", "nftables"]) {
  test(`${ipMasqBackend}: CHECK misses what is removed, DEL without ledger and GC leave nothing`, async () => {
    await using machine = await openMachine();
    const [container, other] = [await machine.container(), await machine.container()];
    const net = network(machine, { ...conf, cniVersion: "1.1.0", ipMasqBackend });
    await net.add(container);
    await net.add(other);
    await net.check(container);
    const before = await rules(machine);
    await machine.sh("nft flush ruleset");
    expect((await net.call("CHECK", container)).json.msg).toMatch(/10\.20\.0\.2/);
    await machine.sh("rm -rf /run/patchbay");
    await net.add(await machine.container(), { conf: { ipMasqBackend: "iptables" } });
    await net.del(container);
    await net.del(other, { env: { CNI_NETNS: "" } });
    expect(before).not.toBe("");
    // Only the third is left, which GC does not know.
    await machine.sh("rm -rf /run/patchbay");
    await net.gc([]);
    expect(await rules(machine)).toBe("");
  });
}
