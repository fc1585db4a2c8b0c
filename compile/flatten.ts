/**
 * Takes the bundler's wrappers off the modules that a process loads in any case.
 *
 * As soon as one module is loaded by a `require` within a function, Bun wraps it and all it imports: each body becomes a
 * function to be called once, while the functions of all modules stand beside one another and are made at the start of
 * every process, used or not. A plugin lives for a few milliseconds and paid one of them for that, more with every new
 * plugin (docs/decisions/0009-programs-by-name.md).
 *
 * Here the binary becomes several programs, for certain names each. What such a program loads in any case runs straight
 * through; everything else, functions included, goes into one function that is called when the first of it is
 * needed. Works on what Bun's bundler writes (ESM, identifiers as they were), and stops at anything else.
 */
import { type AnyNode, type FunctionDeclaration, parse } from "acorn";

/** What this binary is under certain names. */
export interface Target {
  /** Those it is called by; without them, all others. */
  names?: readonly string[];
  /** What it loads in any case, by path from the root, in the order of loading; the entry is the last. */
  eager: readonly string[];
  /** Whether it can come to load the module at all. */
  mayLoad(path: string): boolean;
}

interface Module {
  path: string;
  /** The function that loads it; none for the entry, and where loading it does nothing. */
  loader: string | undefined;
  functions: FunctionDeclaration[];
  variables: { name: string; value: AnyNode | null | undefined }[];
  body: AnyNode[];
  /** What a `require` of it answers: the module's own name by exported name. */
  exported: Map<string, string>;
  /** Every identifier in its text, whatever it stands for: names of modules' own scopes differ from one another. */
  mentions: Set<string>;
}

/** A program that is what the targets are, by the name it is called by. */
export function flatten(bundle: string, targets: readonly Target[]): string {
  const modules = readModules(bundle);
  const cases = targets.map(({ names }, index) => {
    const labels = names?.map((name) => `case ${JSON.stringify(name)}:`) ?? ["default:"];
    return `${labels.join("\n")}\nprogram${index}();\nbreak;`;
  });
  return lines([
    ...targets.map((target, index) => `function program${index}() {\n${writeProgram(bundle, modules, target)}\n}`),
    `switch (process.argv0.slice(process.argv0.lastIndexOf("/") + 1)) {`,
    ...cases,
    `}`,
  ]);
}

function readModules(bundle: string): Module[] {
  const modules: Module[] = [];
  const starts: number[] = [];
  const { body } = parse(bundle, {
    ecmaVersion: "latest",
    sourceType: "module",
    onComment(_isBlock, comment, start) {
      const path = comment.trim();
      // The bundler writes it above each module; comments of the sources are gone.
      if (!/\.(ts|json)$/.test(path)) return;
      starts.push(start);
      const named = { functions: [], variables: [], exported: new Map(), mentions: new Set<string>() };
      modules.push({ path, loader: undefined, body: [], ...named });
    },
  });
  for (const statement of body) {
    const index = starts.findLastIndex((start) => start < statement.start);
    if (index >= 0) readStatement(modules[index]!, statement, index === modules.length - 1);
  }
  return modules;
}

function readStatement(module: Module, statement: AnyNode, isEntry: boolean): void {
  visit(statement, (node) => void (node.type === "Identifier" && module.mentions.add(node.name)));
  if (statement.type === "FunctionDeclaration") module.functions.push(statement as FunctionDeclaration);
  else if (statement.type === "ClassDeclaration" && statement.id) {
    module.variables.push({ name: statement.id.name, value: statement });
  } else if (statement.type === "VariableDeclaration" && statement.kind === "var") {
    for (const { id, init } of statement.declarations) {
      if (id.type !== "Identifier") throw unknown(module, id);
      if (id.name.startsWith("init_")) {
        module.loader = id.name;
        module.body = loaderBody(module, init!);
      } else if (!id.name.startsWith("exports_")) module.variables.push({ name: id.name, value: init });
    }
  } else if (isCallOf(statement, "__export")) readExports(module, statement);
  else if (isEntry) module.body.push(statement);
  else throw unknown(module, statement);
}

