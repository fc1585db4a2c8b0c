/**
 * An API server of Kubernetes for the fast tests, as far as a store of records notices: what test/cluster-stores/api-contract.ts
 * says, which the real one is held to as well. It does not show policies, rules of kinds (CEL), roles, client certificates,
 * fairness, timeouts of which nobody knows the outcome, and load.
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { CertificateFiles } from "../certificates.ts";
import {
  type ApiEvent,
  type ApiObject,
  type Column,
  failure,
  type FakeKind,
  FakeObjects,
  notFound,
  type Outcome,
} from "./objects.ts";

export interface FakeUser {
  name: string;
  /** Whether it may do everything; else nothing. */
  mayAll: boolean;
  extra?: Record<string, string[]>;
}

export interface FakeOptions {
  tls: CertificateFiles;
  /** By token. */
  users: Record<string, FakeUser>;
  /** It tells who asks, as from 1.27 on. */
  knowsCallers?: boolean;
}

export interface FakeRequest {
  method: string;
  /** With what is asked for behind `?`. */
  path: string;
  token: string | undefined;
}

/** `hang`: no answer. `reset`: the connection ends. */
export type InsteadOfAnswer = { status: number; body: object | string } | "hang" | "reset" | undefined;

interface ParsedRequest {
  method: string;
  kind: FakeKind;
  name: string | undefined;
  query: URLSearchParams;
  accept: string;
  body: unknown;
}

const TOO_LATE_MS = 3000, BOOKMARKS_MS = 200;

export class FakeApiServer implements Disposable {
  readonly objects = new FakeObjects();
  /** Answers in the server's place, where it returns something. */
  instead: (request: FakeRequest) => InsteadOfAnswer = () => undefined;
  /** What was carried out is told as this. */
  afterwards: (request: FakeRequest) => InsteadOfAnswer = () => undefined;
  /** `GET /apis/…`, as they came. */
  readonly requests: string[] = [];
  url = "";

  private constructor(
    private readonly options: FakeOptions,
    private readonly server: ReturnType<typeof createServer>,
  ) {
    server.on("request", (request: IncomingMessage, response: ServerResponse) => void this.answer(request, response));
  }

  static async start(options: FakeOptions): Promise<FakeApiServer> {
    const { certFile, keyFile } = options.tls;
    const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) });
    const fake = new FakeApiServer(options, server);
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    fake.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return fake;
  }

  [Symbol.dispose](): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "" } = request, { pathname, searchParams: query } = new URL(url, this.url);
    const token = /^Bearer (.*)$/.exec(request.headers.authorization ?? "")?.[1],
      asked = { method, path: url, token };
    this.requests.push(`${method} ${url}`);
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const instead = this.instead(asked);
    if (instead !== undefined) return sendInstead(request, response, instead);
    const body: unknown = parts.length === 0 ? undefined : JSON.parse(Buffer.concat(parts).toString());
    const outcome = await this.outcomeOf(asked, { pathname, query, accept: request.headers.accept ?? "", body });
    const afterwards = this.afterwards(asked);
    if (afterwards !== undefined) return sendInstead(request, response, afterwards);
    if ("watched" in outcome) return this.watch(outcome.watched, response);
    send(response, outcome);
  }

  private async outcomeOf(
    { method, token }: FakeRequest,
    { pathname, ...asked }: { pathname: string; query: URLSearchParams; accept: string; body: unknown },
  ): Promise<InsteadOutcome | { watched: ParsedRequest }> {
    const user = token === undefined ? { name: "system:anonymous", mayAll: false } : this.options.users[token];
    if (user === undefined) return failure(401, "Unauthorized", "Unauthorized");
    if (/\/selfsubjectreviews$/.test(pathname)) return this.callerAsked(user);
    const [, group, version, plural, name] = /^\/apis\/([^/]+)\/([^/]+)\/([^/]+)(?:\/([^/]+))?$/.exec(pathname) ?? [];
    const kind = group === undefined ? undefined : this.objects.kindOf(group, version!, plural!);
    if (!user.mayAll) return forbidden(user, method, group ?? "", plural ?? "");
    if (kind === undefined) return { status: 404, body: "404 page not found\n" };
    const parsed = { ...asked, method, kind, name };
    if (method === "GET" && asked.query.get("watch") === "true") return { watched: parsed };
    return await this.carryOut(parsed);
  }

  private callerAsked({ name, extra }: FakeUser): Outcome {
    if (!this.options.knowsCallers) {
      return failure(404, "NotFound", "the server could not find the requested resource");
    }
    return { status: 201, body: { kind: "SelfSubjectReview", status: { userInfo: { username: name, extra } } } };
  }

  private async carryOut(asked: ParsedRequest): Promise<Outcome> {
    const { method, kind, name, query, body } = asked, sent = body as ApiObject, { objects } = this;
    const version = query.get("resourceVersion") ?? "";
    if (method === "GET" && Number(version) > objects.revision) {
      await Bun.sleep(TOO_LATE_MS);
      return failure(504, "Timeout", `Timeout: Too large resource version: ${version}`);
    }
    if (method === "GET" && name === undefined) return this.list(asked);
    if (method === "GET") {
      const object = objects.allOf(kind).get(name!);
      return object === undefined ? notFound(kind, name!) : { status: 200, body: object };
    }
    if (method === "POST") return objects.create(kind, sent);
    if (method === "PUT") return objects.replace(kind, name!, sent);
    const { preconditions } = (body ?? {}) as { preconditions?: { uid?: string; resourceVersion?: string } };
    return objects.delete(kind, name!, preconditions);
  }

  private list({ kind, query, accept }: ParsedRequest): Outcome {
    const found = [...this.objects.allOf(kind).values()].filter((object) => isChosen(object, query));
    const items = found.slice(0, Number(query.get("limit") ?? found.length));
    const apiVersion = `${kind.group}/${kind.version}`, metadata = { resourceVersion: String(this.objects.revision) };
    const body = accept.includes("as=Table")
      ? { kind: "Table", apiVersion: "meta.k8s.io/v1", metadata, ...tableOf(kind, items) }
      : { apiVersion, kind: `${kind.kind}List`, metadata, items };
    return { status: 200, body };
  }

  private watch({ kind, query }: ParsedRequest, response: ServerResponse): void {
    const { objects } = this, from = Number(query.get("resourceVersion") ?? 0), seconds = query.get("timeoutSeconds");
    const tell = (event: object) => response.write(`${JSON.stringify(event)}\n`);
    const show = ({ type, object }: Pick<ApiEvent, "type" | "object">) => {
      if (isChosen(object, query)) tell({ type, object });
    };
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    if (from > 0 && from < objects.oldest) {
      tell({ type: "ERROR", object: failure(410, "Expired", `too old resource version: ${from}`).body });
      return void response.end();
    }
    let next = from === 0 ? objects.events.length : 0;
    if (from === 0) { for (const object of objects.allOf(kind).values()) show({ type: "ADDED", object }); }
    const follow = () => {
      const events = objects.events.slice(next);
      next = objects.events.length;
      for (const event of events) if (event.kind === kind && event.version > from) show(event);
    };
    follow();
    objects.listeners.add(follow);
    const timers = [
      ...seconds === null ? [] : [setTimeout(() => response.end(), Number(seconds) * 1000)],
      ...query.get("allowWatchBookmarks") === "true"
        ? [setInterval(() => tell(bookmark(kind, objects)), BOOKMARKS_MS)]
        : [],
    ];
    response.on("close", () => {
      timers.forEach((timer) => clearTimeout(timer));
      objects.listeners.delete(follow);
    });
  }
}

