/** A disk that is full or cannot be written to, and records that are none: new leases fail, the others go on. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { value } from "../../../support/dhcp/offer.ts";
import { openScene } from "../../../support/dhcp/scene.ts";
import { kindsOf, serveScript } from "../../../support/dhcp/scripted-server.ts";
import { Service } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";

const address = "192.168.77.50";

const troubles = [
  { name: "a full disk", begin: "head -c 100000 /dev/zero > DIR/ballast || true", cause: "no space left on device" },
  {
    name: "a disk that is read-only",
    begin: "mount -t tmpfs -o ro,mode=700 tmpfs DIR",
    cause: "read-only file system",
  },
];

test.each(troubles)(
  "$name: ADD fails with the cause and gives the lease back, renewals go on",
  async ({ begin, cause }) => {
    await using segment = await serverBehindBridge();
    const { machine } = segment;
    const server = await serveScript(segment.site, {
      address,
      leaseSeconds: 60,
      options: { 58: value.u32(2), 59: value.u32(50) },
    });
    const service = new Service(segment, {});
    await machine.sh(
      `mkdir -p ${service.directory} && mount -t tmpfs -o size=16k,mode=700 tmpfs ${service.directory}`,
    );
    await service.start();
    const inMachine = async () =>
      (await machine.sh(`ls ${service.directory}`)).split("\n").filter((name) => name !== "");
    const net = service.network({}, { acd: "none" });
    const first = await machine.container("c1"), second = await machine.container("c2");
    await net.add(first);
    await machine.sh(begin.replaceAll("DIR", service.directory));
    const names = await inMachine();
    const failed = await net.call("ADD", second);
    expect(failed.code).toBe(1);
    expect(failed.json.msg).toContain("cannot record the lease: ");
    expect(failed.json.msg).toContain(cause);
    const released = await server.until((all) => kindsOf(all).includes("RELEASE"));
    expect(released.find(({ kind }) => kind === "RELEASE")).toMatchObject({ ciaddr: "192.168.77.51" });
    await untilTrue(inMachine, (found) => found.join() === names.join());
    expect((await net.call("STATUS", undefined)).json).toMatchObject({ msg: expect.stringContaining(cause) });
    const renewals = () => server.received().filter((one) => one.asked === "RENEW").length;
    const before = renewals();
    await untilTrue(renewals, (count) => count >= before + 2);
    await net.check(first);
    expect((await net.call("DEL", first)).code).toBe(0);
    await server.until((all) => all.some(({ kind, ciaddr }) => kind === "RELEASE" && ciaddr === address));
    await service.stop();
    await machine.sh(`umount --recursive ${service.directory}`);
  },
);

test("records that are none are set aside; the others go on", async () => {
  await using scene = await openScene({ address, leaseSeconds: 1000 });
  const { segment, server, service } = scene;
  const container = await segment.machine.container("c1"), net = service.network();
  await net.add(container);
  await service.stop();
  const [good] = service.records(), text = readFileSync(join(service.directory, good!), "utf8");
  // deno-lint-ignore no-explicit-any
  const changed = (change: (record: any) => void) => {
    const record = JSON.parse(text);
    change(record);
    return JSON.stringify(record);
  };
  const own = (change: Parameters<typeof changed>[0]) => (id: string) =>
    changed((record) => {
      record.containerId = id;
      change(record);
    });
  const damaged: ((id: string) => string)[] = [
    () => "",
    () => text.slice(0, text.length / 2),
    () => "x".repeat(1024 * 1024),
    () => "[".repeat(100_000),
    () => "null",
    // A record of another container: there would be two of it.
    () => text,
    own((record) => record.format = 0),
    // test/services/dhcp/journal/reading.test.ts has more values that are wrong.
    own((record) => record.v4.lease.address = "300.1.1.1/24"),
  ];
  const names = damaged.map((content, index) => {
    const name = `net@ctr-x${index}@eth0.lease`;
    writeFileSync(join(service.directory, name), content(`ctr-x${index}`));
    return name;
  });
  mkdirSync(join(service.directory, "net@ctr-folder@eth0.lease"));
  writeFileSync(join(service.directory, `${good}.new`), text.slice(0, 20));
  writeFileSync(join(service.directory, "net@ctr-gone@eth0.lease.given-up"), "");
  await service.start();
  await net.check(container);
  const expected = [...names, "net@ctr-folder@eth0.lease"].map((name) => `${name}.damaged`);
  expect(readdirSync(service.directory).sort()).toEqual([...expected, good!, "lock"].sort());
  for (const name of names) expect(service.log()).toContain(`${name} is not a lease`);
  expect(service.log()).toContain("1 lease goes on");
  expect(kindsOf(server.received())).toEqual(["DISCOVER", "REQUEST"]);
  await net.del(container);
});
