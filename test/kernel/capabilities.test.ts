/** A plugin needs CAP_NET_ADMIN and CAP_SYS_ADMIN and no other capability, as SECURITY.md says. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { openMachine } from "../support/machine.ts";
import { environmentOf, patchbayPlugins, stdinOf } from "../support/plugins.ts";

/** SECURITY.md, "What it needs". */
const NEEDED = ["net_admin", "sys_admin"];

for (const backend of ["nftables", "iptables"]) {
  test(
    `ADD, CHECK and DEL of bridge, masqueraded with ${backend}, need ${NEEDED.join(" and ")} and no other right`,
    async () => {
      await using machine = await openMachine();
      const container = await machine.container();
      const bin = patchbayPlugins();
      const conf = {
        cniVersion: "1.0.0",
        name: "net",
        type: "bridge",
        isGateway: true,
        ipMasq: true,
        ipMasqBackend: backend,
        ipam: { type: "host-local", ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "fd00:1::/64" }]] },
      };
      const rights = NEEDED.map((name) => `+${name}`).join(",");
      const restricted = [
        ...["setpriv", `--bounding-set=-all,${rights}`, `--inh-caps=-all,${rights}`, "--no-new-privs", "--"],
        join(bin, "bridge"),
      ];
      const run = async (command: string, extra = {}) => {
        const call = { plugin: "bridge", command, conf: { ...conf, ...extra }, container };
        const outcome = await machine.run(restricted, { stdin: stdinOf(call), env: environmentOf(bin, call) });
        expect(outcome).toMatchObject({ code: 0, stderr: "" });
        return outcome.stdout;
      };
      const shown = await machine.run([...restricted.slice(0, -1), "sh", "-c", "grep CapEff /proc/self/status"]);
      expect(shown.stdout.trim().split(/\s+/)[1]).toBe("0000000000201000");

      const prevResult = JSON.parse(await run("ADD"));
      expect(prevResult.ips.length).toBe(2);
      await run("CHECK", { prevResult });
      await run("DEL", { prevResult });
      expect(await machine.sh("ip -o link show", { in: container })).not.toContain("eth0");
    },
    60_000,
  );
}
