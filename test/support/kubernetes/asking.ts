/** Asking an API server in a test, without the code that is tested. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { untilTrue } from "../until-true.ts";

export interface ServerAtTest {
  url: string;
  ca: string;
  /** A token that may do everything, one that may do nothing. */
  admin: string;
  stranger: string;
}

export interface Answered {
  status: number;
  // deno-lint-ignore no-explicit-any
  body: any;
  text: string;
}

export type Asking = (method: string, path: string, body?: object, token?: string | null) => Promise<Answered>;

/** As its administrator, unless another token is said, or null for none. */
export function askingOf({ url, ca, admin }: ServerAtTest): Asking {
  return async (method, path, body, token = admin) => {
    const response = await fetch(`${url}${path}`, {
      method,
      tls: { ca },
      proxy: false,
      keepalive: method === "GET",
      headers: {
        accept: "application/json",
        "accept-encoding": "identity",
        ...body !== undefined && { "content-type": "application/json" },
        ...token !== null && { authorization: `Bearer ${token}` },
      },
      ...body !== undefined && { body: JSON.stringify(body) },
    } as RequestInit);
    const text = await response.text();
    return { status: response.status, text, body: text.startsWith("{") ? JSON.parse(text) : undefined };
  };
}

export const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

export function manifestsIn(name: string): Record<string, unknown>[] {
  const path = resolve(import.meta.dir, "../../../release/kubernetes", name);
  const parsed: unknown = Bun.YAML.parse(readFileSync(path, "utf8"));
  return (Array.isArray(parsed) ? parsed : [parsed]) as Record<string, unknown>[];
}

/** Makes the kinds, and waits until the server has them. */
export async function installKinds(ask: Asking, definitions = manifestsIn("crds.yaml")): Promise<void> {
  for (const definition of definitions) {
    const { status, text } = await ask("POST", DEFINITIONS, definition);
    if (status !== 201) throw new Error(text);
    const { group, names, versions } = definition["spec"] as {
      group: string;
      names: { plural: string };
      versions: [{ name: string }];
    };
    await untilTrue(
      () => ask("GET", `/apis/${group}/${versions[0].name}/${names.plural}`),
      (listed) => listed.status === 200,
    );
  }
}

/** A watch: what it has told, and how it ended. */
export class Watching {
  readonly events: { type: string; object: Record<string, unknown> & { metadata?: Record<string, unknown> } }[] = [];
  status = 0;
  hasEnded = false;
  private readonly stop = new AbortController();

  constructor({ url, ca, admin }: ServerAtTest, path: string) {
    void this.read(fetch(`${url}${path}`, {
      tls: { ca },
      proxy: false,
      signal: this.stop.signal,
      headers: { accept: "application/json", authorization: `Bearer ${admin}` },
    } as RequestInit)).catch(() => {}).finally(() => this.hasEnded = true);
  }

  /** Until it has told what satisfies. */
  async until(isThere: (watch: this) => boolean): Promise<void> {
    await untilTrue(() => this, isThere);
  }

  end(): void {
    this.stop.abort();
  }

  private async read(asked: Promise<Response>): Promise<void> {
    const response = await asked;
    this.status = response.status;
    let rest = "";
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop()!;
      // One document a line: another form throws here, and the watch has ended too early.
      for (const line of lines) this.events.push(JSON.parse(line));
    }
  }
}
