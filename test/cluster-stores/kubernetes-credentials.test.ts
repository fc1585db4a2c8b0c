/** Who asks the API server: certificates, tokens, programs, and what is said where the server does not agree. */
import { expect, test } from "bun:test";
import { blockKey, type BlockRecord, nodeKey } from "../../src/cluster/records.ts";
import { FakeStage, isMethod, key, made, node, saidBy } from "./kubernetes-stage.ts";

const stage = new FakeStage();
const block: BlockRecord = { poolBirth: "u", index: 1, owner: { node: "n1", generation: 1, claim: "c" } };

test("another authority's server, and one with another name, get no request", async () => {
  const { certificates, url } = stage.cluster, other = certificates.authority("another");
  const file = (name: string, more: object) => stage.kubeconfig(name, { token: "x" }, more);
  expect(await saidBy(stage.open(file("a", { "certificate-authority": other.certFile })).read(key))).toStartWith(
    `${url}: its certificate is not signed by ${other.certFile} (`,
  );
  const named = file("b", { "tls-server-name": "kubernetes.default.svc" });
  expect(await saidBy(stage.open(named).read(key))).toBe(
    `${url}: its certificate is not for "kubernetes.default.svc": correct the address, or set tls-server-name`,
  );
  const right = file("c", { "tls-server-name": "localhost" });
  expect(await saidBy(stage.open(right).read(key))).toContain("does not know the token in");
  expect(stage.requests.length).toBe(2);
});

test("a token that is replaced is read again when the server refuses the old one", async () => {
  const token = stage.cluster.certificates.file("token", stage.cluster.admin);
  const config = stage.kubeconfig("by-file", { tokenFile: token });
  let refused = "";
  stage.cluster.server.instead = (request) =>
    request.token === refused ? { status: 401, body: { message: "Unauthorized" } } : undefined;
  const store = stage.open(config);
  expect(await store.read(key)).toBeUndefined();
  refused = stage.cluster.admin;
  const said = (await saidBy(store.read(key))).replace(/written \d+ s ago/, "written 0 s ago");
  expect(said).toBe(
    `${stage.cluster.url} does not know the token in ${token} (written 0 s ago): it has expired, or is another cluster's; ` +
      "renew it there",
  );
  stage.cluster.certificates.file("token", stage.cluster.stranger);
  expect(await saidBy(store.read(key))).toContain('User "stranger" cannot get resource "addressnodes"');
});

test("a program's credential is kept until it ends, and asked for again when it is refused", async () => {
  const { certificates } = stage.cluster,
    count = certificates.file("count", ""),
    ends = (ms: number) => new Date(Date.now() + ms);
  const program = (status: object) =>
    certificates.file(
      "login",
      `#!/bin/sh\nprintf '%s\\n' "$KUBERNETES_EXEC_INFO" >>${count}\nprintf '%s' '${
        JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status })
      }'\n`,
      0o700,
    );
  const exec = { apiVersion: "client.authentication.k8s.io/v1", command: program({ token: stage.cluster.admin }) };
  const config = stage.kubeconfig("by-program", { exec: { ...exec, provideClusterInfo: true } });
  const asked = async () =>
    (await Bun.file(count).text()).split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
  const store = stage.open(config);
  for (let times = 0; times < 3; times++) expect(await store.read(key)).toBeUndefined();
  expect(await asked()).toEqual([{
    apiVersion: "client.authentication.k8s.io/v1",
    kind: "ExecCredential",
    spec: {
      interactive: false,
      cluster: { server: stage.cluster.url, "certificate-authority-data": btoa(stage.cluster.ca) },
    },
  }]);
  program({ token: stage.cluster.admin, expirationTimestamp: ends(-1000).toISOString() });
  const ending = stage.open(config);
  for (let times = 0; times < 2; times++) expect(await ending.read(key)).toBeUndefined();
  expect((await asked()).length).toBe(3);
  program({ token: "unknown" });
  expect(await saidBy(stage.open(config).read(key))).toContain(`does not know the credential of ${exec.command}`);
  expect((await asked()).length).toBe(5);
  program({});
  expect(await saidBy(stage.open(config).read(key))).toBe(
    `${exec.command}, which the kubeconfig names for a credential: it answers neither a token nor a certificate with its key`,
  );
  certificates.file("login", "#!/bin/sh\necho no >&2\nexit 1\n", 0o700);
  expect(await stage.open(config).put(key, undefined, node)).toEqual({
    refused: `${exec.command}, which the kubeconfig names for a credential: it failed: no`,
  });
});

