/**
 * What a test file needs beyond Bun and the npm packages, if it opens no machine and runs no plugin. A file that imports
 * this module is not a unit test; see test/README.md.
 */
import { existsSync } from "node:fs";

const checks = {
  root: () => process.getuid!() === 0,
  git: () => Bun.which("git") !== null,
  npm: () => Bun.which("npm") !== null,
  gcc: () => Bun.which("x86_64-linux-gnu-gcc") !== null,
  "go-cni": () =>
    ["/usr/lib/go-1.19/bin/go", "/usr/share/gocode/src/github.com/containerd/go-cni"].every((path) =>
      existsSync(path)
    ),
  openssl: () => Bun.which("openssl") !== null,
  strace: () => Bun.which("strace") !== null,
};

/** Fails the file at once when something is missing. */
export function needs(...things: (keyof typeof checks)[]): void {
  for (const thing of things) {
    if (!checks[thing]()) throw new Error(`this test file needs ${thing}; \`npm test\` sets up what tests need`);
  }
}
