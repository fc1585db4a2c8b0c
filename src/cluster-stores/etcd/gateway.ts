/**
 * etcd's JSON gateway: requests that have exactly these fields, because it drops what it does not know without a word, at one
 * endpoint until that fails. Each asks for a member that has a leader: one that was cut off would answer with old records.
 */
import type { EtcdConf } from "../../cluster/configuration.ts";
import { StoreSilent } from "../../cluster/effects.ts";
import { undefinedOnError } from "../../cni/error.ts";
import { isObject } from "../../cni/json.ts";
import { certificatesIn, CredentialError, type HttpIdentity, passwordIn, secretIn } from "../credential-files.ts";
import { HttpClient, type HttpRequest, type HttpStream } from "../http.ts";
import { HttpFailure } from "../transport-errors.ts";
import { EndpointTrouble, EtcdRefusal, etcdTrouble, TokenTrouble } from "./refusals.ts";
import type { KeyValue } from "./values.ts";

interface Header {
  cluster_id?: string;
  revision?: string;
  raft_term?: string;
}

export interface RangeRequest {
  key: string;
  range_end?: string;
  limit?: number;
  revision?: number;
  min_mod_revision?: number;
}

export interface RangeAnswer {
  header: Header;
  kvs?: KeyValue[];
  more?: boolean;
  /** How many keys the range has, whichever were asked for. */
  count?: string;
}

type Compare =
  | { key: string; result: "EQUAL"; target: "MOD"; mod_revision: number }
  | { key: string; result: "EQUAL"; target: "CREATE"; create_revision: string }
  | { key: string; result: "EQUAL"; target: "VALUE"; value: string };

export interface TxnRequest {
  compare: Compare[];
  success: [{ request_put: { key: string; value: string } } | { request_delete_range: { key: string } }];
}

export interface TxnAnswer {
  header: Header;
  /** Missing when a compare failed. */
  succeeded?: boolean;
}

export class Gateway {
  private readonly client: HttpClient;
  private token?: Promise<string | undefined>;

  /** `at` is the endpoint to begin with, by its number. */
  constructor(readonly conf: EtcdConf, private at: number) {
    this.client = new HttpClient("etcd", () => identityOf(conf));
  }

  range(request: RangeRequest): Promise<RangeAnswer> {
    return this.call<RangeAnswer>("kv/range", request, true);
  }

  /** Sent once: who gets no answer has to look. */
  txn(request: TxnRequest): Promise<TxnAnswer> {
    return this.call<TxnAnswer>("kv/txn", request, false);
  }

  /** Throws StoreSilent and EndpointTrouble. The signals end it. */
  async watch(endpoint: string, key: string, token: string | undefined, signals: AbortSignal[]): Promise<HttpStream> {
    const request = requestOf({ create_request: { key } }, token);
    const stream = await atEndpoint(() => this.client.stream(`${endpoint}/v3/watch`, request, signals));
    if (stream.status === 200) return stream;
    throw etcdTrouble({ status: stream.status, text: await atEndpoint(() => stream.text()) }, endpoint, this.conf);
  }

  /** From the present one on, each once. */
  endpointsFrom(first = this.at): string[] {
    const { endpoints } = this.conf;
    return endpoints.map((_, index) => endpoints[(first + index) % endpoints.length]!);
  }

  get present(): number {
    return this.at;
  }

  close(): void {
    this.client.close();
  }

  /** Throws StoreSilent, EtcdRefusal among them, and Compacted. */
  private async call<Answer>(path: string, request: object, isRepeatable: boolean): Promise<Answer> {
    const troubles: string[] = [];
    for (const endpoint of this.endpointsFrom()) {
      try {
        return await this.withToken(endpoint, (token) => this.send<Answer>(endpoint, path, request, token));
      } catch (error) {
        if (!(error instanceof EndpointTrouble)) throw error;
        troubles.push(error.message);
        this.leave(endpoint);
        if (!isRepeatable && !error.isUnsent) break;
      }
    }
    throw new StoreSilent(troubles.join("; "));
  }

