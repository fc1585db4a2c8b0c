/** Certificates and the environment: what is wrong with them is said, and nothing is sent anywhere else for it. */
import { chmodSync, copyFileSync, rmSync } from "node:fs";
import { afterAll, expect, test } from "bun:test";
import type { EtcdConf } from "../../src/cluster/configuration.ts";
import { nodeKey, type NodeRecord } from "../../src/cluster/records.ts";
import { type CertificateFiles, Certificates } from "../support/certificates.ts";
import { Etcd } from "../support/etcd.ts";
import { openMachine } from "../support/machine.ts";
import { complaint, RemoteStore } from "../support/remote-store.ts";
import { untilTrue } from "../support/until-true.ts";

const machine = await openMachine(), certificates = new Certificates();
const authority = certificates.authority("the cluster's"), other = certificates.authority("another's");
const names = ["IP:127.0.0.1", "DNS:etcd.example"];
const server = certificates.signedBy(authority, { names });
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

const [endpoint] = etcd.endpoints as [string];
const right: EtcdConf = { endpoints: [endpoint], prefix: "/patchbay/", caFile: authority.certFile, ...client };
function open(conf: Partial<EtcdConf>, env: Record<string, string> = {}): RemoteStore {
  const store = new RemoteStore(machine, { conf: { kind: "etcd", ...right, ...conf } }, { env });
  stores.push(store);
  return store;
}

const key = nodeKey("n1"), node: NodeRecord = { generation: 1, machine: "m", boot: "b", state: "joined" };
const without = (...keys: (keyof EtcdConf)[]) => Object.fromEntries(keys.map((each) => [each, undefined]));

/** A copy that a test may change. */
function copied(file: string, name: string): string {
  const copy = certificates.file(name, "");
  copyFileSync(file, copy);
  chmodSync(copy, 0o600);
  return copy;
}

test("with the right certificates it is read and written", async () => {
  const store = open({});
  expect(await store.put(key, undefined, node)).toMatchObject({ won: { value: node } });
  expect((await store.read(key))?.value).toEqual(node);
});

test("by another name, when the configuration says which", async () => {
  const byName = { endpoints: ["https://localhost:2379"] };
  expect(await complaint(open(byName).read(key))).toBe(
    "https://localhost:2379: its certificate is for another name: correct the address, or set serverName",
  );
  expect((await open({ ...byName, serverName: "etcd.example" }).read(key))?.value).toEqual(node);
  expect(await complaint(open({ serverName: "other.example" }).read(key))).toBe(
    `${endpoint}: its certificate is not for "other.example": correct the address, or set serverName`,
  );
});

const garbage = certificates.file("garbage", "-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n");
const empty = certificates.file("empty", "\n");
const absent = `${certificates.directory}/absent`;
const readable = copied(client.keyFile, "readable.key");
chmodSync(readable, 0o644);
const groups = copied(client.keyFile, "groups.key");
chmodSync(groups, 0o640);
const foreign = certificates.signedBy(other, { names: ["DNS:n1"] });
const expired = certificates.signedBy(authority, { names: ["DNS:n1"], days: -1 });
const caFrom = `an authority in caFile ${authority.certFile}`;
const refused = (certFile: string) =>
  new RegExp(
    `^${endpoint}: (TLS failed: etcd refuses|the connection ended before the answer: etcd has ended, or refuses) ` +
      `the certificate in certFile ${certFile}`,
  );

