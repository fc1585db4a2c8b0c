/** When each of many is due. Asking for the earliest costs the same with ten and with ten thousand. Pure. */

interface Entry<Item> {
  item: Item;
  due: number;
}

export class Timetable<Item> {
  /** A heap: no entry is due before the one at half its place. Entries that are not true any more stay until they are first. */
  private readonly heap: Entry<Item>[] = [];
  private readonly dues = new Map<Item, number>();

  set(item: Item, due: number): void {
    if (this.dues.get(item) === due) return;
    this.dues.set(item, due);
    this.heap.push({ item, due });
    this.rise(this.heap.length - 1);
    if (this.heap.length > 2 * this.dues.size + 64) this.rebuild();
  }

  delete(item: Item): void {
    this.dues.delete(item);
  }

  /** `Infinity` when nothing is. */
  earliest(): number {
    for (;;) {
      const [first] = this.heap;
      if (first === undefined) return Infinity;
      if (this.dues.get(first.item) === first.due) return first.due;
      this.removeFirst();
    }
  }

  /** Those that are due; they are not in the table any more. */
  takeDue(now: number): Item[] {
    const found: Item[] = [];
    while (this.earliest() <= now) {
      const { item } = this.heap[0]!;
      found.push(item);
      this.dues.delete(item);
      this.removeFirst();
    }
    return found;
  }

  private rebuild(): void {
    this.heap.length = 0;
    for (const [item, due] of this.dues) {
      this.heap.push({ item, due });
      this.rise(this.heap.length - 1);
    }
  }

  private rise(from: number): void {
    for (let at = from; at > 0;) {
      const above = (at - 1) >> 1;
      if (this.heap[above]!.due <= this.heap[at]!.due) return;
      this.swap(above, at);
      at = above;
    }
  }

  private removeFirst(): void {
    const last = this.heap.pop()!;
    if (this.heap.length === 0) return;
    this.heap[0] = last;
    for (let at = 0;;) {
      const left = 2 * at + 1, right = left + 1;
      let least = at;
      if (left < this.heap.length && this.heap[left]!.due < this.heap[least]!.due) least = left;
      if (right < this.heap.length && this.heap[right]!.due < this.heap[least]!.due) least = right;
      if (least === at) return;
      this.swap(least, at);
      at = least;
    }
  }

  private swap(one: number, other: number): void {
    [this.heap[one], this.heap[other]] = [this.heap[other]!, this.heap[one]!];
  }
}
