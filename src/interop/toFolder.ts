// A GraphModule as a folder of code that people can read and edit: an ES module with its class, and its tensors in a safetensors file.
import { checkGraphModule } from '../protocol/graphChecks.ts'
import { ArgumentError, UnsupportedError, messageOf } from '../errors/index.ts'
import { CodeGen, GraphModule, PyTreeCodeGen, Slice } from '../fx/index.ts'
import { Module, setAttribute } from '../module/index.ts'
import { opOf } from '../ops/index.ts'
import {
  checkArgument,
  checkArray,
  checkCount,
  checkString,
  isFunction,
  isIdentifier,
  isModule,
  isObject,
  isParameter,
  literal,
  lookupTarget,
  memberAccess,
  propertyKey,
  quote,
  targetInfo,
  valueText,
} from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { attributePaths } from './attributePaths.ts'
import { codegenToJson } from './codegenJson.ts'
import { frozenParameters, moduleSpec, unknownModule } from './moduleSpec.ts'
import { readSafetensors, writeSafetensors } from './safetensors.ts'
import { writeFolder } from './writeFolder.ts'

/** The files of {@link toFolder} by name. */
export interface FolderFiles {
  readonly 'module.mjs': string
  readonly 'state.safetensors': Uint8Array<ArrayBuffer>
}

/**
 * The contents of the files: `module.mjs` exports a class `name`, whose constructor makes the layers with the parameters in `state.safetensors` and whose
 * `forward` is the generated code. Where there is no file system, the constructor needs the bytes of that file. The code depends only on tensorfx. Throws ArgumentError for what code cannot
 * express: modules that are neither layers of `nn` nor GraphModules, functions without a registered name, and constants without a literal.
 */
export function folderFiles(gm: GraphModule, name = 'FxModule'): FolderFiles {
  checkCount('folderFiles', arguments, 2)
  if (!(gm instanceof GraphModule))
    throw new ArgumentError('toFolder: the first argument must be a GraphModule; trace the model with symbolicTrace first.')
  if (!isIdentifier(name)) throw new ArgumentError(`toFolder: '${name}' is not a valid name for a class; use an identifier.`)
  return new FolderWriter(gm, name).files()
}

/**
 * Writes {@link folderFiles} into `directory`, which is created if necessary. Nothing is left half written: a new directory appears with all files, and in an existing
 * one each file is replaced as a whole. Only works in Node. PyTorch's GraphModule.to_folder.
 */
export async function toFolder(gm: GraphModule, directory: string, name = 'FxModule'): Promise<void> {
  checkCount('toFolder', arguments, 3)
  checkGraphModule('toFolder', gm)
  checkString('toFolder', 'directory', directory)
  await writeFolder('toFolder', directory, { ...folderFiles(gm, name) })
}

/** A module that holds attributes. For the code that {@link toFolder} writes. */
export class Attributes extends Module {
  constructor(values: Readonly<Record<string, unknown>>) {
    super()
    checkArgument(isObject(values), 'Attributes', 'values', 'an object of values by name', values)
    for (const [name, value] of Object.entries(values)) {
      if (value instanceof Tensor && !isParameter(value)) this.registerBuffer(name, value)
      else setAttribute(this, name, value)
    }
  }

  override forward(): never {
    throw new ArgumentError('this module only holds attributes; call the module that it belongs to.')
  }
}

/**
 * The bytes of a file beside the code. For the code that {@link toFolder} writes. Throws UnsupportedError where there is no file system, ArgumentError if the file cannot be
 * read.
 */