test.each<[string, Partial<EtcdConf>, string | RegExp, isOwn?: boolean]>([
  [
    "another authority",
    { caFile: other.certFile },
    `${endpoint}: its certificate is not signed by an authority in caFile ${other.certFile} (UNABLE_TO_VERIFY_LEAF_SIGNATURE)`,
  ],
  [
    "no authority",
    without("caFile"),
    `${endpoint}: its certificate is not signed by an authority that every system knows, and no caFile is configured ` +
    "(UNABLE_TO_VERIFY_LEAF_SIGNATURE)",
  ],
  ["an authority that is not there", { caFile: absent }, `caFile: ${absent} is not there`, true],
  ["an authority that is empty", { caFile: empty }, `caFile: ${empty} is empty`, true],
  [
    "an authority that is a directory",
    { caFile: certificates.directory },
    /^caFile: .* cannot be read: .*not a regular/,
    true,
  ],
  [
    "an authority that is none",
    { caFile: garbage },
    `${endpoint}: no TLS with an authority in caFile ${garbage} and the certificate in certFile ${client.certFile}: ` +
    "they are no PEM, or do not belong together",
    true,
  ],
  [
    "the key of another certificate",
    { keyFile: foreign.keyFile },
    `${endpoint}: no TLS with ${caFrom} and the certificate in certFile ${client.certFile}: ` +
    "they are no PEM, or do not belong together",
    true,
  ],
  [
    "a key that others may read",
    { keyFile: readable },
    `keyFile: others may read or write ${readable} (mode 644): chmod 600 ${readable}`,
    true,
  ],
  [
    "no certificate",
    without("certFile", "keyFile"),
    `${endpoint}: TLS failed: etcd wants a client's certificate, and none is configured; or no TLS is spoken there`,
  ],
  ["a certificate of another authority", foreign, refused(foreign.certFile)],
  ["a certificate that has expired", expired, refused(expired.certFile)],
  [
    "no TLS",
    { endpoints: ["http://127.0.0.1:2379"], ...without("caFile", "certFile", "keyFile") },
    /etcd has ended, or speaks TLS there \(https\)$/,
  ],
])("%s: a sentence, and nothing is written", async (_, conf, sentence, isOwn = false) => {
  const store = open(conf), said = await complaint(store.read(key));
  expect(said).toMatch(sentence instanceof RegExp ? sentence : new RegExp(`^${RegExp.escape(sentence)}$`));
  const written = await complaint(store.put(nodeKey("never"), undefined, node));
  // What is wrong on this host is so at each endpoint.
  expect(written).toBe(isOwn ? `refused: node/never is not written: ${said}` : `unknown: ${said}`);
  expect(await store.watch(key, () => {}, new AbortController().signal)).not.toBe("");
  expect(await open({}).read(nodeKey("never"))).toBeUndefined();
});

test("a key that the owner's group may read, as Debian has them", async () => {
  expect((await open({ keyFile: groups }).read(key))?.value).toEqual(node);
});

test("a server's certificate that has expired", async () => {
  const own = certificates.signedBy(authority, { names, days: -1 }), at = "https://127.0.0.1:2399";
  const setup = {
    members: [{ name: "m3", address: "127.0.0.1", port: 2399 }],
    tls: { ...own, caFile: authority.certFile },
  };
  await using late = Etcd.prepare(machine, setup);
  late.begin("m3");
  const store = open({ endpoints: [at] });
  const expected = new RegExp(
    `^${at}: its certificate has expired: renew it, unless this host's clock is wrong: \\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z$`,
  );
  await untilTrue(() => complaint(store.read(key)), (said) => expected.test(said));
});

test("certificates that are renewed count at once, and those that are taken away do not any more", async () => {
  const files = {
    caFile: copied(authority.certFile, "own-ca.crt"),
    certFile: copied(expired.certFile, "own.crt"),
    keyFile: copied(expired.keyFile, "own.key"),
  };
  const store = open(files),
    replace = ({ certFile, keyFile }: CertificateFiles) => {
      copyFileSync(certFile, files.certFile);
      copyFileSync(keyFile, files.keyFile);
    };
  expect(await complaint(store.read(key))).toMatch(refused(files.certFile));
  replace(client);
  expect((await store.read(key))?.value).toEqual(node);
  const renewed = certificates.signedBy(authority, { names: ["DNS:n1"] });
  replace(renewed);
  expect((await store.read(key))?.value).toEqual(node);
  // A connection with the earlier certificate is still open, and is not taken.
  replace(foreign);
  expect(await complaint(store.read(key))).toMatch(refused(files.certFile));
  replace(renewed);
  copyFileSync(other.certFile, files.caFile);
  expect(await complaint(store.read(key))).toContain(`not signed by an authority in caFile ${files.caFile}`);
  copyFileSync(authority.certFile, files.caFile);
  rmSync(files.keyFile);
  expect(await complaint(store.read(key))).toBe(`keyFile: ${files.keyFile} is not there`);
  replace(renewed);
  chmodSync(files.keyFile, 0o600);
  expect((await store.read(key))?.value).toEqual(node);
});

test.each(["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])(
  "%s changes nothing",
  async (name) => {
    const env = { [name]: "http://127.0.0.1:9" };
    expect((await open({}, env).read(key))?.value).toEqual(node);
    const store = open({}, env), stop = new AbortController();
    let told = 0;
    const watched = store.watch(key, () => told++, stop.signal);
    await untilTrue(() => told, (count) => count > 0);
    stop.abort();
    expect(await watched).toBe("it was no longer wanted");
  },
);

test("certificates are verified, whatever the environment says", async () => {
  const env = { NODE_TLS_REJECT_UNAUTHORIZED: "0", NODE_EXTRA_CA_CERTS: authority.certFile };
  expect(await complaint(open({ caFile: other.certFile }, env).read(key))).toContain("is not signed by");
  expect(await complaint(open({ serverName: "other.example" }, env).read(key))).toContain("is not for");
});
