/**
 * A container that runs on gives its link another name, another namespace or another number, takes a copy of it, or gives
 * the link's name to something that cannot be deleted. DEL removes the link all the same, or fails and says what holds it;
 * it never succeeds and forgets.
 *
 * Longer than 300 lines: every plugin that makes a link, with every way to hide it.
 */
import { expect, test } from "bun:test";
import { commandOf, inInner, innerNamespace } from "../support/inner-namespace.ts";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { attach, bridgeNetwork, containerIn } from "../support/netavark/attached.ts";
import { network } from "../support/network.ts";
import { untilTrue } from "../support/until-true.ts";

const ipam = { type: "host-local", subnet: "10.20.0.0/24" };

interface Subject {
  name: string;
  conf?: Record<string, unknown> & { type: string };
  needs?: Feature;
  /** Its link is known by more than its name without a ledger, too. */
  isKnownByResult: boolean;
  /** The link of the host that it is upon. */
  master?: string;
}

const subjects: Subject[] = [
  { name: "bridge", conf: { type: "bridge", isGateway: true, ipam }, isKnownByResult: true },
  { name: "ptp", conf: { type: "ptp", ipam }, isKnownByResult: true },
  {
    name: "macvlan",
    conf: { type: "macvlan", master: "m0", ipam },
    needs: "macvlan links",
    isKnownByResult: true,
    master: "m0",
  },
  {
    name: "ipvlan",
    conf: { type: "ipvlan", master: "m0", ipam },
    needs: "ipvlan links",
    isKnownByResult: false,
    master: "m0",
  },
  {
    name: "vlan",
    conf: { type: "vlan", master: "m0", vlanId: 7, ipam },
    needs: "VLAN links",
    isKnownByResult: true,
    master: "m0",
  },
  { name: "dummy", conf: { type: "dummy", ipam }, needs: "dummy links", isKnownByResult: true },
  { name: "tap", conf: { type: "tap", ipam }, isKnownByResult: true },
  { name: "podman's bridge", isKnownByResult: false },
  { name: "podman's macvlan", needs: "macvlan links", isKnownByResult: false, master: "m0" },
];

interface Attached extends AsyncDisposable {
  machine: Machine;
  container: Container;
  /** What the container's link was before it did anything. */
  link: { ifindex: number; address: string };
  /** The exit status of DEL, and what it says. */
  del(): Promise<{ code: number; said: string }>;
  /** Whether the address of the container is taken. */
  isLeased(): Promise<boolean>;
  /** Links of the container's and the host's that are the attachment's. */
  left(): Promise<string[]>;
}

async function attached({ name, conf }: Subject): Promise<Attached> {
  const machine = await openMachine();
  await machine.sh("ip link add m0 type veth peer name m1; ip link set m1 up; ip link set m0 up");
  const container = await machine.container("c1");
  let del: Attached["del"];
  if (conf === undefined) {
    const document = containerIn([{
      network: bridgeNetwork(8, name === "podman's macvlan" ? { driver: "macvlan", network_interface: "m0" } : {}),
    }]);
    expect(await attach(machine, "setup", container, document)).toMatchObject({ code: 0 });
    del = async () => {
      const { code, stdout, stderr } = await attach(machine, "teardown", container, document);
      // Like netavark, it says so when the name is gone, once it has removed everything.
      if (stdout.includes("No such device")) return await del();
      return { code, said: stdout + stderr };
    };
  } else {
    const net = network(machine, conf);
    await net.add(container);
    del = async () => {
      const { code, stdout, stderr } = await net.call("DEL", container);
      return { code, said: stdout + stderr };
    };
  }
  const link = JSON.parse(await machine.sh("ip -j link show eth0", { in: container }))[0];
  return {
    machine,
    container,
    link,
    del,
    isLeased: async () => (await machine.sh("ls /var/lib/cni/networks/net 2>/dev/null || true")).includes("10.20."),
    async left() {
      const inside = await machine.sh(`ip -br link show | grep -E '^[a-z0-9]+@if' || true`, { in: container });
      const outside = await machine.sh("ip -br link show type veth | grep -v ^m || true");
      const same = await machine.sh(`ip -o link | grep '^${link.ifindex}:' || true`, { in: container });
      return [inside, outside, same].filter(Boolean);
    },
    [Symbol.asyncDispose]: () => machine[Symbol.asyncDispose](),
  };
}

