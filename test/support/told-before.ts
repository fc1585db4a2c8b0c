/** Stories in a file, as they were told before: a difference says which program writes the file again. */
import { expect } from "bun:test";
import { readFileSync } from "node:fs";

export class ToldBefore {
  readonly #stories: string[];
  readonly #remedy: string;

  constructor(path: string, separator: string, writer: string) {
    this.#stories = readFileSync(path, "utf8").trimEnd().split(separator);
    this.#remedy = `when this is meant, npx bun ${writer} writes it down; the difference of the file is the change`;
  }

  compare(title: string, told: string): void {
    expect(told, this.#remedy).toBe(this.#stories.find((each) => each.startsWith(`${title}\n`))!);
  }

  expectCount(count: number): void {
    expect(this.#stories.length, this.#remedy).toBe(count);
  }
}
