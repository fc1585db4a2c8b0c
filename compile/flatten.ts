/**
 * Takes the bundler's wrappers off the modules that a process always loads.
 *
 * As soon as one module is loaded by a `require` within a function, Bun wraps it and all it imports: each body becomes a
 * function to be called once, and every process makes the functions of all modules at its start, used or not. That cost
 * a plugin one of its few milliseconds, and more with every new plugin (docs/decisions/0009-programs-by-name.md).
 *
 * This splits the binary into several programs by the name it is called by. Modules that such a program always loads run
 * straight through. What it often loads, functions included, goes into one function that is called when the first of it
 * is needed, and what it loads less often into others, each within the one before. Throws at anything in the bundle that it does not know.
 */
import type { AnyNode } from "acorn";
import { loaderCalled, loaderRequired, type Module, readModules, unknown, visit } from "./bundle.ts";

/** What this binary is under certain names. */
export interface Target {
  /** The names it is called by; without them, all others. */
  names?: readonly string[];
  /** What it always loads, by path from the root, in the order of loading; the entry is the last. */
  eager: readonly string[];
  /** What it loads more or less often, the most often first, each module with what it imports. */
  often: readonly ReadonlySet<string>[];
}

/** The text of a program that runs the target of the name it is called by. */
export function flatten(bundle: string, targets: readonly Target[]): string {
  const modules = readModules(bundle);
  const cases = targets.map(({ names }, index) => {
    const labels = names?.map((name) => `case ${JSON.stringify(name)}:`) ?? ["default:"];
    return `${labels.join("\n")}\nprogram${index}();\nbreak;`;
  });
  return lines([
    ...targets.map((target, index) =>
      `function program${index}() {\n${new Program(bundle, modules, target).body()}\n}`
    ),
    `switch (process.argv0.slice(process.argv0.lastIndexOf("/") + 1)) {`,
    ...cases,
    `}`,
  ]);
}

interface Edit {
  start: number;
  end: number;
  text: string;
}

class Program {
  readonly #bundle: string;
  /** First the modules that run straight through, in the order of loading, then what is loaded less and less often. */
  readonly #levels: readonly (readonly Module[])[];
  readonly #levelOf: ReadonlyMap<Module, number>;
  readonly #byLoader: ReadonlyMap<string | undefined, Module>;
  /** Modules of which a `require` wants an answer. */
  readonly #required = new Set<Module>();
  /** The names that modules share, by the level whose function declares them. */
  readonly #shared: readonly string[][];