/** Each gives the name to something else. The container's link is called `away` by then. */
const occupations: [how: string, script: string, needs?: Feature][] = [
  ["nothing has the name", "true"],
  ["lo has the name", "ip link set lo down; ip link set lo name eth0"],
  ["lo has it as an alternative name", "ip link property add dev lo altname eth0"],
  ["a bridge has it", "ip link add eth0 type bridge"],
  [
    "a bridge has it as an alternative name",
    "ip link add br7 type bridge; ip link property add dev br7 altname eth0",
  ],
  ["a dummy has it", "ip link add eth0 type dummy", "dummy links"],
  ["a pair of the container's own has it", "ip link add eth0 type veth peer name own"],
];

const withoutLedger = ["nothing has the name", "lo has it as an alternative name", "a bridge has it"];

const disguise = `ip link set away down; ip link set away name other address 02:00:00:00:00:77 2>/dev/null ||
  ip link set away name other; ip link set other up`;

/** The link has to be down. */
const rename = "ip link set eth0 down; ip link set eth0 name away";

for (const subject of subjects) {
  for (const [how, script, needs] of occupations) {
    const isLacking = lacks(subject.needs) || lacks(needs);
    test.skipIf(isLacking)(`${subject.name}, renamed, and ${how}: DEL removes the link`, async () => {
      await using attachment = await attached(subject);
      const { machine, container, del } = attachment;
      await machine.sh(`${rename}; ${script}`, { in: container });
      for (let count = 0; count < 2; count++) expect(await del()).toMatchObject({ code: 0 });
      expect(await attachment.left()).toEqual([]);
      expect(await attachment.isLeased()).toBe(false);
    });

    if (!withoutLedger.includes(how)) continue;
    test.skipIf(isLacking)(`${subject.name}, renamed, ledger lost, and ${how}: DEL succeeds`, async () => {
      await using attachment = await attached(subject);
      const { machine, container, del } = attachment;
      await machine.sh("rm -r /run/patchbay");
      await machine.sh(`${rename}; ${script}`, { in: container });
      for (let count = 0; count < 2; count++) expect(await del()).toMatchObject({ code: 0 });
      if (subject.isKnownByResult) expect(await attachment.left()).toEqual([]);
      expect(await attachment.isLeased()).toBe(false);
    });
  }
}

/** Keeps the namespace `$inner` open by a socket alone, without a process in it or in the container's namespace. */
const socketAlone = `
import ctypes, os, socket, sys, time
NEWNET, libc = 0x40000000, ctypes.CDLL(None, use_errno=True)
netns = os.open(f"/proc/{sys.argv[1]}/ns/net", os.O_RDONLY)
assert libc.setns(netns, NEWNET) == 0
held = socket.socket()
assert libc.unshare(NEWNET) == 0
os.close(netns)
os.kill(int(sys.argv[1]), 9)
open("/proc/self/comm", "w").write("sleep")
time.sleep(1000)`;
const mountAlone = "mount --bind /proc/$0/ns/net /etc/hostname; kill -9 $0; exec sleep 1000";

