/**
 * The npm package, made and installed as a user does it, and programs that use it in a machine.
 */
import { afterAll } from "bun:test";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Subprocess } from "bun";
import { makePackage } from "../../../compile/package.ts";
import type { Machine } from "../machine.ts";
import { PATCHBAY } from "../plugins.ts";

let installed: string | undefined;
const folders: string[] = [];
afterAll(() => {
  installed = undefined;
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A folder of a user's, with the package in its node_modules. */
export function installedPackage(): string {
  if (installed !== undefined) return installed;
  const folder = mkdtempSync(join(tmpdir(), "patchbay-library-"));
  folders.push(folder);
  const packed = makePackage(PATCHBAY, folder), user = join(folder, "user");
  mkdirSync(user);
  writeFileSync(join(user, "package.json"), '{ "type": "module", "private": true }');
  // In a namespace without a network: everything has to be in the file.
  const install = ["unshare", "--net", "npm", "install", "--offline", "--no-audit", "--no-fund", packed];
  const { exitCode, stderr } = Bun.spawnSync(install, { cwd: user, stderr: "pipe", stdout: "pipe" });
  if (exitCode !== 0) throw new Error(`npm install failed: ${stderr}`);
  copyFileSync(resolve(import.meta.dir, "driver.ts"), join(user, "driver.ts"));
  return installed = user;
}

export interface Failed {
  isCniError: boolean;
  isArgumentError: boolean;
  code: number;
  message: string;
  details: string;
  key?: string;
}

interface Answered {
  /** What the function answered; null for nothing. */
  // deno-lint-ignore no-explicit-any
  value?: any;
  error?: Failed;
  /** What of the process is not as it was before the call. */
  changed: string[];
}

interface Start {
  options?: Record<string, unknown>;
  folder?: string;
  env?: Record<string, string>;
  umask?: string;
  /** A command that executes the program. */
  as?: readonly string[];
}

/** A process that makes calls of the package, one after the other. */
export class Library implements AsyncDisposable {
  private readonly output: { read(): Promise<{ value?: Uint8Array; done: boolean }> };
  private text = "";

  private constructor(readonly process: Subprocess<"pipe", "pipe", "pipe">) {
    this.output = process.stdout.getReader();
  }

  static async open(
    machine: Machine,
    { options = {}, folder = installedPackage(), env = {}, umask = "022", as = [] }: Start = {},
  ) {
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const words = [process.execPath, join(folder, "driver.ts"), JSON.stringify(options)];
    const library = new Library(
      machine.start(["sh", "-c", `umask ${umask}; exec env "$@"`, "sh", ...variables, ...as, ...words]),
    );
    await library.line();
    return library;
  }

  /** The outcome, also of a call that fails. */
  async call(name: string, ...given: unknown[]): Promise<Answered> {
    this.process.stdin.write(`${JSON.stringify({ name, given })}\n`);
    await this.process.stdin.flush();
    return JSON.parse(await this.line());
  }

  /** What the call answers. It must succeed, and leave the process as it was. */
  // deno-lint-ignore no-explicit-any
  async must(name: string, ...given: unknown[]): Promise<any> {
    const { value, error, changed } = await this.call(name, ...given);
    if (error !== undefined) throw new Error(`${name}: ${error.message} ${error.details}`);
    if (changed.length > 0) throw new Error(`${name} has changed ${changed.join("; ")}`);
    return value;
  }

  private async line(): Promise<string> {
    while (!this.text.includes("\n")) {
      const { value, done } = await this.output.read();
      if (done) throw new Error(`the program ended: ${await this.process.stderr.text()}`);
      this.text += new TextDecoder().decode(value);
    }
    const end = this.text.indexOf("\n"), line = this.text.slice(0, end);
    this.text = this.text.slice(end + 1);
    return line;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.process.stdin.end();
    } catch {
      // It was killed.
    }
    await this.process.exited;
  }
}