  constructor(bundle: string, modules: readonly Module[], { eager, often }: Target) {
    this.#bundle = bundle;
    const byPath = new Map(modules.map((module) => [module.path, module]));
    // Modules of constants and types only leave no trace in the bundle.
    const straight = eager.map((path) => byPath.get(path)).filter((module) => module !== undefined);
    const later = modules.filter((module) => !straight.includes(module));
    const levelOf = ({ path }: Module) => [...often, { has: () => true }].findIndex((paths) => paths.has(path));
    this.#levels = [
      straight,
      ...Array.from({ length: often.length + 1 }, (_, level) => later.filter((module) => levelOf(module) === level)),
    ];
    this.#levelOf = new Map(this.#levels.flatMap((modules, level) => modules.map((module) => [module, level])));
    this.#byLoader = new Map(modules.map((module) => [module.loader, module]));
    this.#shared = this.#levels.map(() => []);
  }

  /** The program, as the body of a function. */
  body(): string {
    const [straight, ...later] = this.#levels.map((modules) => modules.map((module) => this.#writeModule(module)));
    const within = later.reduceRight((inner, texts, index) => this.#writeLevel(index + 1, texts, inner), "");
    return lines([...straight!.slice(0, -1), ...this.#answersOf(0), this.#names(0), within, ...straight!.slice(-1)]);
  }

  /**
   * Writes the function of a level, with the text of the levels inside it. It returns what outer levels call, and the
   * function of the next level.
   */
  #writeLevel(level: number, texts: readonly string[], inner: string): string {
    const outer = this.#levels.slice(0, level).flat();
    const isCalled = ({ loader }: Module) => outer.some(({ mentions }) => mentions.has(loader!));
    const reached = [
      ...this.#levels[level]!.filter(isCalled).map(({ loader }) => loader!),
      ...this.#requiredIn(level).map(answerOf),
      ...inner === "" ? [] : [`__level${level + 1}`],
    ];
    return lines([
      `var __loaded${level};`,
      `function __level${level}() { return __loaded${level} ??= __load${level}(); }`,
      `function __load${level}() {`,
      this.#names(level),
      ...texts,
      ...this.#answersOf(level),
      inner,
      `return { ${reached.join(", ")} };`,
      `}`,
    ]);
  }

  #names(level: number): string {
    const names = this.#shared[level]!;
    return names.length > 0 ? `var ${names.join(", ")};` : "";
  }

  #requiredIn(level: number): Module[] {
    return this.#levels[level]!.filter((module) => this.#required.has(module));
  }

  #answersOf(level: number): string[] {
    return this.#requiredIn(level).map((module) => this.#writeAnswer(module));
  }

  #isStraight(module: Module): boolean {
    return this.#levelOf.get(module) === 0;
  }

  #writeModule(module: Module): string {
    return this.#isStraight(module) || module.loader === undefined
      ? this.#writeStraight(module)
      : this.#writeLater(module);
  }

  #writeStraight(module: Module): string {
    const variables = module.variables.map(({ name, value }) =>
      value ? `${name} = ${this.#write(value, module)}` : name
    );
    return lines([
      ...module.functions.map((declared) => this.#write(declared, module)),
      variables.length > 0 && `var ${variables.join(", ")};`,
      ...module.body.map((statement) => this.#write(statement, module)),
    ]);
  }

  #writeLater(module: Module): string {
    const own: string[] = [];
    for (const declared of module.functions) {
      const { start, id } = declared, text = this.#write(declared, module);
      if (!this.#share(id.name, module)) own.push(text);
      else own.push(`${id.name} = ${this.#bundle.slice(start, id.start)}${text.slice(id.end - start)};`);
    }
    for (const { name, value } of module.variables) {
      const isShared = this.#share(name, module);
      if (value) own.push(`${isShared ? "" : "var "}${name} = ${this.#write(value, module)};`);
      else if (!isShared) own.push(`var ${name};`);
    }
    const done = `is_${module.loader}`;
    this.#shared[this.#levelOf.get(module)!]!.push(done);
    return lines([
      `function ${module.loader}() {`,
      `if (${done}) return;`,
      `${done} = true;`,
      ...own,
      ...module.body.map((statement) => this.#write(statement, module)),
      `}`,
    ]);
  }

  /** Whether other modules use the name; then it stands outside of the function that loads its module. */
  #share(name: string, module: Module): boolean {
    const own = this.#levelOf.get(module)!, isExported = [...module.exported.values()].includes(name);
    const uses = (other: Module) => other !== module && other.mentions.has(name);
    const first = this.#levels.findIndex((modules) => modules.some(uses));
    if (first < 0 && !isExported) return false;
    this.#shared[first < 0 ? own : Math.min(first, own)]!.push(name);
    return true;
  }

  /** What a `require` of the module answers. A function, because its caller may call a variable like an export. */
  #writeAnswer(module: Module): string {
    const values = [...module.exported].map(([name, local]) => `${name}: ${local}`).join(", ");
    const load = this.#isStraight(module) ? "" : `${module.loader}(); `;
    return `function ${answerOf(module)}() { ${load}return { ${values} }; }`;
  }

  /** The text of a node, with new text for what loads other modules. */
  #write(node: AnyNode, within: Module): string {
    const edits: Edit[] = [];
    visit(node, (inner, parent) => {
      if (edits.some(({ start, end }) => inner.start >= start && inner.end <= end)) return;
      const called = loaderCalled(inner), required = loaderRequired(inner);
      if (called !== undefined) edits.push(this.#editOfCall(called, inner, parent, within));
      else if (required !== undefined) edits.push(this.#editOfRequire(required, inner, parent, within));
    });
    edits.sort((one, other) => one.start - other.start);
    let text = "", at = node.start;
    for (const edit of edits) {
      text += this.#bundle.slice(at, edit.start) + edit.text;
      at = edit.end;
    }
    return text + this.#bundle.slice(at, node.end);
  }

  /** New text for `init_x()`: none when the module has run already. */
  #editOfCall(loader: string, call: AnyNode, parent: AnyNode | undefined, within: Module): Edit {
    const module = this.#byLoader.get(loader);
    if (module === undefined) throw unknown(within, call);
    if (!this.#isStraight(module)) {
      return { start: call.start, end: call.end, text: `${this.#reach(module, within)}${loader}()` };
    }
    if (parent?.type !== "ExpressionStatement") throw unknown(within, call);
    return { start: parent.start, end: parent.end, text: "" };
  }

  /** New text for a `require`, with the member that is read from its result. */
  #editOfRequire(loader: string, sequence: AnyNode, parent: AnyNode | undefined, within: Module): Edit {
    const module = this.#byLoader.get(loader);
    // The sequence is in parentheses, which are not part of the node.
    const isBare = this.#bundle[sequence.start - 1] !== "(" || this.#bundle[sequence.end] !== ")";
    const start = isBare ? sequence.start : sequence.start - 1, end = isBare ? sequence.end : sequence.end + 1;
    const member = parent?.type === "MemberExpression" && parent.object === sequence ? parent : undefined;
    if (module === undefined) throw unknown(within, sequence);
    const local = member?.property.type === "Identifier" ? module.exported.get(member.property.name) : undefined;
    if (member !== undefined && local === undefined) throw unknown(within, member);
    if (local !== undefined && this.#isStraight(module)) return { start, end: member!.end, text: `(0, ${local})` };
    this.#required.add(module);
    return { start, end, text: `${this.#reach(module, within)}${answerOf(module)}()` };
  }

  /** The prefix by which code of `within` reaches functions of an inner level. */
  #reach(module: Module, within: Module): string {
    const levels = [...this.#levels.keys()].slice(
      this.#levelOf.get(within)! + 1,
      this.#levelOf.get(module)! + 1,
    );
    return levels.map((level) => `__level${level}().`).join("");
  }
}

const answerOf = ({ loader }: Module) => `answer_${loader}`;

function lines(parts: readonly (string | false)[]): string {
  return parts.filter((part) => part !== false && part !== "").join("\n");
}