type Inner = Awaited<ReturnType<typeof innerNamespace>>;
/** What the shell does that began it, and who holds it in what DEL says. */
const holders: [how: string, keep: string, holder: (inner: Inner) => string][] = [
  ["by a process", "wait", ({ pid }) => `process ${pid}`],
  [
    "by an open file alone",
    "exec 9</proc/$inner/ns/net; kill -9 $inner; exec sleep 1000",
    ({ shell }) => `process ${shell.pid}`,
  ],
  ["by a mount alone", `exec unshare -mn sh -c '${mountAlone}' $inner`, () => "the container's"],
  ["by a socket alone", `exec python3 -c '${socketAlone}' $inner`, () => "the container's"],
];

for (const subject of subjects) {
  test.skipIf(lacks(subject.needs))(
    `${subject.name}, moved to a namespace within: DEL removes the link`,
    async () => {
      await using attachment = await attached(subject);
      const { machine, container, del } = attachment, inner = await innerNamespace(machine, container);
      await machine.sh(`${rename}; ip link set away netns ${inner.pid}; ip link property add dev lo altname eth0`, {
        in: container,
      });
      const seen = await machine.run([...inInner(inner.pid), "ip link set away up; ip -br link show away"]);
      expect(seen).toMatchObject({ code: 0, stderr: "" });
      expect(await del()).toMatchObject({ code: 0 });
      expect((await machine.run([...inInner(inner.pid), "ip link show away"])).code).not.toBe(0);
      expect(await attachment.left()).toEqual([]);
      expect(await attachment.isLeased()).toBe(false);
      await inner.end();
    },
  );

  const { conf, name } = subject;
  /** A pair has an end on the host, by which DEL removes it. Others are nothing to the host. */
  const isUpon = subject.master !== undefined;
  for (const [how, keep, holder] of isUpon ? holders : []) {
    test.skipIf(lacks(subject.needs))(
      `${subject.name}, moved, with another index and address, held ${how}: DEL says what holds it`,
      async () => {
        await using attachment = await attached(subject);
        const { machine, container, del, link } = attachment;
        const inner = await innerNamespace(machine, container, keep);
        // With its index taken there, it gets another.
        const taken = `ip link add index ${link.ifindex} taken type veth peer name b`;
        expect(await machine.run([...inInner(inner.pid), taken])).toMatchObject({ code: 0 });
        await machine.sh(`${rename}; ip link set away netns ${inner.pid}`, { in: container });
        expect(await machine.run([...inInner(inner.pid), disguise])).toMatchObject({ code: 0 });
        await inner.goOn();
        if (keep !== "wait") {
          await untilTrue(() => Promise.resolve(commandOf(inner.shell.pid)), (name) => name === "sleep");
        }

        const { code, said } = await del();
        // A master has one vlan of an ID, so there is no doubt.
        if (conf?.type === "vlan") expect(code).toBe(0);
        else expect(code).not.toBe(0);
        if (code !== 0) expect(said).toContain(`in a network namespace of ${holder(inner)}`);
        if (code !== 0 && conf !== undefined) expect(await attachment.isLeased()).toBe(true);
        if (code === 0) await machine.sh("ip link add link m0 name again type vlan id 7; ip link del again");
        await inner.end();
        // The kernel ends a namespace a moment after its last process.
        await untilTrue(del, (answer) => answer.code === 0);
        expect(await attachment.left()).toEqual([]);
        expect(await attachment.isLeased()).toBe(false);
      },
    );
  }

  const kind = name.includes("macvlan") ? "macvlan" : "ipvlan";
  const isCopied = isUpon && conf?.type !== "vlan";
  const testOfCopies = isCopied ? test.skipIf(lacks(subject.needs)) : () => {};
  testOfCopies(
    `${name}, exchanged for a copy that has its name and address: DEL removes both`,
    async () => {
      for (const fate of ["ip link del away", "true"]) {
        await using attachment = await attached(subject);
        const { machine, container, del, link: { address } } = attachment;
        await machine.sh(
          `ip link add link eth0 name copy type ${kind}
          ${rename}; ip link set away netns ${container.name} 2>/dev/null || true
          ${fate}
          ip link set copy name eth0; ${kind === "macvlan" ? `ip link set eth0 address ${address}` : ""}`,
          { in: container },
        );
        expect(await del()).toMatchObject({ code: 0 });
        expect(await attachment.left()).toEqual([]);
        expect(await attachment.isLeased()).toBe(false);
      }
    },
  );

  testOfCopies(
    `${name}, a copy that has another name and address: DEL says that it is there`,
    async () => {
      await using attachment = await attached(subject);
      const { machine, container, del } = attachment;
      await machine.sh(`ip link add link eth0 name copy type ${kind}`, { in: container });
      for (let count = 0; count < 2; count++) {
        const { code, said } = await del();
        expect(code).not.toBe(0);
        expect(said).toContain("copy");
        expect(said).toContain("in the container");
      }
      if (conf !== undefined) expect(await attachment.isLeased()).toBe(true);
      await machine.sh("ip link del copy", { in: container });
      expect(await del()).toMatchObject({ code: 0 });
      expect(await attachment.left()).toEqual([]);
      expect(await attachment.isLeased()).toBe(false);
    },
  );

  testOfCopies(
    `${name}, a copy that is hidden in a namespace within: DEL removes the link and says what holds the copy`,
    async () => {
      await using attachment = await attached(subject);
      const { machine, container, del } = attachment,
        inner = await innerNamespace(machine, container, holders[3]![1]);
      await machine.sh(`ip link add link eth0 name away type ${kind}; ip link set away netns ${inner.pid}`, {
        in: container,
      });
      expect(await machine.run([...inInner(inner.pid), disguise])).toMatchObject({ code: 0 });
      await inner.goOn();
      await untilTrue(() => Promise.resolve(commandOf(inner.shell.pid)), (command) => command === "sleep");
      for (let count = 0; count < 2; count++) {
        const { code, said } = await del();
        expect(code).not.toBe(0);
        expect(said).toContain("in a network namespace of the container's");
        expect(await attachment.left()).toEqual([]);
      }
      if (conf !== undefined) expect(await attachment.isLeased()).toBe(true);
      await inner.end();
      await untilTrue(del, (answer) => answer.code === 0);
      expect(await attachment.isLeased()).toBe(false);
    },
  );

  test.skipIf(lacks(subject.needs))(`${name}, deleted by the container: DEL succeeds`, async () => {
    await using attachment = await attached(subject);
    const { machine, container, del } = attachment;
    // Another container's link upon the same master, and one that another program has made.
    if (isUpon && conf?.type !== "vlan") {
      await machine.sh(`ip netns add others; ip link add link m0 name their netns others type ${kind}`);
    }
    const { master = "", ...rest } = conf ?? { type: "" };
    const other = await machine.container("c2"), subnet = "10.21.0.0/24";
    const net = network(machine, { ...rest, master, name: "theirs", ipam: { ...ipam, subnet } });
    if (isCopied && conf !== undefined) await net.add(other);
    await machine.sh("ip link del eth0", { in: container });
    expect(await del()).toMatchObject({ code: 0 });
    expect(await attachment.isLeased()).toBe(false);
    if (isCopied && conf !== undefined) await net.check(other);
    if (isCopied) await machine.sh("ip -n others link show their");
  });
}