test("files that are not there: nothing is asked, and the sentence names them", async () => {
  const cases = {
    a: [
      { "certificate-authority": "/nowhere/ca.crt" },
      { token: "x" },
      "certificate-authority: /nowhere/ca.crt is not there",
    ],
    b: [{}, { tokenFile: "/nowhere/token" }, "token: /nowhere/token is not there"],
    c: [
      {},
      { "client-certificate": "/nowhere/c", "client-key": "/nowhere/k" },
      "client-certificate: /nowhere/c is not there",
    ],
  } as const;
  for (const [name, [server, user, why]] of Object.entries(cases)) {
    const store = stage.open(stage.kubeconfig(name, user, server));
    expect(await saidBy(store.read(key))).toBe(why);
    expect(await store.put(key, undefined, node)).toEqual({ refused: why });
    expect(await store.watch(key, () => {}, new AbortController().signal)).toBe(why);
  }
  expect(stage.requests).toEqual([]);
});

test("no right: the sentence says who, what, and which role", async () => {
  const store = stage.open(stage.cluster.kubeconfigFor(stage.cluster.stranger));
  const who =
    'addressnodes.addresses.patchbay.dev is forbidden: User "stranger" cannot create resource "addressnodes" in ' +
    'API group "addresses.patchbay.dev" at the cluster scope';
  expect(await store.put(key, undefined, node)).toEqual({
    refused:
      `node/n1: ${stage.cluster.url}: ${who}: kubectl apply -f rbac.yaml, and ask with a credential that has its role`,
  });
  expect(await store.watch(key, () => {}, new AbortController().signal)).toContain('User "stranger" cannot get');
});

test("another node's credential writes nothing, where the server says whose it is", async () => {
  const users = {
    pod: {
      name: "system:serviceaccount:kube-system:patchbay-node",
      mayAll: true,
      extra: { "authentication.kubernetes.io/node-name": ["n2"] },
    },
    kubelet: { name: "system:node:n1", mayAll: true },
    person: { name: "someone", mayAll: true },
  };
  await stage.newCluster({ users, knowsCallers: true });
  const store = stage.open(stage.cluster.kubeconfigFor("pod"), "n1");
  expect(await store.put(key, undefined, node)).toEqual({
    refused:
      `the API server takes this for node n2 (${users.pod.name}), and it is configured as n1: correct "node" in the ` +
      "configuration, or the credential",
  });
  expect(await store.read(key)).toBeUndefined();
  const kubelet = stage.open(stage.cluster.kubeconfigFor("kubelet"), "n1"), was = await made(kubelet);
  await kubelet.put(key, was, { ...node, boot: "b2" });
  expect(stage.requests.filter((each) => each.includes("selfsubjectreviews")).length).toBe(2);
  stage.cluster.server.instead = (request) =>
    isMethod("POST")(request)
      ? { status: 422, body: { message: "policy 'patchbay-node' denied request" } }
      : undefined;
  expect(await kubelet.put(blockKey("lan", 1), undefined, block)).toEqual({
    refused: `block/lan.1: ${stage.cluster.url}: policy 'patchbay-node' denied request (asked as system:node:n1)`,
  });
  stage.cluster.server.instead = () => undefined;
  for (const [user, name] of [["person", "n1"], ["pod", undefined]] as const) {
    expect(await stage.open(stage.cluster.kubeconfigFor(user), name).put(nodeKey(user), undefined, node))
      .toMatchObject({
        won: {},
      });
  }
});

test("older servers do not say whose a credential is, and nothing is refused for it", async () => {
  expect(await stage.open(stage.cluster.kubeconfig, "n1").put(key, undefined, node)).toMatchObject({ won: {} });
});
