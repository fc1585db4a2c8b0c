/** Work on Open vSwitch's database, with its failures as people are told them. */
import { CniError, INTERNAL, TRY_AGAIN_LATER } from "../../../cni/error.ts";
import { forgetAfterCall } from "../../../process/calls.ts";
import { SyscallError } from "../../../ffi/errno.ts";
import { giveBackConnection, takeConnection } from "../../../process/kept-open.ts";
import { renewPatience } from "../../../process/patience.ts";
import { NoDatabase, OvsdbConnection, Refused, SilentDatabase } from "../../../interop/ovsdb/connection.ts";

/** Servers that have not answered in this call: what it takes back, or inspects next, does not wait for them again. */
const silent = new Map<string, SilentDatabase>();
forgetAfterCall(() => silent.clear());

/** What has to be taken back is asked for anew. */
export function askAgain(server: string): void {
  silent.delete(server);
  renewPatience(server);
}

/** `isInterruptible`: a signal to the runtime ends a wait. */
export function withDatabase<T>(server: string, work: (database: OvsdbConnection) => T, isInterruptible = false): T {
  let database: OvsdbConnection | undefined;
  try {
    const former = silent.get(server);
    if (former !== undefined) throw former;
    database = connectionTo(server, isInterruptible);
    const value = work(database);
    if (!database.isWatching) {
      giveBackConnection(server, database);
      database = undefined;
    }
    return value;
  } catch (error) {
    if (error instanceof SilentDatabase) silent.set(server, error);
    throw explained(error, server);
  } finally {
    database?.close();
  }
}

/** The one that an earlier work of this verb has used, or another. */
function connectionTo(server: string, isInterruptible: boolean): OvsdbConnection {
  const former = takeConnection<OvsdbConnection>(server);
  if (former?.renew(isInterruptible)) return former;
  former?.close();
  return OvsdbConnection.open(server, isInterruptible);
}

function explained(error: unknown, server: string): unknown {
  if (error instanceof SyscallError) {
    const text = `the database of Open vSwitch cannot be reached: ${error.message}`;
    const details = `start Open vSwitch, or name the socket of its ovsdb-server: "socket_file" is ${server}`;
    return new CniError(TRY_AGAIN_LATER, text, details, { cause: error });
  }
  if (error instanceof NoDatabase) {
    return new CniError(TRY_AGAIN_LATER, error.message, "look at the log of ovsdb-server", { cause: error });
  }
  if (!(error instanceof Refused)) return error;
  const details = `${server} has to be the database "Open_vSwitch"`;
  return new CniError(INTERNAL, `the database of Open vSwitch refuses: ${error.message}`, details, { cause: error });
}
