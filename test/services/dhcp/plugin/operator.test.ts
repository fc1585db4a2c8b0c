/** What people are told of a network with leases: inspect, plan, repair, lint. None of it sends anything. */
import { expect, test } from "bun:test";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { kindsOf, serveScript } from "../../../support/dhcp/scripted-server.ts";
import { startService } from "../../../support/dhcp/service.ts";
import { PATCHBAY } from "../../../support/plugins.ts";

const address = "192.168.77.50";

test("inspect, plan, repair and lint of a network whose addresses servers give", async () => {
  await using segment = await serverBehindBridge();
  const { machine, folder } = segment;
  const server = await serveScript(segment.site, { address, leaseSeconds: 1000 });
  await using service = await startService(segment);
  const conf = {
    cniVersion: "1.1.0",
    name: "net",
    plugins: [{ type: "bridge", bridge: "br0", ipam: service.ipam() }],
  };
  const file = `${folder}/net.conflist`;
  await Bun.write(file, JSON.stringify(conf));
  const lint = await machine.run([PATCHBAY, "lint", file]);
  expect(lint).toMatchObject({ code: 0 });
  const net = service.network(), container = await machine.container("c1");
  const plan = await machine.run([PATCHBAY, "plan", "--config-dir", folder, "net", container.netnsPath]);
  expect(plan).toMatchObject({ code: 0, stderr: "" });
  expect(plan.stdout).toContain("br0");
  expect(server.received()).toEqual([]);
  await net.add(container);
  const inspect = await machine.run([PATCHBAY, "inspect"]);
  expect(inspect.code).toBe(0);
  expect(inspect.stdout).toContain("ctr-c1");
  expect(inspect.stdout).toContain("eth0");
  const repair = await machine.run([PATCHBAY, "repair"]);
  expect(repair.code).toBe(0);
  await net.check(container);
  expect(service.records()).toHaveLength(1);
  // A lease of a server is not host-local's to release.
  for (const wanted of [[address], ["--container", "ctr-c1"], ["--container", "c1", "--ifname", "eth0"]]) {
    const words = ["release", "net", ...wanted, "--dhcp-dir", service.directory];
    expect(await machine.run([PATCHBAY, "ipam", ...words])).toEqual({
      code: 1,
      stdout: "",
      stderr: `patchbay ipam: ${address} of container ctr-c1 in network net is from DHCP, and not released here; ` +
        "'patchbay del net ctr-c1' gives it back to the server\n",
    });
  }
  expect(service.records()).toHaveLength(1);
  expect(kindsOf(server.received())).toEqual(["DISCOVER", "REQUEST"]);
  await Bun.write(
    file,
    JSON.stringify({ ...conf, plugins: [{ type: "bridge", ipam: service.ipam({ acd: "slow" }) }] }),
  );
  const wrong = await machine.run([PATCHBAY, "lint", file]);
  expect(wrong.code).toBe(1);
  expect(wrong.stdout + wrong.stderr).toContain("ipam.acd");
  await net.del(container);
});
