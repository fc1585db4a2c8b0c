/** A fake API server with its certificates, and files that lead to it. */
import { readFileSync } from "node:fs";
import { Certificates } from "../certificates.ts";
import { needs } from "../needs.ts";
import type { ServerAtTest } from "./asking.ts";
import { FakeApiServer, type FakeOptions, type FakeUser } from "./fake-server.ts";

needs("openssl");

export interface FakeCluster extends ServerAtTest, Disposable {
  server: FakeApiServer;
  certificates: Certificates;
  caFile: string;
  kubeconfig: string;
  /** A file that asks as the token's user. */
  kubeconfigFor(token: string, name?: string): string;
}

export async function fakeCluster(
  { users = {}, ...options }: Partial<Omit<FakeOptions, "tls">> = {},
): Promise<FakeCluster> {
  const certificates = new Certificates(), authority = certificates.authority("cluster");
  const tls = certificates.signedBy(authority, { names: ["IP:127.0.0.1", "DNS:localhost"], commonName: "server" });
  const own: Record<string, FakeUser> = {
    "the-administrators": { name: "admin", mayAll: true },
    "the-strangers": { name: "stranger", mayAll: false },
  };
  const server = await FakeApiServer.start({ tls, users: { ...own, ...users }, ...options });
  const kubeconfigFor = (token: string, name = token) =>
    certificates.file(name, kubeconfigOf(server.url, { "certificate-authority": authority.certFile }, { token }));
  return {
    ...{ server, certificates, url: server.url, caFile: authority.certFile },
    ca: readFileSync(authority.certFile, "utf8"),
    admin: "the-administrators",
    stranger: "the-strangers",
    kubeconfig: kubeconfigFor("the-administrators"),
    kubeconfigFor,
    [Symbol.dispose]() {
      server[Symbol.dispose]();
      certificates[Symbol.dispose]();
    },
  };
}

/** JSON is YAML, too. */
export function kubeconfigOf(server: string, cluster: object, user: object): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "test",
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
    clusters: [{ name: "test", cluster: { server, ...cluster } }],
    users: [{ name: "test", user }],
  });
}