test.skipIf(lacks("macvlan links"))(
  "moved on from a namespace within that stays to one that a socket holds: DEL says that it is there",
  async () => {
    await using attachment = await attached(subjects.find(({ name }) => name === "macvlan")!);
    const { machine, container, del, link } = attachment;
    const [, keep] = holders.find(([how]) => how === "by a socket alone")!;
    const first = await innerNamespace(machine, container), second = await innerNamespace(machine, container, keep);
    const taken = `ip link add index ${link.ifindex} taken type veth peer name b`;
    expect(await machine.run([...inInner(second.pid), taken])).toMatchObject({ code: 0 });
    await machine.sh(`${rename}; ip link set away netns ${first.pid}`, { in: container });
    // Each has a user namespace of its own, so it takes the host's root.
    await machine.sh(`nsenter -t ${first.pid} -n ip link set away netns ${second.pid}`);
    expect(await machine.run([...inInner(second.pid), disguise])).toMatchObject({ code: 0 });
    await second.goOn();
    await untilTrue(() => Promise.resolve(commandOf(second.shell.pid)), (command) => command === "sleep");
    const { code, said } = await del();
    expect(code).not.toBe(0);
    expect(said).toContain("in a network namespace of the container's");
    expect(await attachment.isLeased()).toBe(true);
    for (const inner of [first, second]) await inner.end();
    await untilTrue(del, (answer) => answer.code === 0);
    expect(await attachment.isLeased()).toBe(false);
  },
);

