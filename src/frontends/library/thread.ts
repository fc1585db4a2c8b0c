/**
 * The same functions in a thread of their own, for programs that must not wait for them: a call is a message to the
 * thread, which makes one after the other.
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import { ArgumentError } from "./argument-error.ts";
import { open, type Patchbay } from "./calls.ts";
import type { Options } from "./documents.ts";
import { checkedOptions } from "./given.ts";
import { asCniError, childrenCollected } from "./in-process.ts";

const functions = ["networks", "network", "add", "check", "del", "gc", "status", "plan", "inspect"] as const;
type FunctionName = typeof functions[number];

export type ThreadedPatchbay =
  & { readonly [F in FunctionName]: (...given: Parameters<Patchbay[F]>) => Promise<ReturnType<Patchbay[F]>> }
  & {
    /** Does not block the program, so it needs no thread. */
    readonly events: Patchbay["events"];
    /** Ends the thread after the calls that were made before. */
    close(): Promise<void>;
  };

interface Call {
  id: number;
  name: FunctionName | typeof CLOSE;
  given: unknown[];
}

interface Failure {
  code: number;
  message: string;
  details: string;
  argument?: { key: string; value: unknown };
}

type Reply = { id: number; value: unknown } | { id: number; failure: Failure } | { warning: string };

const CLOSE = "close";

export function openInThread(options: Options = {}): ThreadedPatchbay {
  const { onWarning, ...rest } = checkedOptions(options), thread = new Thread(rest, onWarning);
  const calls = functions.map((name) => [name, (...given: unknown[]) => thread.call(name, given)]);
  const events: Patchbay["events"] = (wanted) => open(rest).events(wanted);
  return Object.assign(Object.fromEntries(calls), { events, close: () => thread.close() }) as ThreadedPatchbay;
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

class Thread {
  private readonly worker = new Worker(new URL("./thread.js", import.meta.url).href);
  private readonly pending = new Map<number, Pending>();
  private calls = 0;
  private closing: Promise<void> | undefined;
  private reasonOfEnd: string | undefined;

  constructor(options: Options, private readonly onWarning: Options["onWarning"]) {
    this.worker.onmessage = ({ data }) => this.take(data as Reply);
    this.worker.onerror = ({ message }) => this.ended(message);
    this.worker.addEventListener("close", () => this.ended("it ended"));
    this.worker.postMessage(options);
    this.worker.unref();
  }

  call(name: Call["name"], given: unknown[]): Promise<unknown> {
    if (this.reasonOfEnd !== undefined) return Promise.reject(this.gone());
    const id = this.calls++;
    return new Promise((resolve, reject) => {
      this.worker.postMessage({ id, name, given } satisfies Call);
      this.pending.set(id, { resolve, reject });
      // Keeps the program running until the reply comes.
      this.worker.ref();
    });
  }

  close(): Promise<void> {
    if (this.closing !== undefined) return this.closing;
    const end = () => this.worker.terminate();
    this.closing = this.call(CLOSE, []).then(end, end).then(() => {});
    this.reasonOfEnd ??= "it was closed";
    return this.closing;
  }

  private take(reply: Reply): void {
    if ("warning" in reply) {
      if (this.onWarning === undefined) console.error(`patchbay: ${reply.warning}`);
      else this.onWarning(reply.warning);
      return;
    }
    const call = this.pending.get(reply.id);
    this.forget(reply.id);
    if ("value" in reply) call?.resolve(reply.value);
    else call?.reject(errorOf(reply.failure));
  }

  private forget(id: number): void {
    this.pending.delete(id);
    if (this.pending.size === 0) this.worker.unref();
  }

  private ended(reason: string): void {
    this.reasonOfEnd ??= reason;
    for (const [id, { reject }] of [...this.pending]) {
      this.forget(id);
      reject(this.gone());
    }
  }

  private gone(): CniError {
    return new CniError(INTERNAL, `the thread of this patchbay is gone: ${this.reasonOfEnd}`);
  }
}

function errorOf({ code, message, details, argument }: Failure): CniError {
  if (argument === undefined) return new CniError(code, message, details);
  return Object.assign(new ArgumentError(argument.key, argument.value, ""), { message });
}

/**
 * Runs in the thread.
 *
 * @internal
 */
export function serveThread(): void {
  let patchbay: Patchbay | undefined;
  const reply = (message: Reply) => postMessage(message);
  addEventListener("message", ({ data }) => {
    if (patchbay === undefined) {
      patchbay = open({ ...data as Options, onWarning: (warning) => reply({ warning }) });
      return;
    }
    const { id, name, given } = data as Call;
    if (name === CLOSE) return void childrenCollected().then(() => reply({ id, value: undefined }));
    try {
      const run = patchbay[name] as (...given: unknown[]) => unknown;
      reply({ id, value: run.apply(patchbay, given) });
    } catch (error) {
      reply({ id, failure: failureOf(asCniError(error)) });
    }
  });
}

function failureOf(error: CniError): Failure {
  const { code, message, details } = error;
  if (!(error instanceof ArgumentError)) return { code, message, details };
  // Whatever was sent here can be sent back.
  return { code, message, details, argument: { key: error.key, value: error.value } };
}
