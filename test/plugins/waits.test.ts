/** Which calls may wait for others, says each plugin: a resident leaves those to their callers. */
import { expect, test } from "bun:test";
import type { Awaited } from "../../src/contract/plugin.ts";
import netavarkBridge from "../../src/plugins/netavark/netavark-bridge/netavark-bridge.ts";
import { loadPlugin, pluginNames } from "../../src/plugins/table.ts";

const waits: Record<string, [document: Record<string, unknown>, awaited: Awaited[]][]> = {
  bridge: [[{}, ["legacy iptables"]], [{ enableDAD: true }, ["duplicate address detection", "legacy iptables"]]],
  dhcp: [[{}, ["DHCP"]]],
  firewall: [[{}, ["firewalld", "legacy iptables"]]],
  flannel: [[{}, ["delegate"]]],
  portmap: [[{}, ["legacy iptables"]]],
  ptp: [[{}, ["legacy iptables"]]],
  tap: [[{}, []], [{ selinuxContext: "a:b:c:s0" }, ["SELinux"]]],
};

for (const name of pluginNames) {
  for (const [document, awaited] of waits[name] ?? [[{}, []]]) {
    test(`${name} ${JSON.stringify(document)}`, () => {
      expect(loadPlugin(name)!.mayWaitFor?.(document) ?? []).toEqual(awaited);
    });
  }
}

const podmans = (network: object) => ({ network, aardvarkBinary: "/usr/libexec/podman/aardvark-dns" });
test.each<[awaited: Awaited[], document: Record<string, unknown>]>([
  [["firewalld"], {}],
  [["firewalld"], { firewall: "nftables", network: { dns_enabled: true } }],
  [["firewalld"], { firewall: "firewalld", ...podmans({ dns_enabled: false }) }],
  [["firewalld", "aardvark-dns"], { firewall: "nftables", ...podmans({ dns_enabled: true }) }],
  [["aardvark-dns"], { firewall: "none", ...podmans({ dns_enabled: true }) }],
  [[], { firewall: "none", ...podmans([]), network: "dns_enabled" }],
])("%j: netavark-bridge %j", (awaited, document) => {
  expect(netavarkBridge.mayWaitFor!(document)).toEqual(awaited);
});

test("only the lease of dhcp is given back through the link", () => {
  expect(pluginNames.filter((name) => loadPlugin(name)!.isReleasedThroughLink)).toEqual(["dhcp"]);
});
