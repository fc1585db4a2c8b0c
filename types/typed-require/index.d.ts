/**
 * A lazy `require` needs a type: `require("./x.ts") as typeof import("./x.ts")`. Node's own declaration returns `any`,
 * which would disable type checks. This one takes precedence; `npm run check -- structure` verifies that both paths are
 * the same.
 */
export {};

declare global {
  namespace NodeJS {
    interface Require {
      (id: string): unknown;
    }
  }
}