export function readState(url: URL): Uint8Array {
  checkArgument(url instanceof URL, 'readState', 'url', 'a URL', url)
  const fs = globalThis.process?.getBuiltinModule?.('node:fs')
  const name = String(url).replace(/.*\//, '')
  if (fs === undefined || url.protocol !== 'file:')
    throw new UnsupportedError(
      `the code of a folder: there is no file system here to read ${name} from; give its bytes: new Model(bytes), or load(bytes).`,
    )
  try {
    return fs.readFileSync(url)
  } catch (error) {
    throw new ArgumentError(`the code of a folder: ${name} beside it could not be read: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

/** Loads the bytes of a safetensors file into a module. For the code that {@link toFolder} writes. */
export function loadState<M extends Module>(module: M, bytes: Uint8Array): M {
  checkArgument(isModule(module), 'loadState', 'module', 'a Module', module)
  module.loadStateDict(readSafetensors(bytes).tensors)
  return module
}

/** A layer some of whose parameters are not trained: those at these paths. For the code that {@link toFolder} writes. */
export function frozen<M extends Module>(layer: M, paths: readonly string[]): M {
  checkArgument(isModule(layer), 'frozen', 'layer', 'a Module', layer)
  checkArray('frozen', 'paths', paths)
  for (const path of paths) layer.getParameter(path).requiresGrad = false
  return layer
}

/** The function registered under a name. For the code that {@link toFolder} writes. Throws ArgumentError if there is none. */
export function registered(name: string): TargetFunction {
  checkString('registered', 'name', name)
  const fn = lookupTarget(name)
  if (fn === undefined) throw new ArgumentError(`the function '${name}' is not registered; import the module that wraps it before this one.`)
  return fn
}

class FolderWriter {
  readonly #gm: GraphModule
  readonly #name: string
  /** The constants at the top of the file by name: their values, and the code for them. */
  readonly #constants = new Map<string, { readonly value: unknown; readonly text: string }>()
  #needsPytree = false
  #needsFrozen = false

  constructor(gm: GraphModule, name: string) {
    this.#gm = gm
    this.#name = name
  }

  files(): FolderFiles {
    const { lines: code, constants } = this.#method(this.#gm, '  ')
    for (const { name, value, text } of constants) this.#constants.set(name, { value, text })
    const fields = this.#attributes(this.#gm, '    ', (field, value) => `${memberAccess(field)} = ${value}`)
    const lines = [
      `// ${this.#name}: written by tensorfx from a graph. You may edit it; the parameters are in state.safetensors.`,
      `import { fx, nn, operator, torch } from 'tensorfx'`,
      `import { Attributes, ${this.#needsFrozen ? 'frozen, ' : ''}loadState, readState, registered } from 'tensorfx/interop'`,
      ...(this.#needsPytree ? [`import * as pytree from 'tensorfx/pytree'`] : []),
      '',
      ...[...this.#constants].map(([name, { text }]) => constant(name, text)),
      `export class ${this.#name} extends nn.Module {`,
      '  /** The parameters are the saved ones. `bytes` is the content of state.safetensors; in Node it can be left out. */',
      "  constructor(bytes = readState(new URL('state.safetensors', import.meta.url))) {",
      '    super()',
      ...fields,
      `    loadState(this, bytes)${this.#gm.training ? '' : '.eval()'}`,
      '  }',
      '',
      ...code,
      '}',
      '',
      `/** The same as the constructor, for programs that wait for modules. */`,
      'export async function load(bytes) {',
      `  return new ${this.#name}(bytes)`,
      '}',
      '',
      '// The imports that the code above does not use are for code that you may add.',
      'void [fx, operator, torch, Attributes, registered]',
      '',
    ]
    return { 'module.mjs': lines.join('\n'), 'state.safetensors': writeSafetensors(stateOf(this.#gm)) }
  }

  /** A line for each direct attribute of a module. Attributes at deeper paths are part of these lines. */
  #attributes(gm: GraphModule, indent: string, line: (field: string, value: string) => string): string[] {
    const tree: Tree = new Map()
    for (const path of attributePaths(gm)) {
      insert(tree, path.split('.'), gm.attribute(path))
    }
    return [...tree].map(([field, value]) => {
      const text = this.#value(value, field, indent)
      return value instanceof Tensor && !isParameter(value)
        ? `${indent}this.registerBuffer(${quote(field)}, ${text})`
        : `${indent}this${line(field, text)}`
    })
  }

  #value(value: unknown, path: string, indent: string): string {
    if (value instanceof Map)
      return `new Attributes({ ${[...value].map(([field, v]) => `${propertyKey(field)}: ${this.#value(v, `${path}.${field}`, indent)}`).join(', ')} })`
    if (value instanceof Tensor) {
      const empty = `torch.empty(${written(value.shape)}, { dtype: ${quote(value.dtype)} })`
      return isParameter(value) ? `new nn.Parameter(${empty}${value.requiresGrad ? '' : ', { requiresGrad: false }'})` : empty
    }
    if (value instanceof GraphModule) return this.#inner(value, indent)
    if (value instanceof Module) {
      const spec = moduleSpec(value)
      if (spec === null) throw unknownModule('toFolder', path, value)
      const layer = `new nn.${spec.class}(${spec.args.map(written).join(', ')})`
      const still = frozenParameters(value)
      if (still.length === 0) return layer
      this.#needsFrozen = true
      return `frozen(${layer}, ${written(still)})`
    }
    throw new ArgumentError(`toFolder: attribute '${path}' is neither a tensor nor a module.`)
  }

  /** The code for a child GraphModule: an anonymous class. If a constant at the top of the file has the same name and another value, the child gets its own. */
  #inner(gm: GraphModule, indent: string): string {
    const { lines: code, constants } = this.#method(gm, `${indent}  `)
    const own: string[] = []
    for (const { name, value, text } of constants) {
      const known = this.#constants.get(name)
      if (known === undefined) this.#constants.set(name, { value, text })
      else if (known.text !== text) own.push(constant(name, text))
    }
    const inner = `${indent}    `
    const fields = this.#attributes(gm, inner, (field, value) => `${memberAccess(field)} = ${value}`)
    const lines = [
      'new (class extends nn.Module {',
      `${indent}  constructor() {`,
      `${inner}super()`,
      ...fields,
      `${indent}  }`,
      ...code,
      `${indent}})()`,
    ]
    if (own.length > 0)
      return [`(() => {`, ...own.map((text) => `${indent}  ${text}`), `${indent}  return ${lines.join('\n')}`, `${indent}})()`].join('\n')
    return lines.join('\n')
  }

  /** The generated code as the lines of a method, and the constants that it refers to. */
  #method(gm: GraphModule, indent: string): { lines: string[]; constants: Constant[] } {
    const { codegen } = gm.graph
    const kind = codegen.constructor
    if (kind !== CodeGen && kind !== PyTreeCodeGen)
      throw new ArgumentError(
        `toFolder: ${gm.className} has a custom code generator, ${kind.name}, which cannot be written as code; set a CodeGen of tensorfx first.`,
      )
    // Throws for structures that cannot be written.
    codegenToJson(codegen)
    const { source, globals } = gm.graph.generateCode()
    const lines = withRegistered(source, globals.get('torch'))
      .replace(/^function /, '')
      .split('\n')
      .map((text) => `${indent}${text}`)
    const constants: Constant[] = []
    for (const [name, value] of globals) {
      if (name === 'torch' || name === 'operator') continue
      if (codegen instanceof PyTreeCodeGen && name === 'pytree') this.#needsPytree = true
      else if (TAKEN.has(name) || name === this.#name)
        throw new ArgumentError(
          `toFolder: the code calls a function '${name}', a name that the file itself uses; give the function another name with fx.wrap(fn, { name }).`,
        )
      else
        constants.push({
          name,
          value,
          text: codegen instanceof PyTreeCodeGen && /^(?:in|out)Spec$/.test(name) ? written(value) : constantText(name, value),
        })
    }
    return { lines, constants }
  }
}

/** Replaces calls of functions in `torch` that are not operators with calls of registered functions, because `torch` itself lacks some of them. */
function withRegistered(source: string, torch: unknown): string {
  const calls = new Map<string, string>()
  for (const [path, fn] of functionsIn(torch, 'torch'))
    if (opOf(fn) === undefined && !path.startsWith('torch.ops.higher_order.')) calls.set(path, `registered(${quote(targetInfo(fn)?.name ?? '')})`)
  // Strings are matched too, so that nothing is replaced inside of them.
  return source.replace(/'(?:[^'\\]|\\.)*'|\btorch(?:\.\w+)+(?=\()/g, (text) => calls.get(text) ?? text)
}

function* functionsIn(holder: unknown, path: string): Generator<[string, TargetFunction]> {
  if (isFunction(holder)) yield [path, holder]
  else for (const [key, inner] of Object.entries(holder ?? {})) yield* functionsIn(inner, `${path}.${key}`)
}

/** A constant that generated code refers to, and the code for it. */
interface Constant {
  readonly name: string
  readonly value: unknown
  readonly text: string
}

const constant = (name: string, text: string): string => `const ${name} = ${text}`

/** The names that every file uses itself. */
const TAKEN: ReadonlySet<string> = new Set(['fx', 'nn', 'pytree', 'Attributes', 'frozen', 'loadState', 'readState', 'registered', 'load'])

function constantText(name: string, value: unknown): string {
  if (value === Slice) return 'fx.Slice'
  const info = targetInfo(value)
  if (info !== undefined && lookupTarget(info.name) === value) return `registered(${quote(info.name)})`
  // A namespace object of the code generator.
  if (isObject(value) && Object.getPrototypeOf(value) === null)
    return `{ ${Object.entries(value)
      .map(([key, inner]) => `${propertyKey(key)}: ${constantText(`${name}.${key}`, inner)}`)
      .join(', ')} }`
  throw new ArgumentError(`toFolder: the code needs '${name}', which cannot be written as code; register functions with fx.wrap(fn, { name }).`)
}

type Tree = Map<string, unknown>

/** Inserts a value at a path, unless a module on the way already contains it. */
function insert(tree: Tree, [first = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    tree.set(first, value)
    return
  }
  const inner = tree.get(first) ?? new Map()
  tree.set(first, inner)
  if (inner instanceof Map) insert(inner, rest, value)
}

/** The literal of a value. Throws ArgumentError if it has none. */
function written(value: unknown): string {
  const text = literal(value)
  if (text === null) throw new ArgumentError(`toFolder: ${valueText(value)} cannot be written as code.`)
  return text
}

/** The tensors of the module by path in the code. */
function stateOf(gm: GraphModule, prefix = '', state: Map<string, Tensor> = new Map()): Map<string, Tensor> {
  for (const path of attributePaths(gm)) {
    const value = gm.attribute(path)
    if (value instanceof Tensor) state.set(prefix + path, value)
    else if (value instanceof GraphModule) stateOf(value, `${prefix}${path}.`, state)
    else if (value instanceof Module)
      for (const [name, tensor] of value.stateDict()) if (tensor instanceof Tensor) state.set(`${prefix}${path}.${name}`, tensor)
  }
  return state
}
