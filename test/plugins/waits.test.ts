/** Which calls may wait for others, says each plugin: a resident leaves those to their callers. */
import { expect, test } from "bun:test";
import type { Awaited } from "../../src/contract/plugin.ts";
import { loadPlugin, pluginNames } from "../../src/plugins/table.ts";

const waits: Record<string, [document: Record<string, unknown>, awaited: Awaited[]][]> = {
  bridge: [[{}, ["legacy iptables"]], [{ enableDAD: true }, ["duplicate address detection", "legacy iptables"]]],
  dhcp: [[{}, ["DHCP"]]],
  firewall: [[{}, ["bus", "legacy iptables"]]],
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

test("only the lease of dhcp is given back through the link", () => {
  expect(pluginNames.filter((name) => loadPlugin(name)!.isReleasedThroughLink)).toEqual(["dhcp"]);
});