type InsteadOutcome = { status: number; body: object | string };

function send(response: ServerResponse, { status, body }: InsteadOutcome): void {
  const isText = typeof body === "string";
  response.writeHead(status, { "content-type": isText ? "text/plain" : "application/json" });
  response.end(isText ? body : JSON.stringify(body));
}

function sendInstead(request: IncomingMessage, response: ServerResponse, instead: InsteadOfAnswer): void {
  if (instead === "reset") request.socket.destroy();
  else if (typeof instead === "object") send(response, instead);
}

function bookmark({ group, version, kind }: FakeKind, { revision }: FakeObjects): object {
  const metadata = { resourceVersion: String(revision) };
  return { type: "BOOKMARK", object: { apiVersion: `${group}/${version}`, kind, metadata } };
}

const VERBS: Record<string, string> = { POST: "create", PUT: "update", DELETE: "delete" };

function forbidden({ name }: FakeUser, method: string, group: string, plural: string): Outcome {
  const verb = VERBS[method] ?? "get";
  const why = `User "${name}" cannot ${verb} resource "${plural}" in API group "${group}" at the cluster scope`;
  return failure(403, "Forbidden", `${plural}.${group} is forbidden: ${why}`);
}

/** One label, and one field: the name. */
function isChosen({ metadata }: ApiObject, query: URLSearchParams): boolean {
  const [label, value] = query.get("labelSelector")?.split("=") ?? [];
  const name = query.get("fieldSelector")?.replace(/^metadata\.name=/, "");
  return (label === undefined || metadata.labels?.[label] === value) &&
    (name === undefined || metadata.name === name);
}

function tableOf({ columns }: FakeKind, items: readonly ApiObject[]): object {
  const definitions = [
    { name: "Name", type: "string", priority: 0 },
    ...columns.map(({ name, type }) => ({ name, type })),
  ];
  const rows = items.map((item) => ({
    cells: [item.metadata.name, ...columns.map((column) => cellOf(item, column))],
    object: null,
  }));
  return { columnDefinitions: definitions, rows };
}

function cellOf(item: ApiObject, { jsonPath, type }: Column): unknown {
  const steps = jsonPath.split(/[.[\]]+/).filter((step) => step !== "");
  const found = steps.reduce<unknown>((at, step) => (at as Record<string, unknown> | undefined)?.[step], item) ??
    null;
  return type === "date" && found !== null ? "5s" : found;
}
