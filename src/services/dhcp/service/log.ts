/** The service's log on stderr, which a service manager keeps. What may happen a thousand times a minute is said once. */
import { note } from "../../../contract/trace.ts";
import { preciseSecondsSinceBoot } from "../../../ffi/clock.ts";
import { printToStderr } from "../../../ffi/terminal.ts";

const PAUSE_S = 60, MOST_SUBJECTS = 1000;
/** The oldest is first. */
const lastSaid = new Map<string, number>();

export function say(text: string, facts: Record<string, unknown> = {}): void {
  note("dhcp", { text, ...facts });
  printToStderr(text);
}

/** Says at most one line a minute for each subject, of a limited number of subjects: others choose some of them. The trace has all. */
export function sayRarely(subject: string, text: string, facts: Record<string, unknown> = {}): void {
  const now = preciseSecondsSinceBoot(), last = lastSaid.get(subject);
  if (last !== undefined && now - last < PAUSE_S) return note("dhcp", { text, ...facts });
  for (const [old, then] of lastSaid) {
    if (now - then < PAUSE_S) break;
    lastSaid.delete(old);
  }
  if (lastSaid.size >= MOST_SUBJECTS) return note("dhcp", { text, ...facts });
  lastSaid.set(subject, now);
  say(text, facts);
}
