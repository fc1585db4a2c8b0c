/** Learning that files and directories change: inotify(7). */
import { bind, cString, fromUtf8, libc } from "./libc.ts";

const IN_NONBLOCK = 0o4000, IN_CLOEXEC = 0o2000000;
const IN_ATTRIB = 0x4, IN_CLOSE_WRITE = 0x8, IN_MOVED_FROM = 0x40, IN_MOVED_TO = 0x80, IN_CREATE = 0x100;
const IN_DELETE = 0x200, IN_DELETE_SELF = 0x400, IN_MOVE_SELF = 0x800;

/** That it loses its name is a change of its attributes while somebody has it open. */
const ITSELF = IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;
const ENTRIES = IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE;

/** The names in a directory that was watched by itself. */
export function changedEntries(events: Uint8Array): string[] {
  const names: string[] = [], view = new DataView(events.buffer, events.byteOffset, events.byteLength);
  for (let at = 0; at + EVENT_BYTES <= events.length;) {
    const length = view.getUint32(at + 12, true), start = at + EVENT_BYTES;
    names.push(fromUtf8(events.subarray(start, start + length)).replaceAll("\0", ""));
    at = start + length;
  }
  return names;
}

/** struct inotify_event before its name. */
const EVENT_BYTES = 16;

export class Watch {
  private readonly symbols = bind({
    inotify_init1: { args: ["i32"], returns: "i32" },
    inotify_add_watch: { args: ["i32", "ptr", "u32"], returns: "i32" },
  });
  /** Readable when something has changed. Negative where the user has too many of them: then it never is. */
  readonly fd = this.symbols.inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

  /** Whether what has this name now is removed or renamed. Again for the same thing does nothing. */
  itself(path: string): void {
    this.symbols.inotify_add_watch(this.fd, cString(path), ITSELF);
  }

  /** Whether entries of the directory come, go or are written, too. */
  entries(directory: string): void {
    this.symbols.inotify_add_watch(this.fd, cString(directory), ITSELF | ENTRIES);
  }

  /** For a process that waits for promises: events, of which `changedEntries` tells the names. */
  changes(): ReadableStream<Uint8Array> {
    return Bun.file(this.fd).stream();
  }

  /** What happened does not matter: the caller looks for itself. */
  forgetChanges(): void {
    const events = new Uint8Array(16384);
    while (Number(libc.read(this.fd, events, events.length)) > 0);
  }
}
