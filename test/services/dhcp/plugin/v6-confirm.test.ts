/** A container with a DHCPv6 lease in another namespace, and after a boot: whether the address is right there, is asked first. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { ONLY_V6 } from "../../../support/dhcp/attached.ts";
import { captureIn } from "../../../support/dhcp/capture.ts";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { CONFIRM, kindsOf, REPLY } from "../../../support/dhcp/messages6.ts";
import { OFFER6 } from "../../../support/dhcp/offer.ts";
import { iscDhcpd6, kea6, serve6 } from "../../../support/dhcp/servers-v6.ts";
import { startService, untilAddresses } from "../../../support/dhcp/service.ts";

const LONG = { ...OFFER6, preferredSeconds: 600, validSeconds: 1000 };

test.each([iscDhcpd6, kea6])("$name confirms the address of a container that comes again", async (kind) => {
  await using segment = await serverBehindBridge();
  const { machine } = segment, server = await serve6(kind, segment.site, LONG);
  await using service = await startService(segment);
  // The kernel takes its time to remove a namespace, whose link answers meanwhile.
  const net = service.network({}, { ...ONLY_V6, acd: "none" }), containerId = "ctr-c1";
  let container = await machine.container();
  const { ips: [{ address: first }] } = await net.add(container, { containerId }), ip = first.split("/")[0];
  await server.untilLease(ip, "active");
  for (const moment of ["without DEL", "after a boot"]) {
    if (moment === "after a boot") {
      await service.stop();
      for (const name of service.records()) {
        const path = join(service.directory, name), record = JSON.parse(readFileSync(path, "utf8"));
        writeFileSync(path, JSON.stringify({ ...record, bootId: "another" }));
      }
      await service.start();
    }
    await using capture = await captureIn(segment, segment.site.namespace);
    await machine.removeContainer(container);
    container = await machine.container(moment.replaceAll(" ", "-"));
    const { ips: [{ address }] } = await net.add(container, { containerId });
    expect(address).toBe(`${ip}/128`);
    await untilAddresses(segment, container, (all) => all.some((one) => one.address === ip && one.valid < Infinity));
    const sent = kindsOf(capture.frames());
    expect([moment, ...sent.slice(0, 2)]).toEqual([moment, CONFIRM, REPLY]);
  }
  await net.del(container, { containerId });
  await server.untilLease(ip, "free");
});