  private async send<Answer>(
    endpoint: string,
    path: string,
    asked: object,
    token: string | undefined,
  ): Promise<Answer> {
    const request = requestOf(asked, token);
    const answer = await atEndpoint(() => this.client.request(`${endpoint}/v3/${path}`, request));
    if (answer.status !== 200) throw etcdTrouble(answer, endpoint, this.conf);
    const value = undefinedOnError(() => JSON.parse(answer.text) as unknown);
    if (isObject(value)) return value as Answer;
    throw new EndpointTrouble(`${endpoint}: what answers there is not etcd's gateway`);
  }

  /** A token may have expired, or may be of before the roles have changed: then once more with a new one. */
  async withToken<Result>(endpoint: string, work: (token: string | undefined) => Promise<Result>): Promise<Result> {
    const asked = this.tokenAt(endpoint);
    try {
      return await work(await asked);
    } catch (error) {
      if (!(error instanceof TokenTrouble)) throw error;
      this.forget(asked);
    }
    try {
      return await work(await this.tokenAt(endpoint));
    } catch (error) {
      throw error instanceof TokenTrouble ? new EndpointTrouble(error.message, true) : error;
    }
  }

  /** One for all requests: etcd takes 70 ms of a processor for a password. */
  private tokenAt(endpoint: string): Promise<string | undefined> {
    if (this.token !== undefined) return this.token;
    const asked = this.authenticate(endpoint);
    asked.catch(() => this.forget(asked));
    return this.token = asked;
  }

  /** Undefined without a user, and while etcd asks for none, as etcdctl does. */
  private async authenticate(endpoint: string): Promise<string | undefined> {
    const { user, passwordFile } = this.conf;
    if (user === undefined) return undefined;
    const password = await atEndpoint(() => passwordIn({ name: "passwordFile", path: passwordFile! }));
    try {
      const asked = { name: user, password };
      return (await this.send<{ token?: string }>(endpoint, "auth/authenticate", asked, undefined)).token;
    } catch (error) {
      if (error instanceof EtcdRefusal && error.message.includes("authentication is not enabled")) return undefined;
      throw error instanceof EndpointTrouble ? new EndpointTrouble(error.message, true) : error;
    }
  }

  private forget(token: Promise<string | undefined> | undefined): void {
    if (this.token === token) this.token = undefined;
  }

  /** Many requests may fail at one endpoint: the first of them goes on to the next. */
  private leave(endpoint: string): void {
    const { endpoints } = this.conf;
    if (endpoints[this.at] === endpoint) this.at = (this.at + 1) % endpoints.length;
  }
}

function requestOf(asked: object, token: string | undefined): HttpRequest {
  const headers = { "Grpc-Metadata-hasleader": "true", ...token !== undefined && { Authorization: token } };
  return { method: "POST", headers, body: JSON.stringify(asked) };
}

/** What goes wrong on the way there, as what it means for the store. */
export async function atEndpoint<Result>(work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CredentialError) throw new EtcdRefusal(error.message);
    if (!(error instanceof HttpFailure)) throw error;
    throw error.kind === "local"
      ? new EtcdRefusal(error.message)
      : new EndpointTrouble(error.message, error.kind === "unsent");
  }
}

function identityOf({ caFile, certFile, keyFile, serverName }: EtcdConf): HttpIdentity {
  return {
    ...caFile === undefined
      ? { caFrom: "an authority that every system knows, and no caFile is configured" }
      : { ca: certificatesIn({ name: "caFile", path: caFile }), caFrom: `an authority in caFile ${caFile}` },
    ...certFile !== undefined && {
      cert: certificatesIn({ name: "certFile", path: certFile }),
      key: secretIn({ name: "keyFile", path: keyFile! }),
      certFrom: `the certificate in certFile ${certFile}`,
    },
    ...serverName !== undefined && { serverName },
    nameKey: "serverName",
  };
}
