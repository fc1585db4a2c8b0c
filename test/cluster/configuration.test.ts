/** What a host's cluster.json may say of its store. */
import { expect, test } from "bun:test";
import { clusterConfFrom } from "../../src/cluster/configuration.ts";

const etcd = (conf: Record<string, unknown>) => ({
  store: { etcd: { endpoints: ["https://10.0.0.1:2379"], ...conf } },
});
const files = { caFile: "/ca", certFile: "/cert", keyFile: "/key" };

test("etcd's endpoints, files and user", () => {
  const conf = { endpoints: ["https://[fd00::1]:2379", "https://etcd.example"], ...files, serverName: "etcd" };
  expect(clusterConfFrom(etcd({ ...conf, user: "n1", passwordFile: "/password", prefix: "/a/b/" })).store).toEqual({
    kind: "etcd",
    ...conf,
    user: "n1",
    passwordFile: "/password",
    prefix: "/a/b/",
  });
  expect(clusterConfFrom(etcd({})).store).toMatchObject({ prefix: "/patchbay/" });
});

test.each<[string, Record<string, unknown>, string]>([
  [
    "no TLS to another host",
    { endpoints: ["http://10.0.0.1:2379"] },
    'endpoints[0]": "http://10.0.0.1:2379" is without TLS: https, or a loopback address',
  ],
  [
    "a name that begins as this host's",
    { endpoints: ["http://localhost.example:2379"] },
    'endpoints[0]": "http://localhost.example:2379" is without TLS: https, or a loopback address',
  ],
  [
    "certificates, and one endpoint without TLS",
    { endpoints: ["https://127.0.0.1:1", "http://127.0.0.1:2379"], ...files },
    'endpoints[1]": "http://127.0.0.1:2379" is without TLS, and caFile is for TLS: https',
  ],
  [
    "a name for certificates, and no TLS",
    { endpoints: ["http://127.0.0.1:2379"], serverName: "etcd" },
    'endpoints[0]": "http://127.0.0.1:2379" is without TLS, and serverName is for TLS: https',
  ],
  ["a path", { endpoints: ["https://10.0.0.1:2379/v3"] }, "is none of the form https://HOST:PORT"],
  [
    "a password in the endpoint",
    { endpoints: ["https://n1:secret@10.0.0.1"] },
    "is none of the form https://HOST:PORT",
  ],
  ["a certificate without key", { certFile: "/cert" }, '"store.etcd.keyFile" is missing'],
  ["a user without password", { user: "n1" }, '"store.etcd.passwordFile" is missing'],
  ["another key", { endpoint: "https://10.0.0.1" }, '"store.etcd.endpoint": is not known'],
  ["a relative path", { caFile: "ca.crt" }, '"store.etcd.caFile": "ca.crt" is no absolute path'],
])("%s: refused", (_, conf, why) => {
  expect(() => clusterConfFrom(etcd(conf))).toThrow(why);
});
