/**
 * All attachments of the service: by name, by when they are due, and those that wait for something to arrive. What happens
 * to one of them costs the same with ten and with ten thousand others.
 */
import type { Attachment } from "./attachment.ts";
import { Timetable } from "./timetable.ts";

export class Held {
  private readonly byName = new Map<string, Attachment>();
  private readonly timetable = new Timetable<Attachment>();
  /** They have sockets open. */
  private readonly listening = new Set<Attachment>();

  get size(): number {
    return this.byName.size;
  }

  get(name: string): Attachment | undefined {
    return this.byName.get(name);
  }

  all(): Attachment[] {
    return [...this.byName.values()];
  }

  of(network: string): Attachment[] {
    return this.all().filter((one) => one.network === network);
  }

  /** In place of one of its name. */
  set(attachment: Attachment): void {
    this.delete(attachment.name);
    this.byName.set(attachment.name, attachment);
    this.hasChanged(attachment);
  }

  delete(name: string): void {
    const attachment = this.byName.get(name);
    if (attachment === undefined) return;
    this.byName.delete(name);
    this.timetable.delete(attachment);
    this.listening.delete(attachment);
  }

  /** After everything that was done with it: it may be due at another time, or wait for something else. */
  hasChanged(attachment: Attachment): void {
    if (this.byName.get(attachment.name) !== attachment) return;
    this.timetable.set(attachment, attachment.due);
    if (attachment.fds.length > 0) this.listening.add(attachment);
    else this.listening.delete(attachment);
  }

  /** Their descriptors, each with whose it is. */
  descriptors(): Map<number, Attachment> {
    const owners = new Map<number, Attachment>();
    for (const attachment of this.listening) for (const fd of attachment.fds) owners.set(fd, attachment);
    return owners;
  }

  earliest(): number {
    return this.timetable.earliest();
  }

  /** Those that are due. `hasChanged` says when they are due again. */
  takeDue(now: number): Attachment[] {
    return this.timetable.takeDue(now);
  }
}
