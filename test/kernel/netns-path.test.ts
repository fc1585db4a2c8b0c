/** CNI_NETNS that is no network namespace: the container is gone, and DEL cleans up without it. */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";

const conf = { type: "ptp", ipMasq: true, ipam: { type: "host-local", subnet: "10.20.0.0/24" } };

const things = [
  { what: "a namespace of another kind", path: "/proc/self/ns/uts", reason: "is not a network namespace" },
  { what: "a bind mount of such a one", path: "/run/netns/uts", reason: "is not a network namespace" },
  { what: "a file of the kernel's", path: "/proc/version", reason: "is not a network namespace" },
  { what: "a plain file", path: "/run/plain", reason: "unknown FS magic" },
  { what: "a directory", path: "/run/netns", reason: "unknown FS magic" },
  { what: "a FIFO without a writer", path: "/run/fifo", reason: "unknown FS magic" },
];

test.each(things)("$what: ADD refuses it, DEL needs no namespace", async ({ path, reason }) => {
  await using machine = await openMachine();
  await machine.sh(`
    touch /run/netns/uts /run/plain; mount --bind /proc/self/ns/uts /run/netns/uts; mkfifo /run/fifo`);
  const container = await machine.container("c1");
  const net = network(machine, conf);
  await net.add(container);
  await net.del(container);
  const moment = await quietMoment(machine);

  const env = { CNI_NETNS: path };
  const refused = await net.call("ADD", container, { env });
  expect(refused.json).toMatchObject({ code: 4, msg: expect.stringContaining(reason) });
  expect(refused.code).toBe(1);
  expect(await leftSince(moment, machine)).toEqual([]);

  const { json } = await net.call("CHECK", container, { env, conf: { prevResult: await net.add(container) } });
  expect(json.msg).toContain(reason);
  // The container goes first, and with it the link.
  await machine.removeContainer(container);
  await net.del(container, { env });
  expect(await leftSince(moment, machine, /^[-+] c1 /)).toEqual([]);
});
