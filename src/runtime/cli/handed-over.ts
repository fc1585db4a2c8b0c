/**
 * The hidden command by which a library hands an operation to a resident of its own build (library/resident.ts): a request on
 * stdin, an answer on stdout.
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import { LeftToCaller, nameCall } from "../../ffi/calls.ts";
import { readAll } from "../../ffi/files.ts";
import { fromUtf8 } from "../../ffi/libc.ts";
import { type OperationName, type Outcomes, perform, type Subjects } from "../operation.ts";
import type { Runtime } from "../plugin-call.ts";
import { print } from "./output.ts";

export interface OperationRequest<Name extends OperationName = OperationName> {
  name: Name;
  runtime: Runtime;
  subject: Subjects[Name];
  /** Of the call: the library gives every call another one. */
  call: string;
}

export type OperationAnswer<Name extends OperationName = OperationName> =
  | { outcome: Outcomes[Name] | null }
  | { error: { code: number; message: string; details: string } };

export function answerOperation(): number {
  const { name, runtime, subject, call } = JSON.parse(fromUtf8(readAll(0, undefined, "stdin"))) as OperationRequest;
  nameCall(call);
  print(JSON.stringify(answerTo(() => perform(name, runtime, subject))));
  return 0;
}

function answerTo(work: () => Outcomes[OperationName]): OperationAnswer {
  try {
    return { outcome: work() ?? null };
  } catch (error) {
    if (error instanceof LeftToCaller) throw error;
    const { code, message, details } = error instanceof CniError
      ? error
      : new CniError(INTERNAL, (error as Error).message);
    return { error: { code, message, details } };
  }
}
