/** How a kubeconfig is read: what it may say, and the sentences for what it must not. */
import { expect, test } from "bun:test";
import { accessFrom, accessOf } from "../../src/cluster-stores/kubernetes/access.ts";
import { takeEnvironment } from "../../src/ffi/environment.ts";

const PEM = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";

interface Parts {
  cluster?: object;
  user?: object;
  more?: object;
}

function config({ cluster = {}, user = {}, more = {} }: Parts = {}): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "here",
    contexts: [{ name: "here", context: { cluster: "c", user: "u", namespace: "x" } }],
    clusters: [{ name: "c", cluster: { server: "https://10.0.0.1:6443", ...cluster } }],
    users: [{ name: "u", user }, { name: "other", user: { "auth-provider": { name: "gcp" } } }],
    preferences: {},
    ...more,
  });
}

const read = (parts?: Parts, context?: string) => accessFrom("/etc/kubernetes/agent.conf", config(parts), context);

test("YAML as kubeadm writes it", () => {
  const text = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${btoa(PEM)}
    server: https://10.0.0.1:6443
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: system:node:n1
  name: system:node:n1@kubernetes
current-context: system:node:n1@kubernetes
kind: Config
preferences: {}
users:
- name: system:node:n1
  user:
    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem
`;
  const pki = { file: "/var/lib/kubelet/pki/kubelet-client-current.pem" };
  expect(accessFrom("/etc/kubernetes/kubelet.conf", text)).toEqual({
    ...{ server: "https://10.0.0.1:6443", ca: { text: PEM }, certificate: pki, key: pki },
  });
});

test.each<[string, Parts, object]>([
  ["paths are relative to the file", { cluster: { "certificate-authority": "pki/ca.crt" } }, {
    ca: { file: "/etc/kubernetes/pki/ca.crt" },
  }],
  ["data counts before a file", {
    cluster: { "certificate-authority": "ca.crt", "certificate-authority-data": btoa(PEM) },
  }, {
    ca: { text: PEM },
  }],
  ["the name in the certificate", { cluster: { "tls-server-name": "kubernetes" } }, { serverName: "kubernetes" }],
  ["a path behind the server, and a slash at its end", { cluster: { server: "https://gate.example:443/k8s/c1/" } }, {
    server: "https://gate.example:443/k8s/c1",
  }],
  ["a token", { user: { token: "abc" } }, { token: { text: "abc" } }],
  ["a file with the token counts before it", { user: { token: "abc", tokenFile: "/run/token" } }, {
    token: { file: "/run/token" },
  }],
  ["keys without meaning here, and a look at certificates that is asked for", {
    cluster: { extensions: [], "disable-compression": true, "insecure-skip-tls-verify": false },
  }, {}],
  ["a program", {
    user: {
      exec: {
        ...{
          apiVersion: "client.authentication.k8s.io/v1",
          command: "./bin/login",
          args: ["-a"],
          interactiveMode: "Never",
        },
        ...{ env: [{ name: "A", value: "1" }], installHint: "install it", provideClusterInfo: true },
      },
    },
  }, {
    program: {
      ...{ path: "/etc/kubernetes/./bin/login", args: ["-a"], environment: { A: "1" }, installHint: "install it" },
      wantsCluster: true,
    },
  }],
  ["a program in PATH", {
    user: { exec: { apiVersion: "client.authentication.k8s.io/v1", command: "login", args: null, env: null } },
  }, { program: { path: "login", args: [], environment: {}, wantsCluster: false } }],
])("%s", (_, parts, wanted) => {
  expect(read(parts)).toMatchObject(wanted);
});

test.each<[string, Parts, string]>([
  [
    "no look at the certificate",
    { cluster: { "insecure-skip-tls-verify": true } },
    'cluster "c": "insecure-skip-tls-verify": without a look at the certificate anybody may be the server: name its ' +
    'authority in "certificate-authority"',
  ],
  [
    "no TLS",
    { cluster: { server: "http://10.0.0.1:8080" } },
    'cluster "c": "server": "http://10.0.0.1:8080" is none of the form https://HOST:PORT; TLS is never optional',
  ],
  ["no TLS on this host", { cluster: { server: "http://127.0.0.1:8001" } }, "TLS is never optional"],
  ["a proxy", { cluster: { "proxy-url": "http://p" } }, '"proxy-url": the API server is reached without a proxy'],
  [
    "no PEM",
    { cluster: { "certificate-authority-data": btoa("hello") } },
    '"certificate-authority-data": is no PEM in base64',
  ],
  ["no base64", { user: { "client-certificate-data": "%%%" } }, '"client-certificate-data": is no PEM in base64'],
  ["a certificate without key", { user: { "client-certificate": "/c" } }, '"client-key": the certificate needs it'],
  ["a key without certificate", { user: { "client-key": "/k" } }, '"client-certificate": the key needs it'],
  [
    "a password",
    { user: { username: "u", password: "p" } },
    'user "u": "username": the API server knows no passwords',
  ],
  ["somebody else's name", { user: { as: "root" } }, 'user "u": "as": is not known'],
  [
    "an older program",
    { user: { exec: { apiVersion: "client.authentication.k8s.io/v1beta1", command: "x" } } },
    'user "u": exec: "apiVersion": "client.authentication.k8s.io/v1beta1" is not client.authentication.k8s.io/v1',
  ],
  ["a program that asks a person", {
    user: { exec: { apiVersion: "client.authentication.k8s.io/v1", command: "x", interactiveMode: "Always" } },
  }, '"interactiveMode": nobody is there to be asked'],
  [
    "a program without a command",
    { user: { exec: { apiVersion: "client.authentication.k8s.io/v1" } } },
    '"command": is missing',
  ],
  ["an environment that is none", {
    user: { exec: { apiVersion: "client.authentication.k8s.io/v1", command: "x", env: [{ name: "A" }] } },
  }, '"env": is no list of "name" and "value"'],
  [
    "no context",
    { more: { "current-context": "" } },
    '/etc/kubernetes/agent.conf has no "current-context": name one in "store.kubernetes.context"',
  ],
  ["a context that is not there", { more: { "current-context": "there" } }, '"contexts" has no "there"'],
  ["a cluster that is not there", { more: { clusters: [] } }, '"clusters" has no "c"'],
  ["another kind of file", { more: { kind: "Pod" } }, "/etc/kubernetes/agent.conf is no kubeconfig"],
])("refused: %s", (_, parts, sentence) => {
  expect(() => read(parts)).toThrow(sentence);
});

test("the configuration may name another context, and what others need is not judged", () => {
  const contexts = [{ name: "here", context: {} }, { name: "there", context: { cluster: "c", user: "u" } }];
  expect(read({ more: { contexts } }, "there").server).toBe("https://10.0.0.1:6443");
  expect(() => accessFrom("/k", "a: [", undefined)).toThrow("/k is no YAML");
  expect(() => accessOf({ kubeconfig: "/nowhere/kubeconfig" })).toThrow(
    '/nowhere/kubeconfig, which "store.kubernetes.kubeconfig" names, is not there',
  );
});

test("a pod has its server in the environment, and files beside it", () => {
  const inPod = (variables: string[]) => {
    takeEnvironment(new TextEncoder().encode(variables.map((each) => `${each}\0`).join("")));
    return accessOf({});
  };
  const files = "/var/run/secrets/kubernetes.io/serviceaccount";
  expect(inPod(["KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443"])).toEqual({
    ...{ server: "https://10.96.0.1:443", ca: { file: `${files}/ca.crt` }, token: { file: `${files}/token` } },
  });
  expect(inPod(["KUBERNETES_SERVICE_HOST=fd00::1", "KUBERNETES_SERVICE_PORT=443"]).server).toBe(
    "https://[fd00::1]:443",
  );
  expect(() => inPod(["A=b"])).toThrow(
    "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, as they are in a pod",
  );
});
