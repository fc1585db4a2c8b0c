/** Three members with TLS, in networks of their own: killed, cut off from each other, and cut off from who asks. */
import { afterAll, afterEach, beforeEach, expect, test } from "bun:test";
import type { EtcdOptions } from "../../src/cluster-stores/etcd.ts";
import { nodeKey, type NodeRecord, type Stored } from "../../src/cluster/records.ts";
import type { StoreOutcome } from "../../src/cluster/store.ts";
import { Certificates } from "../support/certificates.ts";
import { Etcd, type EtcdMember } from "../support/etcd.ts";
import { openMachine } from "../support/machine.ts";
import { complaint, RemoteStore } from "../support/remote-store.ts";
import { untilTrue } from "../support/until-true.ts";

const machine = await openMachine(), certificates = new Certificates(), names = ["m1", "m2", "m3"];
await machine.sh("ip link add br0 type bridge; ip addr add 10.9.0.254/24 dev br0; ip link set br0 up");
const members: EtcdMember[] = [];
for (const [index, name] of names.entries()) {
  const container = await machine.container(name), address = `10.9.0.${index + 1}`;
  await machine.sh(`
    ip link add ${name} type veth peer name eth0 netns ${name}
    ip link set ${name} master br0 up
    ip -n ${name} addr add ${address}/24 dev eth0
    ip -n ${name} link set eth0 up
    ip -n ${name} link set lo up`);
  members.push({ name, address, in: container });
}
const authority = certificates.authority("the cluster's");
const server = certificates.signedBy(authority, { names: members.map(({ address }) => `IP:${address}`) });
const client = certificates.signedBy(authority, { names: ["DNS:n1"] });
const etcd = await Etcd.start(machine, { members, tls: { ...server, caFile: authority.certFile } });

const stores: RemoteStore[] = [];
afterEach(async () => {
  for (const store of stores.splice(0)) await store[Symbol.asyncDispose]();
});
afterAll(async () => {
  for (const each of [etcd, machine]) await each[Symbol.asyncDispose]();
  certificates[Symbol.dispose]();
});
beforeEach(() => etcd.untilReady());

function open(options: EtcdOptions = {}): RemoteStore {
  const conf = { kind: "etcd" as const, endpoints: etcd.endpoints, prefix: "/patchbay/" };
  const store = new RemoteStore(machine, { conf: { ...conf, caFile: authority.certFile, ...client }, options });
  stores.push(store);
  return store;
}

const node = (machine: string): NodeRecord => ({ generation: 1, machine, boot: "b", state: "joined" });
const at = (index: number) => etcd.endpoints[index]!;

/** The numbers of the members, the leader's first. */
async function leaderFirst(): Promise<number[]> {
  const isLeader = async (index: number) =>
    JSON.parse(await etcd.done("endpoint", "status", "--write-out=json", `--endpoints=${at(index)}`))[0].Status;
  const status = await Promise.all([0, 1, 2].map(isLeader));
  const leads = status.map(({ leader, header }: { leader: number; header: { member_id: number } }) =>
    leader === header.member_id
  );
  return [0, 1, 2].sort((one, other) => Number(leads[other]) - Number(leads[one]));
}

async function restart(index: number): Promise<void> {
  etcd.begin(names[index]!);
  await etcd.untilReady();
}

const isolation = "add table inet cut; add chain inet cut in { type filter hook input priority 0; }; " +
  "add chain inet cut out { type filter hook output priority 0; };";

/** In silence: from the other members, or from everybody. */
async function cut(index: number, whom: "members" | "everybody"): Promise<void> {
  const others = members.filter((_, other) => other !== index).map(({ address }) => address).join(", ");
  const [from, to] = whom === "members"
    ? [`ip saddr { ${others} }`, `ip daddr { ${others} }`]
    : ['iif "eth0"', 'oif "eth0"'];
  const rules = `add rule inet cut in ${from} drop; add rule inet cut out ${to} drop`;
  await machine.sh(`nft '${isolation} ${rules}'`, { in: members[index]!.in! });
}

async function heal(index: number): Promise<void> {
  await machine.sh("nft delete table inet cut", { in: members[index]!.in! });
}

/** As an agent does: who does not know looks, and does it again if it was not done. */
async function putUntilDone(store: RemoteStore, key: string, value: NodeRecord): Promise<Stored<NodeRecord>> {
  const done = await untilTrue(async () => {
    const was = await store.read(key).catch(() => undefined);
    const outcome: StoreOutcome = await store.put(key, was, value);
    const found = await store.read(key).catch(() => undefined);
    return typeof outcome === "object" && "won" in outcome || found?.value !== undefined &&
        JSON.stringify(found.value) === JSON.stringify(value)
      ? found
      : undefined;
  }, (found) => found !== undefined);
  return done as Stored<NodeRecord>;
}

let count = 0;
const newKey = () => nodeKey(`n${++count}`);