/** Of `__esm(() => { … })`, or of `() => {}` where there is nothing to do. */
function loaderBody(module: Module, loader: AnyNode): AnyNode[] {
  const arrow = loader.type === "CallExpression" ? loader.arguments[0] : loader;
  if (arrow?.type !== "ArrowFunctionExpression" || arrow.body.type !== "BlockStatement") {
    throw unknown(module, loader);
  }
  return arrow.body.body;
}

/** `__export(exports_x, { name: () => local, … });` */
function readExports(module: Module, statement: AnyNode): void {
  visit(statement, (node) => {
    if (node.type !== "Property") return;
    const { key, value } = node;
    const local = value.type === "ArrowFunctionExpression" ? value.body : undefined;
    if (key.type !== "Identifier" || local?.type !== "Identifier") throw unknown(module, node);
    module.exported.set(key.name, local.name);
  });
}

/** The target's program, as the body of a function. */
function writeProgram(bundle: string, all: readonly Module[], { eager, mayLoad }: Target): string {
  const modules = all.filter(({ path }) => mayLoad(path));
  const byPath = new Map(modules.map((module) => [module.path, module]));
  // Those that have nothing but constants and types have left no trace in the bundle.
  const straight = eager.map((path) => byPath.get(path)).filter((module) => module !== undefined);
  const isEager = (module: Module) => straight.includes(module);
  const later = modules.filter((module) => !isEager(module));
  const byLoader = new Map(modules.map((module) => [module.loader, module]));
  const required = new Set<Module>();

  /** A piece of a module's text, with what loads other modules put in its new form. */
  function write(node: AnyNode, within: Module): string {
    const edits: { start: number; end: number; text: string }[] = [];
    visit(node, (inner, parent) => {
      if (edits.some(({ start, end }) => inner.start >= start && inner.end <= end)) return;
      const loader = loaderCalled(inner) ?? loaderRequired(inner);
      if (loader === undefined) return;
      const module = byLoader.get(loader);
      const reach = module !== undefined && isEager(within) && !isEager(module) ? "__rest()." : "";
      if (loaderCalled(inner) !== undefined) {
        if (module === undefined) throw unknown(within, inner);
        if (!isEager(module)) edits.push({ start: inner.start, end: inner.end, text: `${reach}${loader}()` });
        else if (parent?.type === "ExpressionStatement") {
          edits.push({ start: parent.start, end: parent.end, text: "" });
        } else throw unknown(within, inner);
        return;
      }
      // A sequence stands in parentheses, which are no node.
      const isBare = bundle[inner.start - 1] !== "(" || bundle[inner.end] !== ")";
      const start = isBare ? inner.start : inner.start - 1, end = isBare ? inner.end : inner.end + 1;
      const member = parent?.type === "MemberExpression" && parent.object === inner ? parent : undefined;
      if (module === undefined) return void edits.push({ start, end: member?.end ?? end, text: "undefined" });
      const local = member?.property.type === "Identifier" ? module.exported.get(member.property.name) : undefined;
      if (member !== undefined && local === undefined) throw unknown(within, member);
      if (local !== undefined && isEager(module)) {
        return void edits.push({ start, end: member!.end, text: `(0, ${local})` });
      }
      required.add(module);
      edits.push({ start, end, text: `${reach}${answerOf(module)}()` });
    });
    edits.sort((one, other) => one.start - other.start);
    let text = "", at = node.start;
    for (const edit of edits) {
      text += bundle.slice(at, edit.start) + edit.text;
      at = edit.end;
    }
    return text + bundle.slice(at, node.end);
  }

  function writeStraight(module: Module): string {
    const variables = module.variables.map(({ name, value }) => value ? `${name} = ${write(value, module)}` : name);
    return lines([
      ...module.functions.map((declared) => write(declared, module)),
      variables.length > 0 && `var ${variables.join(", ")};`,
      ...module.body.map((statement) => write(statement, module)),
    ]);
  }

  // Names of modules that are loaded later: those that code which runs straight through uses, and those they share.
  const outside: string[] = [], between: string[] = [];

  /** Whether the name is used by other modules; then it stands outside of the function that loads its module. */
  function share(name: string, module: Module): boolean {
    if (straight.some(({ mentions }) => mentions.has(name))) outside.push(name);
    else if (
      [...module.exported.values()].includes(name) ||
      later.some((other) => other !== module && other.mentions.has(name))
    ) between.push(name);
    else return false;
    return true;
  }

  function writeLater(module: Module): string {
    if (module.loader === undefined) return writeStraight(module);
    const own: string[] = [];
    for (const declared of module.functions) {
      const { start, id } = declared, text = write(declared, module);
      if (!share(id.name, module)) own.push(text);
      else own.push(`${id.name} = ${bundle.slice(start, id.start)}${text.slice(id.end - start)};`);
    }
    for (const { name, value } of module.variables) {
      const isShared = share(name, module);
      if (value) own.push(`${isShared ? "" : "var "}${name} = ${write(value, module)};`);
      else if (!isShared) own.push(`var ${name};`);
    }
    const done = `is_${module.loader}`;
    between.push(done);
    return lines([
      `function ${module.loader}() {`,
      `if (${done}) return;`,
      `${done} = true;`,
      ...own,
      ...module.body.map((statement) => write(statement, module)),
      `}`,
    ]);
  }

  /** What a `require` of the module answers. A function, because who asks may call a variable like an export. */
  function writeAnswer(module: Module): string {
    const values = [...module.exported].map(([name, local]) => `${name}: ${local}`).join(", ");
    return `function ${answerOf(module)}() { ${isEager(module) ? "" : `${module.loader}(); `}return { ${values} }; }`;
  }

  const straightText = straight.map(writeStraight), laterText = later.map(writeLater);
  const answers = (modules: Module[]) => modules.filter((module) => required.has(module));
  const called = later.filter(({ loader }) => straight.some(({ mentions }) => mentions.has(loader!)));
  const reached = [...called.map(({ loader }) => loader!), ...answers(later).map(answerOf)];
  return lines([
    ...straightText.slice(0, -1),
    ...answers(straight).map(writeAnswer),
    `var ${["__loaded", ...outside].join(", ")};`,
    `function __rest() { return __loaded ??= __all(); }`,
    `function __all() {`,
    between.length > 0 && `var ${between.join(", ")};`,
    ...laterText,
    ...answers(later).map(writeAnswer),
    `return { ${reached.join(", ")} };`,
    `}`,
    ...straightText.slice(-1),
  ]);
}

