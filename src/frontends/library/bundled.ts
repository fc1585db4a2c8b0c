/** What the package's file exports: what users see, and what its own thread runs (compile/package.ts). */
export * from "./patchbay.ts";
export { serveThread } from "./thread.ts";