test("each endpoint serves, whichever is the first", async () => {
  const key = newKey(), { won } = await open({ first: 0 }).put(key, undefined, node("m")) as { won: object };
  for (const first of [0, 1, 2]) expect(await open({ first }).read(key)).toEqual(won as Stored<NodeRecord>);
});

test("a follower is killed: the next endpoint answers at once, also to what writes", async () => {
  const [, follower] = await leaderFirst() as [number, number], key = newKey();
  await etcd.kill(names[follower]!);
  const store = open({ first: follower });
  // Nobody has got what was sent there, so it is sent once more.
  expect(await store.put(key, undefined, node("m"))).toMatchObject({ won: { value: node("m") } });
  expect((await store.read(key))?.value).toEqual(node("m"));
  let told = 0;
  const stop = new AbortController();
  const watched = open({ first: follower }).watch(key, () => told++, stop.signal);
  await untilTrue(() => told, (times) => times > 0);
  stop.abort();
  await watched;
  await restart(follower);
});

test("the leader is killed: another one leads, and what was not answered is read", async () => {
  const [leader] = await leaderFirst() as [number], key = newKey(), store = open({ first: leader });
  const was = await putUntilDone(store, key, node("before"));
  await etcd.kill(names[leader]!);
  const after = await putUntilDone(store, key, node("after"));
  expect(after.version).toBeGreaterThan(was.version);
  expect(after.birth).toBe(was.birth);
  expect(await store.put(key, was, node("late"))).toBe("lost");
  await restart(leader);
});

test("cut off from the others: nobody is told what was, watches end, and the next endpoint is taken", async () => {
  const [, lonely, third] = await leaderFirst() as [number, number, number], key = newKey();
  const store = open({ first: lonely }), elsewhere = open({ first: third });
  const was = await putUntilDone(store, key, node("before"));
  const ended: string[] = [];
  let told = 0;
  const watched = store.watch(key, () => told++, new AbortController().signal).then((reason) => ended.push(reason));
  await untilTrue(() => told, (times) => times > 0);
  await cut(lonely, "members");
  try {
    expect(await elsewhere.put(key, was, node("after"))).toMatchObject({ won: { value: node("after") } });
    expect((await store.read(key))?.value).toEqual(node("after"));
    await watched;
    expect(ended).toEqual([`${at(lonely)}: etcd has ended the watch: etcdserver: no leader`]);
    // It says itself, at once, that it cannot know.
    const alone = open({ first: lonely });
    expect((await alone.read(key))?.value).toEqual(node("after"));
    expect(await open({ first: lonely }).put(key, was, node("late"))).not.toMatchObject({ won: {} });
    const stop = new AbortController(), next = open({ first: lonely }).watch(key, () => told++, stop.signal);
    const before = told;
    await untilTrue(() => told, (times) => times > before);
    stop.abort();
    await next;
  } finally {
    await heal(lonely);
  }
});

test("cut off from who asks: after 2 s the next endpoint is taken, and a watch goes on there", async () => {
  const [leader, first] = await leaderFirst() as [number, number], key = newKey();
  const store = open({ first }), was = await putUntilDone(store, key, node("before"));
  const watching = open({ first, renewMs: 1500 }), stop = new AbortController();
  let told = 0;
  const watched = watching.watch(key, () => told++, stop.signal);
  await untilTrue(() => told, (times) => times > 0);
  await cut(first, "everybody");
  try {
    expect(await store.put(key, was, node("lost"))).toEqual({ unknown: `${at(first)}: no answer within 2 s` });
    expect(await store.read(key)).toEqual(was);
    expect((await open({ first }).read(key))?.value).toEqual(node("before"));
    // From here on, the watch is at members that have not been cut off.
    const before = told;
    await untilTrue(() => told, (times) => times > before);
    const after = await putUntilDone(open({ first: leader }), key, node("after"));
    const heard = told;
    await untilTrue(() => told, (times) => times > heard);
    expect(await store.read(key)).toEqual(after);
  } finally {
    await heal(first);
  }
  stop.abort();
  expect(await watched).toBe("it was no longer wanted");
});

test("all cut off, and all killed: the sentence names each", async () => {
  const store = open({ first: 1 }), key = newKey();
  await putUntilDone(store, key, node("m"));
  for (const index of [0, 1, 2]) await cut(index, "everybody");
  const silent = [1, 2, 0].map((index) => `${at(index)}: no answer within 2 s`).join("; ");
  expect(await complaint(open({ first: 1 }).read(key))).toBe(silent);
  for (const index of [0, 1, 2]) await heal(index);
  for (const name of names) await etcd.kill(name);
  const gone = [1, 2, 0].map((index) => `${at(index)}: nothing listens there`);
  const said = await complaint(open({ first: 1 }).put(key, undefined, node("m")));
  for (const each of gone) expect(said).toContain(each);
  for (const name of names) etcd.begin(name);
  await etcd.untilReady();
  expect((await open().read(key))?.value).toEqual(node("m"));
});
