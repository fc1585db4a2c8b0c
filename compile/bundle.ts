/** Takes a bundle of Bun's bundler (ESM, identifiers unchanged) apart into its modules. */
import { type AnyNode, type FunctionDeclaration, parse } from "acorn";

export interface Module {
  path: string;
  /** The function that loads it; undefined for the entry, and when loading does nothing. */
  loader: string | undefined;
  functions: FunctionDeclaration[];
  variables: { name: string; value: AnyNode | null | undefined }[];
  body: AnyNode[];
  /** The result of a `require` of it: local name by exported name. */
  exported: Map<string, string>;
  /** Every identifier in its text. The bundler has made top-level names unique. */
  mentions: Set<string>;
}

export function readModules(bundle: string): Module[] {
  const modules: Module[] = [];
  const starts: number[] = [];
  const { body } = parse(bundle, {
    ecmaVersion: "latest",
    sourceType: "module",
    onComment(_isBlock, comment, start) {
      const path = comment.trim();
      // The bundler writes the path above each module, and removes the comments of the sources.
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

/** The statements of `__esm(() => { … })`, or of `() => {}` when loading does nothing. */
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

/** The loader that `init_x()` calls. */
export function loaderCalled(node: AnyNode | undefined): string | undefined {
  const name = node?.type === "CallExpression" && node.callee.type === "Identifier" ? node.callee.name : "";
  return name.startsWith("init_") ? name : undefined;
}

/** The loader in `init_x(), __toCommonJS(exports_x)`, which the bundler writes for a `require`. */
export function loaderRequired(node: AnyNode): string | undefined {
  if (node.type !== "SequenceExpression" || node.expressions.length !== 2) return undefined;
  const [load, answer] = node.expressions as [AnyNode, AnyNode];
  return isCallOf(answer, "__toCommonJS") ? loaderCalled(load) : undefined;
}

function isCallOf(node: AnyNode, callee: string): boolean {
  if (node.type === "ExpressionStatement") return isCallOf(node.expression, callee);
  return node.type === "CallExpression" && node.callee.type === "Identifier" && node.callee.name === callee;
}

export function visit(
  node: AnyNode,
  look: (node: AnyNode, parent: AnyNode | undefined) => void,
  parent?: AnyNode,
): void {
  look(node, parent);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child?.type === "string") visit(child, look, node);
    }
  }
}

export function unknown({ path }: Module, { type, start }: AnyNode): Error {
  return new Error(`compile/bundle.ts does not know the ${type} that Bun's bundler wrote for ${path}, at ${start}`);
}
