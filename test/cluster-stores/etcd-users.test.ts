/** etcd with users: who this is, by a password and a token, and what it may. */
import { afterAll, expect, test } from "bun:test";
import type { EtcdConf } from "../../src/cluster/configuration.ts";
import { nodeKey, type NodeRecord } from "../../src/cluster/records.ts";
import { Certificates } from "../support/certificates.ts";
import { Etcd } from "../support/etcd.ts";
import { openMachine } from "../support/machine.ts";
import { complaint, RemoteStore } from "../support/remote-store.ts";
import { untilTrue } from "../support/until-true.ts";

const machine = await openMachine(), certificates = new Certificates();
const authority = certificates.authority("the cluster's");
const server = certificates.signedBy(authority, { names: ["IP:127.0.0.1"] });
const client = certificates.signedBy(authority, { names: ["DNS:n1"] });
const etcd = await Etcd.start(machine, {
  members: [{ name: "m1", address: "127.0.0.1" }],
  tls: { ...server, caFile: authority.certFile },
});
const stores: RemoteStore[] = [];
afterAll(async () => {
  for (const store of stores) await store[Symbol.asyncDispose]();
  for (const each of [etcd, machine]) await each[Symbol.asyncDispose]();
  certificates[Symbol.dispose]();
});

await etcd.done("user", "add", "root:of root");
await etcd.done("user", "add", "n1:secret of n1");
await etcd.done("role", "add", "nodes");
await etcd.done("role", "grant-permission", "nodes", "--prefix=true", "readwrite", "/patchbay/");
await etcd.done("user", "grant-role", "n1", "nodes");
await etcd.done("user", "grant-role", "root", "root");
await etcd.done("auth", "enable");
const asRoot = ["--user", "root:of root"];

const password = certificates.file("password", "secret of n1\n"), absent = `${certificates.directory}/absent`;
const wrongPassword = certificates.file("wrong", "secret of n2");
const looseFile = certificates.file("loose", "secret of n1", 0o644);
const named = certificates.signedBy(authority, { names: ["DNS:n1"], commonName: "n1" });
const [endpoint] = etcd.endpoints as [string];
const right: EtcdConf = {
  endpoints: [endpoint],
  prefix: "/patchbay/",
  caFile: authority.certFile,
  ...client,
  user: "n1",
  passwordFile: password,
};

function open(conf: Partial<EtcdConf> = {}): RemoteStore {
  const store = new RemoteStore(machine, { conf: { kind: "etcd", ...right, ...conf } });
  stores.push(store);
  return store;
}

const key = nodeKey("n1"), node: NodeRecord = { generation: 1, machine: "m", boot: "b", state: "joined" };

test("a user with the right password", async () => {
  const store = open(), made = await store.put(key, undefined, node);
  expect(made).toMatchObject({ won: { value: node } });
  expect((await store.list("node")).records.length).toBe(1);
  let told = 0;
  const stop = new AbortController(), watched = store.watch(key, () => told++, stop.signal);
  await untilTrue(() => told, (count) => count > 0);
  stop.abort();
  expect(await watched).toBe("it was no longer wanted");
});

test.each<[string, Partial<EtcdConf>, string]>([
  [
    "a wrong password",
    { passwordFile: wrongPassword },
    `${endpoint}: etcd knows no user "n1" with the password in ${wrongPassword}: correct the file, or etcdctl user passwd n1`,
  ],
  [
    "a user that is not there",
    { user: "n7" },
    `${endpoint}: etcd knows no user "n7" with the password in ${password}: correct the file, or etcdctl user passwd n7`,
  ],
  [
    "a password that others may read",
    { passwordFile: looseFile },
    `passwordFile: others may read or write ${looseFile} (mode 644): chmod 600 ${looseFile}`,
  ],
  ["no password", { passwordFile: absent }, `passwordFile: ${absent} is not there`],
  [
    "no user",
    { user: undefined, passwordFile: undefined },
    `${endpoint}: etcd asks who this is: configure user and passwordFile`,
  ],
  [
    "a prefix that is not the role's",
    { prefix: "/other/" },
    `${endpoint}: user "n1" may not read and write below /other/: etcdctl role grant-permission ROLE --prefix=true ` +
    "readwrite /other/, and etcdctl user grant-role n1 ROLE",
  ],
  [
    "a certificate with a CommonName",
    named,
    `${endpoint}: etcd with users takes no certificate with a CommonName through its gateway: make a certificate for ` +
    `${named.certFile} without one (subject "/", the node's name as subjectAltName); the user's name and password say who it is`,
  ],
])("%s: refused", async (_, conf, sentence) => {
  const store = open(conf);
  expect(await complaint(store.read(key))).toBe(sentence);
  expect(await store.put(key, undefined, node)).toEqual({ refused: `node/n1 is not written: ${sentence}` });
  expect(await store.put(key, undefined, undefined)).toEqual({ refused: `node/n1 is not deleted: ${sentence}` });
  expect(await store.watch(key, () => {}, new AbortController().signal)).toBe(sentence);
});

test("tokens that count no more are asked for anew, also by watches and by many at once", async () => {
  const store = open();
  expect((await store.read(key))?.value).toEqual(node);
  const forgetTokens = async () => {
    await etcd.done(...asRoot, "auth", "disable");
    await etcd.done("auth", "enable");
  };
  await forgetTokens();
  const reads = await Promise.all(Array.from({ length: 32 }, () => store.read(key)));
  expect(reads.map((found) => found?.value)).toEqual(reads.map(() => node));
  await forgetTokens();
  let told = 0;
  const stop = new AbortController(), watched = store.watch(key, () => told++, stop.signal);
  await untilTrue(() => told, (count) => count > 0);
  stop.abort();
  await watched;
  // A role that changes meanwhile, and a member that is started again.
  await etcd.done(...asRoot, "role", "add", "further");
  expect((await store.read(key))?.value).toEqual(node);
  await etcd.kill("m1");
  etcd.begin("m1");
  await untilTrue(() => complaint(store.read(key)), (said) => said.startsWith("none: "));
});

test("a user is configured before etcd asks for one", async () => {
  await etcd.done(...asRoot, "auth", "disable");
  const store = open();
  expect((await store.read(key))?.value).toEqual(node);
  await etcd.done("auth", "enable");
  expect((await store.read(key))?.value).toEqual(node);
});

test("a user's rights that are taken away", async () => {
  const store = open(), was = await store.read(key);
  await etcd.done(...asRoot, "user", "revoke-role", "n1", "nodes");
  expect(await store.put(key, was, node)).toMatchObject({ refused: expect.stringContaining('user "n1" may not') });
  await etcd.done(...asRoot, "user", "grant-role", "n1", "nodes");
  expect(await store.put(key, was, node)).toMatchObject({ won: { value: node } });
});
