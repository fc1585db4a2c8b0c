/** What a purge of Debian's package leaves on a host: docs/release.md, "Install Debian's packages". */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { GO_PLUGINS, PATCHBAY, patchbayPlugins } from "../support/plugins.ts";
import { openMachine } from "../support/machine.ts";

const SCRIPT = resolve(import.meta.dir, "../../release/debian/patchbay.postrm");
const list = {
  cniVersion: "1.0.0",
  name: "net",
  plugins: [
    { type: "bridge", bridge: "br0", isGateway: true, ipam: { type: "host-local", subnet: "10.9.0.0/24" } },
    { type: "portmap", capabilities: { portMappings: true } },
  ],
};
const CAP_ARGS = JSON.stringify({ portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] });

test("while ledgers are left, they and what goes with them stay; then only leases and results may", async () => {
  await using machine = await openMachine();
  await machine.sh("mkdir /run/networks; cat >/run/networks/net.conflist", { stdin: JSON.stringify(list) });
  const patchbay = async (plugins: string, ...words: string[]) => {
    const env = { NETCONFPATH: "/run/networks", CNI_PATH: plugins, CAP_ARGS };
    expect(await machine.run([PATCHBAY, ...words], { env })).toMatchObject({ code: 0 });
  };
  // The helpers of this host's own units are nothing for a machine.
  const purge = () =>
    machine.sh(`mkdir -p /run/bin; ln -sf /bin/rm /bin/rmdir /run/bin; PATH=/run/bin /bin/sh ${SCRIPT} purge`);
  const left = async () =>
    (await machine.sh("find /run/patchbay /var/lib/cni -type f 2>/dev/null | sort; nft list tables || true"))
      .split("\n").filter((line) => /patchbay|10[.]9/.test(line)).map((line) =>
        line.replace(/.*\/(?=\.patchbay)/, "")
      );
  const container = await machine.container("c1");
  await patchbay(patchbayPlugins(), "add", "net", "c1", "--container-id", "ctr");
  await patchbay(GO_PLUGINS, "del", "net", "c1", "--container-id", "ctr");
  await machine.removeContainer(container);

  await purge();
  expect(await left()).toEqual(expect.arrayContaining([
    expect.stringContaining("/run/patchbay/net/ctr@eth0@bridge"),
    ".patchbay.lock",
    "table ip patchbay_localhost",
  ]));
  await patchbay(patchbayPlugins(), "gc", "--gone");
  await purge();
  expect(await left()).toEqual([]);
});