const answerOf = ({ loader }: Module) => `answer_${loader}`;

/** The loader that `init_x()` calls. */
function loaderCalled(node: AnyNode | undefined): string | undefined {
  const name = node?.type === "CallExpression" && node.callee.type === "Identifier" ? node.callee.name : "";
  return name.startsWith("init_") ? name : undefined;
}

/** The loader in `init_x(), __toCommonJS(exports_x)`, which is what becomes of a `require`. */
function loaderRequired(node: AnyNode): string | undefined {
  if (node.type !== "SequenceExpression" || node.expressions.length !== 2) return undefined;
  const [load, answer] = node.expressions as [AnyNode, AnyNode];
  return isCallOf(answer, "__toCommonJS") ? loaderCalled(load) : undefined;
}

function isCallOf(node: AnyNode, callee: string): boolean {
  if (node.type === "ExpressionStatement") return isCallOf(node.expression, callee);
  return node.type === "CallExpression" && node.callee.type === "Identifier" && node.callee.name === callee;
}

function visit(node: AnyNode, look: (node: AnyNode, parent: AnyNode | undefined) => void, parent?: AnyNode): void {
  look(node, parent);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child?.type === "string") visit(child, look, node);
    }
  }
}

function lines(parts: readonly (string | false)[]): string {
  return parts.filter((part) => part !== false && part !== "").join("\n");
}

function unknown({ path }: Module, { type, start }: AnyNode): Error {
  return new Error(`compile/flatten.ts does not know the ${type} that Bun's bundler wrote for ${path}, at ${start}`);
}
