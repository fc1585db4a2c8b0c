/**
 * What a lazy `require` answers has to be said, because nobody can tell: `require("./x.ts") as typeof import("./x.ts")`.
 * Node's own declaration answers `any`, which would switch the checks off for all that comes after it. This one comes
 * first; `npm run check -- structure` sees to it that both name the same file.
 */
export {};

declare global {
  namespace NodeJS {
    interface Require {
      (id: string): unknown;
    }
  }
}
