/** A visit to a container's namespace that several users share: it begins with the first, and ends with the last. */
import { NetnsHandle as Visit, type Place, PlaceGone } from "../link/place.ts";

export class SharedVisit {
  private users = 0;

  constructor(private readonly place: Place, private visit?: Visit) {}

  /** Throws PlaceGone. */
  enter(): Visit {
    this.visit ??= Visit.begin(this.place);
    this.users++;
    return this.visit;
  }

  leave(): void {
    this.users--;
    if (this.users <= 0) this.end();
  }

  end(): void {
    this.visit?.end();
    this.visit = undefined;
    this.users = 0;
  }

  isPossible(): boolean {
    try {
      this.enter();
      this.leave();
      return true;
    } catch (error) {
      if (error instanceof PlaceGone) return false;
      throw error;
    }
  }
}