const strangers: [
  kind: string,
  conf: Record<string, unknown> & { type: string },
  needs: Feature | undefined,
  theirs: string,
][] = [
  ["tap", { type: "tap", ipam }, undefined, "ip tuntap add own mode tap; ip link set own address $mac"],
  ["dummy", { type: "dummy", ipam }, "dummy links", "ip link add own address $mac type dummy"],
  [
    "vlan upon a link of the container's",
    { type: "vlan", master: "l0", vlanId: 7, linkInContainer: true, ipam },
    "VLAN links",
    "ip link add link l0 name own type vlan id 7",
  ],
];

for (const [kind, conf, needs, theirs] of strangers) {
  test.skipIf(lacks(needs))(
    `${kind}, deleted by the container: a like one of a container that it is linked with is left alone`,
    async () => {
      await using machine = await openMachine();
      const [container, other] = [await machine.container("c1"), await machine.container("c2")];
      await machine.sh(
        "ip link add l0 netns c1 type veth peer l0 netns c2; ip -n c1 link set l0 up; ip -n c2 link set l0 up",
      );
      const net = network(machine, conf);
      const { interfaces } = await net.add(container);
      await machine.sh(`mac=${interfaces.at(-1).mac}; ${theirs}`, { in: other });
      await machine.sh("ip link del eth0", { in: container });
      expect(await net.call("DEL", container)).toMatchObject({ code: 0 });
      await machine.sh("ip link show own", { in: other });
    },
  );
}

test.skipIf(lacks("macvlan links"))("two attachments upon one master are removed one after the other", async () => {
  await using machine = await openMachine();
  await machine.sh("ip link add m0 type veth peer name m1; ip link set m1 up; ip link set m0 up");
  const container = await machine.container("c1");
  const net = network(machine, { type: "macvlan", master: "m0", ipam });
  for (const ifName of ["eth0", "eth1"]) await net.add(container, { ifName });
  await net.del(container, { ifName: "eth0" });
  await net.check(container, { ifName: "eth1" });
  await net.del(container, { ifName: "eth1" });
  expect(await machine.sh("ip -br link show type macvlan", { in: container })).toBe("");
});

test.skipIf(lacks("macvlan links"))(
  "a ledger without the index goes by the name, and then by the address",
  async () => {
    await using machine = await openMachine();
    await machine.sh("ip link add m0 type veth peer name m1; ip link set m1 up; ip link set m0 up");
    const container = await machine.container("c1");
    for (const conf of [{ type: "macvlan", master: "m0", ipam }, { type: "tap", ipam }]) {
      for (const script of ["true", rename]) {
        const net = network(machine, conf);
        await net.add(container);
        await machine.sh(`sed -i 's/"index":[0-9]*,\\{0,1\\}//' /run/patchbay/net/*`);
        expect(await machine.sh("cat /run/patchbay/net/*")).not.toContain('"index"');
        await machine.sh(script, { in: container });
        await net.del(container);
        expect(await machine.sh("ip -br link show | grep -v ^lo || true", { in: container })).toBe("");
      }
    }
  },
);
